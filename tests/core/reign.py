"""A controller's machine on a log that the test writes."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TypeVar

from binwright.core.events import Action, Event, Heard, Measured, Pack, Packed, Publish, Tell, Tick
from binwright.core.group import Group, Place
from binwright.core.machine import State, begin, transition
from binwright.core.messages import (
    Claim,
    Command,
    Fence,
    Hello,
    Inbound,
    PartitionRate,
    Report,
    StartConsuming,
    Started,
    StopConsuming,
    Stopped,
)
from binwright.core.model import BytesPerSecond, Slot, TopicPartition
from binwright.core.rules import Rules

from .builders import measurement

P, Q = TopicPartition("orders", 0), TopicPartition("orders", 1)
A, B = Slot(0), Slot(1)
RULES = Rules(limit=BytesPerSecond(120.0), capacity=BytesPerSecond(100.0))
C = TypeVar("C", bound=Command)


@dataclass
class Reign:
    """One controller; offsets of partition 0 count up by themselves."""

    rules: Rules = RULES
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
        return self.group.places[partition]

    def feed(self, event: Event) -> list[Action]:
        """Feed one event; return what it asks for."""
        self.state, actions = transition(self.state, event)
        self.actions += actions
        return list(actions)

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
        held: Iterable[TopicPartition] = (),
        opening: Iterable[TopicPartition] = (),
        ahead: Iterable[TopicPartition] = (),
        closing: Iterable[TopicPartition] = (),
        leaving: bool = False,
        epoch: int | None = None,
        term: int | None = None,
    ) -> list[Action]:
        known = self.group.member(slot).hello or 0
        return self.hear(
            Report(
                slot=slot,
                epoch=known if epoch is None else epoch,
                term=(self.group.term or 0) if term is None else term,
                ready=ready,
                held=dict.fromkeys(held, 3),
                opening=tuple(opening),
                ahead=tuple(ahead),
                closing=tuple(closing),
                leaving=leaving,
            )
        )

    def claim(self) -> int:
        self.hear(Claim(controller="me"))
        return self.offset

    def pack(self, target: dict[TopicPartition, Slot]) -> list[Action]:
        """Let the Sentinel ask for a packing, and answer it."""
        asked = [a for a in self.tick() if isinstance(a, Pack)]
        assert asked, "no packing was asked for"
        return self.feed(Packed(self.now, target))

    def stopped(
        self,
        command: StopConsuming,
        slot: Slot,
        offset: int | None = 7,
        unsettled: tuple[TopicPartition, ...] = (),
    ) -> list[Action]:
        landed = dict.fromkeys(command.partitions, offset)
        return self.hear(
            Stopped(
                slot=slot,
                epoch=command.epoch,
                revision=command.revision,
                next=landed,
                quit_ms=0,
                unsettled=unsettled,
            )
        )

    def started(
        self, command: StartConsuming, slot: Slot, fences: tuple[Fence, ...] | None = None
    ) -> list[Action]:
        return self.hear(
            Started(
                slot=slot,
                epoch=command.epoch,
                revision=command.revision,
                offsets=dict.fromkeys(command.offsets, 7),
                fences=command.fences if fences is None else fences,
            )
        )


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
    for start, slot in ((a.message, a.slot) for a in reign.pack(target) if isinstance(a, Tell)):
        assert isinstance(start, StartConsuming)
        reign.started(start, slot)
    return reign
