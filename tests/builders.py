"""Builders of groups, members and messages with few arguments."""

from collections.abc import Iterable, Mapping
from dataclasses import fields, replace
from typing import Any

from immutables import Map

from binwright.group.config import ControllerSettings, GroupConfig
from binwright.group.fold import RecordRead, StateRecord
from binwright.group.group import Group
from binwright.group.members import Member
from binwright.group.ownership import (
    Owned,
    Ownership,
    PartitionOwnership,
    Released,
    Starting,
    State,
    Stopping,
)
from binwright.group.rates import MeasuredRates
from binwright.protocol.landing import OffsetRange, Staged
from binwright.protocol.metadata import (
    Dead,
    Gap,
    Goodbye,
    Hello,
    Report,
    Started,
    Stopped,
    TableReport,
)
from binwright.protocol.metrics import Measurement, PartitionRate
from binwright.protocol.model import BytesPerSecond, Slot, TopicPartition

P, Q = TopicPartition("orders", 0), TopicPartition("orders", 1)
C = TopicPartition("clicks", 0)
S0, S1, S2 = Slot(0), Slot(1), Slot(2)
TERM, NOW = 50, 100.0
LIMIT = BytesPerSecond(120)

Offsets = Mapping[TopicPartition, int | None]


def configured(limit: float, capacity: float, **settings: Any) -> GroupConfig:
    """Return a configuration with given limits, in which backlogs count only if `settings` say."""
    limits = {"limit_bytes_per_s": limit, "capacity_bytes_per_s": capacity}
    known = ControllerSettings(**{"catch_up_s": 0.0, **limits, **settings})
    return GroupConfig.of(known, stale_s=90.0, on_time_s=12.0)


def reconfigured(config: GroupConfig, **more: Any) -> GroupConfig:
    """Return the configuration with other values of its fields, and of its settings."""
    own = {f.name: more.pop(f.name) for f in fields(config) if f.name in more}
    return replace(config.with_settings(**more), **own)


CONFIG = configured(LIMIT, 100)


def measurement(topic: str, partitions: Iterable[PartitionRate], **more: Any) -> Measurement:
    """Return a monitor's only measurement; `count` is by default the last number + 1."""
    found = tuple(partitions)
    count = max((p.partition + 1 for p in found), default=0)
    known = {"at_ms": 0, "monitor": "m", "number": 0, "interval_s": 1.0, "count": count, **more}
    return Measurement(topic=topic, partitions=found, **known)


def alive(hello: int, *, ready: bool = True, **more: Any) -> Member:
    return Member(hello=hello, ready=ready, seen_at=NOW, arrived_at=NOW, **more)


def dead(epoch: int = 1) -> Member:
    return Member(hello=epoch, dead=epoch, seen_at=NOW)


def group(
    members: Mapping[Slot, Member],
    partitions: Mapping[TopicPartition, State] | None = None,
    writers: Mapping[str, State] | None = None,
    *,
    rates: Mapping[TopicPartition, float] | None = None,
    counts: Mapping[str, int] | None = None,
    **more: Any,
) -> Group:
    known: dict[str, Any] = {
        "by_slot": Map(members),
        "partitions": PartitionOwnership(partitions),
        "writers": Ownership(writers),
        "rates": topics(rates or {}, counts or {}),
        **more,
    }
    return changed(Group(CONFIG, "me", TERM, ticked_at=NOW), **known)


def changed(known: Group, **more: Any) -> Group:
    """Return the group with these values of fields, its own and those of its four values."""
    for name in ("members", "load", "people", "fleet"):
        value = getattr(known, name)
        own = {f.name: more.pop(f.name) for f in fields(value) if f.name in more}
        known = replace(known, **{name: replace(value, **own)}) if own else known
    return replace(known, **more)


def with_member(known: Group, slot: Slot, member: Member) -> Group:
    return replace(known, members=known.members.with_member(slot, member))


def topics(rates: Mapping[TopicPartition, float], counts: Mapping[str, int]) -> MeasuredRates:
    """Return these rates; a topic without an entry in `counts` has 1,000 partitions."""
    known = MeasuredRates()
    for topic in {*counts, *(p.topic for p in rates)}:
        own = {p.partition: BytesPerSecond(rate) for p, rate in rates.items() if p.topic == topic}
        known = known.with_topic(topic, counts.get(topic, 1_000), own)
    return known


def owned(slot: Slot, epoch: int) -> Owned:
    return Owned(slot, epoch)


def released(offset: int | None = None) -> Released:
    return Released(offset)


def stopping(slot: Slot, epoch: int, revision: int = 7) -> Stopping:
    return Stopping(slot, epoch, revision, NOW)


def starting(slot: Slot, epoch: int, offset: int | None = None, revision: int = 7) -> Starting:
    return Starting(slot, epoch, revision, NOW, offset)


def record_read(message: StateRecord, offset: int = 90, now: float = NOW) -> RecordRead:
    return RecordRead(now, offset, message)


def hello(slot: Slot) -> Hello:
    return Hello(slot=slot, process="p", version="1", sent_ms=7)


def death(slot: Slot, epoch: int, term: int = TERM) -> Dead:
    return Dead(slot=slot, epoch=epoch, term=term)


def staged(topic: str, first: int = 0, file: str = "0-1-1-0a1b2c3d.parquet") -> Staged:
    """Return the announcement of a file of one row."""
    return Staged(
        topic=topic,
        topic_id=None,
        file=file,
        rows=1,
        bytes=9,
        ranges={TopicPartition(topic, 0): OffsetRange(first, first + 1)},
        slot=Slot(0),
        epoch=1,
    )


def table(pending_bytes: int = 0) -> TableReport:
    return TableReport(state="landing", committed={}, pending_bytes=pending_bytes)


def report(
    slot: Slot,
    epoch: int,
    *,
    term: int = TERM,
    ready: bool = True,
    reading: Iterable[TopicPartition] | Offsets = (),
    writing: Iterable[str] | Mapping[str, TableReport] = (),
    leaving: bool = False,
) -> Report:
    return Report(
        slot=slot,
        epoch=epoch,
        term=term,
        ready=ready,
        reading=reading if isinstance(reading, Mapping) else dict.fromkeys(reading, 3),
        writing=writing if isinstance(writing, Mapping) else dict.fromkeys(writing, table()),
        leaving=leaving,
    )


def stopped(
    slot: Slot, epoch: int, following: Offsets, tables: Iterable[str] = (), revision: int = 7
) -> Stopped:
    return Stopped(slot=slot, epoch=epoch, revision=revision, next=following, tables=tuple(tables))


def started(
    slot: Slot,
    epoch: int,
    partitions: Iterable[TopicPartition],
    tables: Iterable[str] = (),
    revision: int = 7,
) -> Started:
    return Started(
        slot=slot,
        epoch=epoch,
        revision=revision,
        offsets=dict.fromkeys(partitions, 3),
        tables=tuple(tables),
    )


def gap(slot: Slot, epoch: int, committed: Mapping[TopicPartition, int]) -> Gap:
    return Gap(slot=slot, epoch=epoch, committed=committed)


def goodbye(slot: Slot, epoch: int, following: Mapping[TopicPartition, int]) -> Goodbye:
    return Goodbye(slot=slot, epoch=epoch, next=following)
