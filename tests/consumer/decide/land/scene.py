"""A table's writer whose requests the test completes, and short builders of its inputs."""

from collections.abc import Mapping
from dataclasses import replace
from math import inf
from typing import TypeVar

from binwright.consumer.decide.land import machine
from binwright.consumer.decide.land.states import (
    Append,
    ClaimTable,
    Committed,
    DeleteOtherLeases,
    Done,
    Effect,
    HistoryRead,
    KafkaState,
    LandedOffsets,
    Landing,
    Outcome,
    QueryKafka,
    ReadHistory,
    ReadLandedOffsets,
    Request,
    WriteLease,
    Writer,
    WriterConfig,
)
from binwright.protocol.landing import OffsetRange, Staged
from binwright.protocol.model import Slot, TopicPartition
from binwright.protocol.orders import TableOrder
from binwright.tables.ports import Commit, Table
from binwright.tables.stamp import Stamp

TOPIC, ID = "orders", "id-1"
TABLE = Table(topic=TOPIC, group="g", cluster="c")
CONFIG = WriterConfig(table=TABLE, writer="me")
NOTHING_LANDED = LandedOffsets({}, {})
EFFECT = TypeVar("EFFECT")


def part(number: int, topic: str = TOPIC) -> TopicPartition:
    return TopicPartition(topic, number)


def at(offsets: Mapping[int, int], topic: str = TOPIC) -> dict[TopicPartition, int]:
    """Return offsets by partition, of the numbers of a topic's partitions."""
    return {part(number, topic): offset for number, offset in offsets.items()}


def staged(
    file: str,
    ranges: Mapping[int, tuple[int, int]],
    *,
    topic: str = TOPIC,
    topic_id: str | None = ID,
    cut: tuple[int, ...] = (),
    size: int = 10,
    age_s: float = 0.0,
    rows: int | None = None,
) -> Staged:
    return Staged(
        topic=topic,
        topic_id=topic_id,
        file=file,
        rows=sum(end - first for first, end in ranges.values()) if rows is None else rows,
        bytes=size,
        ranges={TopicPartition(topic, p): OffsetRange(*r) for p, r in ranges.items()},
        slot=Slot(0),
        epoch=1,
        age_s=age_s,
        cut=tuple(part(number, topic) for number in cut),
    )


def order(*, paused: bool, reason: str = "a repair") -> TableOrder:
    return TableOrder(topic=TOPIC, paused=paused, by="ann", reason=reason)


def stamp(
    committed: Mapping[int, int] | None = None,
    *,
    sequence: int = 1,
    writer: str = "other",
    topic_id: str | None = ID,
    full: bool = False,
    needed_from: int = 0,
    cuts: Mapping[int, int] | None = None,
    landing_id: str | None = "landing-1",
    paused: str = "",
) -> Stamp:
    return Stamp(
        group=TABLE.group,
        cluster=TABLE.cluster,
        writer=writer,
        sequence=sequence,
        topic_ids={TOPIC: topic_id},
        landing_id=landing_id,
        needed_from=needed_from,
        committed=at(committed or {}),
        cuts=at(cuts or {}),
        full=full,
        paused=paused,
    )


def claim(writer: str = "other") -> Stamp:
    return Stamp(group="g", cluster="c", writer=writer, sequence=0)


def history(*stamps: Stamp | str | None) -> list[Commit]:
    """Return commits, newest first, of stamps in the order in which they were committed."""
    texts = [s.encode() if isinstance(s, Stamp) else s for s in stamps]
    return [Commit(version, text) for version, text in enumerate(texts)][::-1]


def topic_state(
    bounds: Mapping[int, tuple[int, int]] | None = None,
    topic_id: str | None = ID,
    landing_id: str | None = "landing-1",
    landing_end: int | None = None,
    leaderless: frozenset[int] = frozenset(),
) -> KafkaState:
    return KafkaState(
        {TOPIC: topic_id},
        {part(p): bound for p, bound in (bounds or {0: (0, 10)}).items()},
        landing_id,
        landing_end,
        frozenset(map(part, leaderless)),
    )


def landed_offsets(
    highest: Mapping[int, int] | None = None, group: Mapping[int, int] | None = None
) -> LandedOffsets:
    return LandedOffsets(at(highest or {}), at(group or {}))


class Scene:
    """One writer, the time, and its effects so far."""

    def __init__(self, config: WriterConfig = CONFIG) -> None:
        self.writer = Writer(config)
        self.now = 0.0
        self.effects: list[Effect] = []
        self.next_offset = 0

    @property
    def landing(self) -> Landing:
        assert isinstance(self.writer.phase, Landing)
        return self.writer.phase

    @property
    def committed(self) -> dict[int, int]:
        """Return what is committed of `TOPIC`: number of the partition -> offset."""
        return {p.partition: o for p, o in self.landing.chain.committed.items() if p.topic == TOPIC}

    def next_request(self, after_s: float = 0.0) -> Request | None:
        self.now += after_s
        self.writer, wanted = machine.next_request(self.writer, self.now)
        return wanted

    def complete(self, outcome: Outcome) -> list[Effect]:
        self.writer, effects = machine.apply_outcome(self.writer, outcome, self.now)
        self.effects += effects
        return list(effects)

    def announce(self, message: Staged, offset: int | None = None) -> list[Effect]:
        offset = self.next_offset if offset is None else offset
        self.next_offset = offset + 1
        read = [(offset, message)]
        self.writer, effects = machine.apply_announcements(self.writer, read, self.now)
        self.effects += effects
        return list(effects)

    def order(
        self, *, paused: bool, reason: str = "a repair", read_at: float = inf
    ) -> list[Effect]:
        """Apply an order about the table, known as of this time."""
        given = order(paused=paused, reason=reason)
        self.writer, effects = machine.apply_order(self.writer, given, read_at)
        self.effects += effects
        return list(effects)

    def appends(self, after_s: float = 10.0) -> Append:
        """Let time pass until the writer requests a commit, without a reply from Kafka."""
        wanted = self.next_request(after_s)
        if isinstance(wanted, QueryKafka):
            self.complete(Committed())  # not a topic state: Kafka is asked again later
            wanted = self.next_request()
        assert isinstance(wanted, Append), wanted
        return wanted

    def change(self, **fields: object) -> None:
        phase = replace(self.landing, **fields)  # type: ignore[arg-type]
        self.writer = replace(self.writer, phase=phase)


def effects_of(effects: list[Effect], kind: type[EFFECT]) -> list[EFFECT]:
    return [effect for effect in effects if isinstance(effect, kind)]


def claimed(config: WriterConfig = CONFIG) -> Scene:
    """Return a writer whose claim is committed, on a table that is new."""
    scene = Scene(config)
    assert isinstance(scene.next_request(), WriteLease)
    scene.complete(Done())
    assert isinstance(scene.next_request(), DeleteOtherLeases)
    scene.complete(Done())
    assert isinstance(scene.next_request(), ClaimTable)
    scene.complete(Committed())
    return scene


def landing(
    bounds: Mapping[int, tuple[int, int]] | None = None, config: WriterConfig = CONFIG
) -> Scene:
    """Return a writer of a new table whose first stamp has fixed where partitions begin."""
    scene = claimed(config)
    assert isinstance(scene.next_request(), QueryKafka)
    scene.complete(topic_state(bounds))
    assert isinstance(scene.next_request(), ReadHistory)
    scene.complete(HistoryRead(history(None, claim("me-1")), complete=True))
    assert isinstance(scene.next_request(), ReadLandedOffsets)
    scene.complete(NOTHING_LANDED)
    assert isinstance(scene.next_request(), Append)
    scene.complete(Committed())
    scene.effects.clear()
    return scene
