"""A real Kafka broker and Spark Connect server as child processes, on a machine that has only Python."""
