"""Commands that run the whole system on this machine: demo and up.

They start Kafka, Spark and the services as processes, and end them.
"""
