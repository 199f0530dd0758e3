"""A controller's machine on a log that the test writes."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from binwright.core.events import Action, Event, Heard, Measured, Pack, Packed, Publish, Tell, Tick
from binwright.core.group import Group
from binwright.core.machine import begin, transition
from binwright.core.messages import (
    Claim,
    Command,
    Dead,
    Hello,
    Inbound,
    PartitionRate,
    Started,
    StartReading,
    StartWriting,
    Stopped,
    StopReading,
    StopWriting,
)
from binwright.core.model import BytesPerSecond, Slot, TopicPartition
from binwright.core.ownership import Owned
from binwright.core.ownership import State as Place
from binwright.core.rules import Rules
from binwright.core.states import State

from . import builders
from .builders import measurement

P, Q = TopicPartition("orders", 0), TopicPartition("orders", 1)
A, B = Slot(0), Slot(1)
RULES = Rules(limit=BytesPerSecond(120.0), capacity=BytesPerSecond(100.0))
C = TypeVar("C", bound=Command)


@dataclass
class Reign:
    """One controller; offsets of partition 0 count up by themselves.

    Orders to writers are answered at once, unless the test does so itself.
    """

    rules: Rules = RULES
    writers_answer: bool = True
    now: float = 0.0
    offset: int = 0
    state: State = field(init=False)
    actions: list[Action] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.state, actions = begin(self.rules, "me", self.now)
        self.actions += actions

    @property
    def group(self) -> Group:
        return self.state.group

    def phase(self) -> object:
        return type(self.state)

    def place(self, partition: TopicPartition) -> Place:
        return self.group.partitions[partition]

    def feed(self, event: Event) -> list[Action]:
        """Feed one event; return what it asks for."""
        self.state, actions = transition(self.state, event)
        self.actions += actions
        done = list(actions)
        for slot, message in [(a.slot, a.message) for a in actions if isinstance(a, Tell)]:
            if self.writers_answer and isinstance(message, StartWriting | StopWriting):
                done += self.answer(message, slot)
        return done

    def hear(self, message: Inbound) -> list[Action]:
        self.offset += 1
        return self.feed(Heard(self.now, self.offset, message))

    def tick(self, seconds: float = 1.0) -> list[Action]:
        """Let time pass, in steps as the shell does."""
        done: list[Action] = []
        while seconds > 0:
            self.now += min(1.0, seconds)
            seconds -= 1.0
            done += self.feed(Tick(self.now))
        return done

    def measure(self, rates: dict[TopicPartition, float | None]) -> None:
        topics = {p.topic for p in rates}
        for topic in sorted(topics):
            found = tuple(
                PartitionRate(
                    partition=p.partition,
                    rate=None if rate is None else BytesPerSecond(rate),
                    window_s=30,
                    end=10,
                    start=0,
                    bytes_per_record=None,
                )
                for p, rate in sorted(rates.items())
                if p.topic == topic
            )
            self.feed(Measured(self.now, measurement(topic, found)))

    def hello(self, slot: Slot) -> int:
        self.hear(Hello(slot=slot, process="p", version="1"))
        return self.offset

    def report(  # noqa: PLR0913 - what a report says
        self,
        slot: Slot,
        *,
        ready: bool = True,
        reading: Iterable[TopicPartition] | Mapping[TopicPartition, int | None] = (),
        writing: Iterable[str] | None = None,
        leaving: bool = False,
        epoch: int | None = None,
        term: int | None = None,
    ) -> list[Action]:
        """Report as the living process; by default it writes what it is believed to write."""
        known = self.group.member(slot).hello or 0
        owned = (t for t, at in self.group.writers.items() if isinstance(at, Owned))
        tables = [t for t in owned if self.group.writers[t].slot == slot]
        return self.hear(
            builders.report(
                slot,
                known if epoch is None else epoch,
                term=(self.group.term or 0) if term is None else term,
                ready=ready,
                reading=reading,
                writing=tables if writing is None else writing,
                leaving=leaving,
            )
        )

    def dead(self, slot: Slot) -> list[Action]:
        """Read that the living process of this slot is declared dead."""
        epoch = self.group.member(slot).epoch
        assert epoch is not None, "nobody lives there"
        return self.hear(Dead(slot=slot, epoch=epoch, term=0))

    def claim(self) -> int:
        self.hear(Claim(controller="me"))
        return self.offset

    def pack(self, target: dict[TopicPartition, Slot]) -> list[Action]:
        """Let the Sentinel ask for a packing, and answer it."""
        asked = [a for a in self.tick() if isinstance(a, Pack)]
        assert asked, "no packing was asked for"
        return self.feed(Packed(self.now, target))

    def stopped(self, command: StopReading, slot: Slot, offset: int | None = 7) -> list[Action]:
        return self.hear(
            Stopped(
                slot=slot,
                epoch=command.epoch,
                revision=command.revision,
                next=dict.fromkeys(command.partitions, offset),
            )
        )

    def started(self, command: StartReading, slot: Slot) -> list[Action]:
        begun = {p: 7 if offset is None else offset for p, offset in command.offsets.items()}
        return self.hear(
            Started(slot=slot, epoch=command.epoch, revision=command.revision, offsets=begun)
        )

    def answer(self, command: StartWriting | StopWriting, slot: Slot) -> list[Action]:
        """Acknowledge an order to a writer."""
        epoch, revision, tables = command.epoch, command.revision, command.tables
        if isinstance(command, StartWriting):
            begun = Started(slot=slot, epoch=epoch, revision=revision, offsets={}, tables=tables)
            return self.hear(begun)
        ended = Stopped(slot=slot, epoch=epoch, revision=revision, next={}, tables=tables)
        return self.hear(ended)


def told(actions: Iterable[Action], kind: type[C]) -> list[C]:
    """Return the commands of this kind."""
    return [a.message for a in actions if isinstance(a, Tell) and isinstance(a.message, kind)]


def published(actions: Iterable[Action]) -> list[Inbound]:
    """Return what goes to partition 0."""
    return [a.message for a in actions if isinstance(a, Publish)]


def ruling(rates: dict[TopicPartition, float], *slots: Slot) -> Reign:
    """Return a reign that has begun, with these consumers ready, and nothing assigned."""
    reign = Reign()
    reign.claim()
    for slot in slots:
        reign.hello(slot)
        reign.report(slot)
    reign.measure(dict(rates))
    return reign


def holding(rates: dict[TopicPartition, float], target: dict[TopicPartition, Slot]) -> Reign:
    """Return a reign in which every partition is where it should be."""
    reign = ruling(rates, *sorted(set(target.values())))
    orders = [(a.message, a.slot) for a in reign.pack(target) if isinstance(a, Tell)]
    for start, slot in orders:
        if isinstance(start, StartReading):
            reign.started(start, slot)
    return reign
