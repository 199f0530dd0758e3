"""A real Kafka broker and Spark Connect server as child processes; nothing but Python is needed."""
