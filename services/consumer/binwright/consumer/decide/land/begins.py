"""Decides where partitions begin to land that no stamp knows yet."""

from collections.abc import Collection

from binwright.consumer.decide.land.states import KafkaState
from binwright.protocol.model import TopicPartition
from binwright.tables.ports import PartitionOffsets


def begin_offsets(facts: KafkaState, written: Collection[str], *, latest: bool) -> PartitionOffsets:
    """Return where partitions begin of which no stamp has it.

    Args:
        facts: Of their topics.
        written: Topics that have landed here before, or earlier ones of their names: further
            partitions begin at their first record. Others begin where the group stands, as by its
            other tables, else at their first record or, with `latest`, their end.
        latest: Whether partitions begin at their end.
    """
    return {
        p: begin if p.topic in written else min(facts.group.get(p, end if latest else begin), end)
        for p, (begin, end) in facts.bounds.items()
    }


def at_first_record(
    facts: KafkaState, written: Collection[str], *, latest: bool
) -> frozenset[TopicPartition]:
    """Return the partitions that begin at their first record; see `begin_offsets`.

    If more was staged of them before Kafka's retention took it, they begin with that.
    """
    return frozenset(
        p for p in facts.bounds if p.topic in written or not (latest or p in facts.group)
    )


def begin_at_end(
    facts: KafkaState, written: Collection[str], *, latest: bool
) -> frozenset[TopicPartition]:
    """Return the partitions that begin at their end once that is known; see `begin_offsets`."""
    return frozenset(p for p in facts.leaderless if latest and p.topic not in written)
