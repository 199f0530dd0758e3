"""An embedded Kafka: one broker, or several that form a cluster."""
