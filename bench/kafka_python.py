"""What a monitor asks, once a second, by kafka-python."""

import sys
import time

from kafka import KafkaAdminClient, KafkaConsumer, TopicPartition


def main() -> None:
    """Ask for ever."""
    servers, topic = sys.argv[1:3]
    admin = KafkaAdminClient(bootstrap_servers=servers)
    consumer = KafkaConsumer(bootstrap_servers=servers)
    beat = time.monotonic()
    while True:
        partitions = [TopicPartition(topic, n) for n in consumer.partitions_for_topic(topic) or ()]
        ends = consumer.end_offsets(partitions)
        admin.describe_log_dirs()
        starts = consumer.beginning_offsets(partitions)
        sys.stdout.write(f"measured {len(ends)} {len(starts)}\n")
        sys.stdout.flush()
        beat = max(beat + 1, time.monotonic())
        time.sleep(max(0.0, beat - time.monotonic()))


if __name__ == "__main__":
    main()
