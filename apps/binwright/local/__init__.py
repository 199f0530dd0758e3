"""The whole system on this machine: the commands `demo` and `up`, embedded Kafka and Spark.

The servers are child processes, run from jars that are downloaded once and checked, and end with
the command.
"""
