"""What partitions need beside their rate: their backlog, read within a time."""

from dataclasses import replace

from binwright.controller.decide.group import Group
from binwright.protocol.measurements import Measurement, PartitionRate
from binwright.protocol.model import BytesPerSecond, TopicPartition

SLACK_S = 30.0
"""What a partition gets in this time is no backlog: a move, a restart, a burst leave as much."""


def with_backlogs(group: Group, measurement: Measurement) -> Group:
    """Return the group with what the measured partitions need to catch up.

    While a topic's rows land late the need does not grow: more consumers would land no more.
    """
    if not group.config.catch_up_s:
        return group
    catch_up = group.catch_up
    is_late = _lands_late(group, measurement.topic)
    for measured in measurement.partitions:
        partition = TopicPartition(measurement.topic, measured.partition)
        before, need = catch_up.get(partition, 0.0), _need(group, partition, measured)
        if is_late:
            need = min(before, need)
        if need:
            catch_up = catch_up.set(partition, BytesPerSecond(need))
        elif before:
            catch_up = catch_up.delete(partition)
    return replace(group, catch_up=catch_up)


def _need(group: Group, partition: TopicPartition, measured: PartitionRate) -> float:
    """Return bytes/s beside the rate; with it, at most what a plan gives a consumer."""
    position = _position(group, partition)
    if position is None or measured.bytes_per_record is None or measured.rate is None:
        return 0.0
    backlog = max(0, measured.end - max(position, measured.start)) * measured.bytes_per_record
    need = max(0.0, backlog - SLACK_S * measured.rate) / group.config.catch_up_s
    return min(need, max(0.0, group.config.capacity - measured.rate))


def _position(group: Group, partition: TopicPartition) -> int | None:
    """Return the next offset to read, as last reported; None: not known, or nobody reads it."""
    at = group.partitions.get(partition)
    if at is None or at.slot is None:
        return None
    return group.member(at.slot).reading.get(partition)


def _lands_late(group: Group, topic: str) -> bool:
    """Whether rows of all its tables are staged faster than they land, or do not land at all."""
    at = group.writers.get(topic)
    if at is None or at.slot is None:
        return False
    tables = group.member(at.slot).tables_of(topic)
    return bool(tables) and all(
        table.age_s > group.config.late_s or table.state in {"paused", "refused"}
        for table in tables
    )
