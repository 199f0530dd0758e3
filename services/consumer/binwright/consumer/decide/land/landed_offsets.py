"""How far a topic has landed: in all of its tables."""

from collections.abc import Collection, Mapping

from binwright.protocol.model import TopicPartition
from binwright.protocol.ports.kafka import GroupOffset

Offsets = Mapping[TopicPartition, GroupOffset]


def least_landed(tables: Collection[Offsets]) -> dict[TopicPartition, GroupOffset]:
    """Return the lowest offset of each partition, of the tables of its topic (†).

    Offsets in Kafka are one for a topic: where a table without a full stamp continues, and what
    staged files are not needed for. So they are never beyond what one of the tables has.

    Args:
        tables: The next offsets to land of each table. A partition is left out that one of them
            does not know, or knows of another topic of this name.
    """
    least: dict[TopicPartition, GroupOffset] = {}
    for partition in sorted(set.intersection(*(set(offsets) for offsets in tables))):
        found = [offsets[partition] for offsets in tables]
        if len({offset.topic_id for offset in found}) == 1:
            least[partition] = min(found, key=lambda offset: offset.offset)
    return least
