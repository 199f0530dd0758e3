"""What partitions need beside their rate: their backlog, read within a time."""

from dataclasses import replace

from immutables import Map

from binwright.controller.decide.events import Publish, Update
from binwright.group.group import Group
from binwright.group.load import MeasuredLoad
from binwright.protocol.metadata import CatchingUp
from binwright.protocol.metrics import Measurement, PartitionRate
from binwright.protocol.model import BytesPerSecond, TopicPartition

SLACK_S = 30.0
"""What a partition gets in this time is no backlog: a move, a restart, a burst leave as much."""
PROVEN = 0.5
"""Share of `on_time_s` for which rows have to land in time before a backlog adds consumers."""


def with_backlogs(group: Group, measurement: Measurement, now: float) -> MeasuredLoad:
    """Return the load with what the measured partitions need to catch up.

    With its rate a partition needs at most what a plan gives a consumer. Only while a topic's rows
    have landed in time for a while does the need grow: where the sink is the limit, more consumers
    would land no more.
    """
    if not group.settings.catch_up_s:
        return group.load
    catch_up, topic = group.load.catch_up, measurement.topic
    on_time = _on_time(group, topic, now)
    since, proven_s = on_time.get(topic, now), PROVEN * group.config.on_time_s
    # Of a topic without a writer nothing is known of its tables.
    keeps_up = topic not in group.members.writers or (topic in on_time and now - since >= proven_s)
    for measured in measurement.partitions:
        partition = TopicPartition(topic, measured.partition)
        before, need = catch_up.get(partition, 0.0), _need(group, partition, measured)
        if need:
            # Not less as the backlog shrinks, or there would always be as long to go.
            need = max(before, need) if keeps_up else before
            need = min(need, max(0.0, group.config.capacity - (measured.rate or 0.0)))
        if need:
            catch_up = catch_up.set(partition, BytesPerSecond(need))
        elif need is not None and before:
            catch_up = catch_up.delete(partition)
    return replace(group.load, catch_up=catch_up, on_time=on_time)


def publish_backlogs(group: Group) -> Update:
    """Publish what backlogs count for, where that has changed: for views, and the next leader."""
    needs = group.load.catch_up
    if needs is group.load.known_catch_up or needs == group.load.known_catch_up:
        return group, ()
    message = CatchingUp(term=group.term or 0, needs=dict(needs))
    return replace(group, load=replace(group.load, known_catch_up=needs)), (Publish(message),)


def _need(group: Group, partition: TopicPartition, measured: PartitionRate) -> float | None:
    """Return bytes/s beside the rate.

    None: it is not known how much is left to read, as while a partition moves.
    """
    position = _position(group, partition)
    if position is None or measured.bytes_per_record is None or measured.rate is None:
        return None
    backlog = max(0, measured.end - max(position, measured.start)) * measured.bytes_per_record
    return max(0.0, backlog - SLACK_S * measured.rate) / group.settings.catch_up_s


def _position(group: Group, partition: TopicPartition) -> int | None:
    """Return the next offset to read, as last reported; None: not known, or nobody reads it."""
    at = group.members.partitions.get(partition)
    if at is None or at.slot is None:
        return None
    return group.members.get(at.slot).reading.get(partition)


def _on_time(group: Group, topic: str, now: float) -> Map[str, float]:
    """Return topic -> since when rows of one of its tables or more land in time."""
    at = group.members.writers.get(topic)
    tables = group.members.get(at.slot).tables_of(topic) if at and at.slot is not None else ()
    if any(
        table.state == "landing" and table.commits and table.age_s <= group.config.on_time_s
        for table in tables
    ):
        return group.load.on_time.set(topic, group.load.on_time.get(topic, now))
    return group.load.on_time.delete(topic) if topic in group.load.on_time else group.load.on_time
