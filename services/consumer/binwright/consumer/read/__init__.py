"""Reads Kafka's data partitions.

`partitions` owns each one until its rows are taken; `data_reader` is the port `DataReader` on
Kafka's client, and `start_offsets` says where each begins.
"""
