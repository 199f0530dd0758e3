"""Kafka's data partitions: where each begins (`start_offsets`), and the port `DataReader`."""
