"""The whole system on this machine: the commands `demo` and `up`, embedded Kafka and Spark.

They run as child processes, from jars that are downloaded once and checked, and end with the command.
"""
