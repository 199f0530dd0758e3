"""The whole system on fakes and virtual time: monitor, controllers, consumers."""

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from binwright.consumer.ingest import Ingest, IngestRules
from binwright.consumer.landing import Tables
from binwright.consumer.mailbox import open_mailbox
from binwright.controller.steer import Controller, Deposed, Realm
from binwright.core import wire
from binwright.core.batch import BatchRules
from binwright.core.group import Group, Held
from binwright.core.machine import Sentinel
from binwright.core.messages import Inbound, Measurement
from binwright.core.model import BytesPerSecond, Slot, TopicPartition
from binwright.core.packing.catalogue import algorithm
from binwright.core.ports import Bus, Selection
from binwright.core.rules import Rules
from binwright.monitor.watch import Watch
from binwright.shell.settings import MonitorSettings
from binwright.testing.bus import FakeBus
from binwright.testing.fleet import FakeFleet
from binwright.testing.intake import FakeIntake, FakeTopics
from binwright.testing.lake import FakeLake, FakeStorage

P = [TopicPartition("orders", number) for number in range(4)]
GROUP, METADATA, METRICS = "house", "house.metadata", "binwright.metrics"
RULES = Rules(
    limit=BytesPerSecond(120_000),
    capacity=BytesPerSecond(100_000),
    look_again_s=20.0,
    consumer_timeout_s=10.0,
    plan_timeout_s=60.0,
    repeat_s=10.0,
    stale_s=30.0,
)


async def until(condition: Callable[[], bool], patience_s: float = 120.0) -> None:
    """Wait for it, on the virtual clock."""
    deadline = asyncio.get_running_loop().time() + patience_s
    while not condition():
        assert asyncio.get_running_loop().time() < deadline, "it never came about"
        await asyncio.sleep(0.25)


class Mortal:
    """A bus that a controller speaks through, until it has said so many words."""

    def __init__(self, bus: FakeBus, words: int) -> None:
        self.bus, self.words = bus, words

    def __getattr__(self, name: str) -> Any:
        return getattr(self.bus, name)

    async def publish(self, topic: str, partition: int, key: bytes, value: bytes) -> int:
        if not self.words:
            raise Died
        self.words -= 1
        return await self.bus.publish(topic, partition, key, value)


class Died(Exception):
    """The controller was killed between two words."""


class Process:
    """One consumer process: a Hello, then work."""

    def __init__(self, world: "World", slot: Slot) -> None:
        self.world, self.slot = world, slot
        self.ingest: Ingest | None = None
        self.lake = FakeLake(world.storage, latency_s=world.write_s)
        self.intake = FakeIntake(world.topics, GROUP)

    async def run(self) -> None:
        world = self.world
        name = f"process-{self.slot}-{world.fleet.born[self.slot]}"
        mailbox = await open_mailbox(world.bus, METADATA, self.slot, name, "test")
        tables = Tables(self.lake, GROUP, self.slot, mailbox.epoch)
        self.ingest = Ingest(
            mailbox=mailbox,
            intake=self.intake,
            tables=tables,
            topics=world.names,
            rules=IngestRules(BatchRules(cap_bytes=world.cap_bytes)),
            wall_ms=lambda: int(asyncio.get_running_loop().time() * 1000),
        )
        await self.ingest.run()

    def drain(self) -> None:
        if self.ingest is not None:
            self.ingest.leave()


@dataclass
class World:
    """Everything there is."""

    topics: FakeTopics
    names: tuple[str, ...]
    bus: FakeBus = field(default_factory=lambda: FakeBus({METRICS: 1}, latency_s=0.002))
    storage: FakeStorage = field(default_factory=FakeStorage)
    write_s: float = 0.5
    cap_bytes: int = 64_000_000
    rules: Rules = RULES
    fleet: FakeFleet = field(init=False)
    controllers: list[Controller] = field(default_factory=list)
    tasks: list[asyncio.Task[None]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.fleet = FakeFleet(lambda slot: Process(self, slot))

    def start_controller(self, words: int | None = None) -> asyncio.Task[None]:
        """Let another controller rule; it dies after so many words, if that is said."""
        realm = Realm(METADATA, METRICS, self.rules, algorithm("sticky"), frozenset(self.names))
        bus: Bus = self.bus if words is None else Mortal(self.bus, words)
        controller = Controller(bus, self.fleet, realm)
        self.controllers.append(controller)
        self.tasks.append(asyncio.create_task(self._reign(controller)))
        return self.tasks[-1]

    @staticmethod
    async def _reign(controller: Controller) -> None:
        with contextlib.suppress(Deposed):
            try:
                await controller.reign()
            except* Died:
                pass

    def kill_controller(self) -> None:
        self.tasks[-1].cancel()

    def controller_dead(self) -> bool:
        return self.tasks[-1].done()

    def group(self) -> Group:
        return self.controllers[-1].state.group

    def steady(self) -> bool:
        """Whether the plan is carried out, and every partition there is has its reader."""
        state = self.controllers[-1].state
        held = isinstance(state, Sentinel) and all(
            isinstance(place.at, Held) for place in state.group.places.values()
        )
        return held and state.group.places.keys() == self.topics.logs.keys()

    def values(self, partition: TopicPartition) -> list[bytes]:
        rows = self.storage.tables[partition.topic].rows.get(partition, [])
        return [row.value or b"" for row in rows]

    def landed(self) -> int:
        return sum(rows.total() for rows in self.storage.landed().values())

    def start_monitor(self) -> None:
        how = MonitorSettings(interval_s=1.0, window_s=5.0, topic=METRICS)
        work = Watch(self.topics, self.bus, Selection(frozenset(self.names)), how)
        self.tasks.append(asyncio.create_task(work.run()))

    def heard(self) -> list[Inbound]:
        return [wire.decode_inbound(r.value) for r in self.bus.records(METADATA, 0)]

    def measured(self) -> list[Measurement]:
        return [wire.decode_measurement(r.value) for r in self.bus.records(METRICS, 0)]

    def load(self, rates: Mapping[TopicPartition, float]) -> None:
        for partition, rate in rates.items():
            self.topics.grow(partition, rate)

    def audit(self) -> dict[TopicPartition, tuple[list[int], list[int]]]:
        """Return, per partition that is not exactly right, the lost and the doubled offsets."""
        landed = self.storage.landed()
        wrong = {}
        for partition in self.topics.logs:
            start, end = self.topics.bounds(partition)
            seen = landed.get(partition, Counter())
            lost = [offset for offset in range(start, end) if not seen[offset]]
            doubled = [offset for offset, times in seen.items() if times > 1]
            if lost or doubled:
                wrong[partition] = (lost[:5], doubled[:5])
        return wrong

    async def settled(self, patience_s: float = 120.0) -> None:
        """Stop the load, and wait until all of it has landed exactly once."""
        self.load(dict.fromkeys(self.topics.logs, 0.0))
        deadline = asyncio.get_running_loop().time() + patience_s
        while wrong := self.audit():
            if asyncio.get_running_loop().time() > deadline:
                raise AssertionError(f"not landed exactly once after {patience_s} s: {wrong}")
            await asyncio.sleep(0.5)


@contextlib.asynccontextmanager
async def world(partitions: Mapping[str, int], rules: Rules = RULES) -> AsyncIterator[World]:
    """Run monitor and controller; end everything, and tell of every failure, at the end."""
    made = World(FakeTopics(partitions), tuple(partitions), rules=rules)
    made.start_monitor()
    made.start_controller()
    try:
        yield made
        failed = [t.exception() for t in made.tasks if t.done() and not t.cancelled()]
        assert not any(failed), failed
    finally:
        for task in made.tasks:
            task.cancel()
        await asyncio.gather(*made.tasks, return_exceptions=True)
        await made.fleet.close()
