"""Commands about the brokers of a Kafka cluster: where replicas are, and how they move."""
