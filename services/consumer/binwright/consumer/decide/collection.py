"""Decides which old staged files may be deleted: those whose rows are elsewhere, too."""

from collections.abc import Mapping
from dataclasses import dataclass

from binwright.consumer.decide.land.chain import same_topic
from binwright.tables.ports import Footer


@dataclass(frozen=True, slots=True)
class TopicLog:
    """What Kafka has of a topic, and what of it has landed."""

    topic_id: str | None
    begins: Mapping[int, int]  # partition -> first retained offset
    committed: Mapping[int, int]  # partition -> the group's committed offset, of this topic


def may_be_collected(footer: Footer, log: TopicLog) -> bool:
    """Whether each row of the file has landed, is still in Kafka, or is of a deleted topic.

    A table that takes no rows for longer than the topic's retention lands such a file later.
    """
    if not same_topic(footer.topic_id, log.topic_id):
        return True
    return all(
        log.begins.get(partition, 0) <= max(first, log.committed.get(partition, 0))
        or log.committed.get(partition, 0) >= end
        for partition, (first, end) in footer.ranges.items()
    )
