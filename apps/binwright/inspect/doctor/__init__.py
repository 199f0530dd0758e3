"""`binwright doctor`: checks settings, Kafka, rights, topics, staging, Spark and the registry."""
