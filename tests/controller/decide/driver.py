"""Drives a controller's machine with records, measurements and ticks of a test."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from tests import builders
from tests.builders import LIMIT, configured, measurement

from binwright.controller.decide.events import Action, Event, Packed, Publish, Send, Tick
from binwright.controller.decide.machine import begin, transition
from binwright.controller.decide.states import State
from binwright.group.config import GroupConfig
from binwright.group.fold import Measured, RecordRead, StateRecord
from binwright.group.group import Group
from binwright.group.ownership import Owned
from binwright.group.ownership import State as OwnershipState
from binwright.group.plans import Pack
from binwright.protocol.commands import (
    Command,
    StartReading,
    StartWriting,
    StopReading,
    StopWriting,
)
from binwright.protocol.metadata import Claim, Dead, Hello, Inbound, Started, Stopped
from binwright.protocol.metrics import PartitionRate
from binwright.protocol.model import BytesPerSecond, Slot, TopicPartition

P, Q = TopicPartition("orders", 0), TopicPartition("orders", 1)
A, B = Slot(0), Slot(1)
CONFIG = configured(120, 100)
C = TypeVar("C", bound=Command)


@dataclass
class ControllerDriver:
    """One controller; each record read gets the next offset of partition 0.

    Commands to writers are acknowledged at once, unless `acknowledge_writers` is False.
    """

    config: GroupConfig = CONFIG
    acknowledge_writers: bool = True
    now: float = 0.0
    offset: int = 0
    state: State = field(init=False)
    actions: list[Action] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.state, actions = begin(self.config, "me", self.now)
        self.actions += actions

    @property
    def group(self) -> Group:
        return self.state.group

    def phase(self) -> object:
        return type(self.state)

    def partition_state(self, partition: TopicPartition) -> OwnershipState:
        return self.group.members.partitions[partition]

    def feed(self, event: Event) -> list[Action]:
        """Feed one event; return the actions."""
        self.state, actions = transition(self.state, event)
        self.actions += actions
        done = list(actions)
        for slot, message in [(a.slot, a.message) for a in actions if isinstance(a, Send)]:
            if self.acknowledge_writers and isinstance(message, StartWriting | StopWriting):
                done += self.acknowledge(message, slot)
        return done

    def read(self, message: StateRecord) -> list[Action]:
        self.offset += 1
        return self.feed(RecordRead(self.now, self.offset, message))

    def tick(self, seconds: float = 1.0) -> list[Action]:
        """Let time pass, in ticks of up to 1 s."""
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
        self.read(Hello(slot=slot, process="p", version="1"))
        return self.offset

    def report(
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
        """Report as the living process; by default `writing` is what its slot owns."""
        known = self.group.members.get(slot).hello or 0
        owned = (t for t, at in self.group.members.writers.items() if isinstance(at, Owned))
        tables = [t for t in owned if self.group.members.writers[t].slot == slot]
        return self.read(
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
        """Read a `Dead` of this slot's living process."""
        epoch = self.group.members.get(slot).epoch
        assert epoch is not None, f"slot {slot} has no living process"
        return self.read(Dead(slot=slot, epoch=epoch, term=0))

    def claim(self) -> int:
        self.read(Claim(controller="me", limit=LIMIT))
        return self.offset

    def pack(self, target: dict[TopicPartition, Slot]) -> list[Action]:
        """Let a packing be requested at the next tick, and return this result of it."""
        requests = [a for a in self.tick() if isinstance(a, Pack)]
        assert requests, "no packing was requested"
        return self.feed(Packed(self.now, target))

    def stopped(self, command: StopReading, slot: Slot, offset: int | None = 7) -> list[Action]:
        return self.read(
            Stopped(
                slot=slot,
                epoch=command.epoch,
                revision=command.revision,
                next=dict.fromkeys(command.partitions, offset),
            )
        )

    def started(self, command: StartReading, slot: Slot) -> list[Action]:
        offsets = {p: 7 if offset is None else offset for p, offset in command.offsets.items()}
        return self.read(
            Started(slot=slot, epoch=command.epoch, revision=command.revision, offsets=offsets)
        )

    def acknowledge(self, command: StartWriting | StopWriting, slot: Slot) -> list[Action]:
        """Acknowledge a command to a writer."""
        epoch, revision, tables = command.epoch, command.revision, command.tables
        if isinstance(command, StartWriting):
            started = Started(slot=slot, epoch=epoch, revision=revision, offsets={}, tables=tables)
            return self.read(started)
        stopped = Stopped(slot=slot, epoch=epoch, revision=revision, next={}, tables=tables)
        return self.read(stopped)


def sent(actions: Iterable[Action]) -> list[tuple[Slot, Command]]:
    """Return the commands, each with its slot."""
    return [(a.slot, a.message) for a in actions if isinstance(a, Send)]


def sent_commands(actions: Iterable[Action], kind: type[C]) -> list[C]:
    """Return the commands of this kind."""
    return [a.message for a in actions if isinstance(a, Send) and isinstance(a.message, kind)]


def published(actions: Iterable[Action]) -> list[Inbound]:
    """Return the messages published to partition 0."""
    return [a.message for a in actions if isinstance(a, Publish)]


def leading(rates: dict[TopicPartition, float], *slots: Slot) -> ControllerDriver:
    """Return a leader with these consumers ready, and nothing assigned."""
    driver = ControllerDriver()
    driver.claim()
    for slot in slots:
        driver.hello(slot)
        driver.report(slot)
    driver.measure(dict(rates))
    return driver


def assigned(
    rates: dict[TopicPartition, float], target: dict[TopicPartition, Slot]
) -> ControllerDriver:
    """Return a leader whose partitions are all owned as in `target`."""
    driver = leading(rates, *sorted(set(target.values())))
    commands = [(a.message, a.slot) for a in driver.pack(target) if isinstance(a, Send)]
    for start, slot in commands:
        if isinstance(start, StartReading):
            driver.started(start, slot)
    return driver
