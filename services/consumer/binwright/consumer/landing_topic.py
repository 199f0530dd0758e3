"""The landing topic: where the announcements of a table's staged files are."""

from zlib import crc32

from binwright.kafka.control_records import LANDING_PARTITIONS


def landing_partition(topic: str) -> int:
    """Return the partition of the landing topic that announces a data topic's files."""
    return crc32(topic.encode()) % LANDING_PARTITIONS
