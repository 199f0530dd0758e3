"""The whole system on fakes and virtual time: monitor, controllers, consumers, tables' writers."""

import asyncio
import contextlib
import re
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from binwright.consumer.ingest import Ingest, IngestRules
from binwright.consumer.mailbox import open_mailbox
from binwright.consumer.writer.housekeeping import HousekeepingRules
from binwright.consumer.writer.writers import Writers
from binwright.controller.measurements import Measurements
from binwright.controller.steer import Controller, Deposed, Realm
from binwright.core import wire
from binwright.core.consumer.batch import BatchRules
from binwright.core.errors import MalformedMessage
from binwright.core.group import Group
from binwright.core.messages import Inbound, Measurement, Report, Staged
from binwright.core.model import BytesPerSecond, Slot, TopicPartition
from binwright.core.ownership import Owned
from binwright.core.packing.catalogue import algorithm
from binwright.core.ports import Bus, Table
from binwright.core.rules import Rules
from binwright.core.selection import Selection
from binwright.core.states import Sentinel
from binwright.core.writer.requests import WriterRules
from binwright.monitor.needs import GroupNeeds
from binwright.monitor.watch import Watch
from binwright.shell.run import endless, meanwhile
from binwright.shell.settings import MonitorSettings
from binwright.testing.bus import FakeBus
from binwright.testing.fleet import FakeFleet
from binwright.testing.intake import FakeIntake, FakeTopics
from binwright.testing.lake import FakeLake, FakeStorage
from binwright.testing.staging import FakeStaging

from .gate import Gate, gated

T = TypeVar("T")

P = [TopicPartition("orders", number) for number in range(4)]
GROUP, METADATA, METRICS = "house", "house.metadata", "binwright.metrics"
LANDING, NEEDS = "house.landing", "binwright.metrics.needs"
TABLE = Table("", GROUP, "a cluster")
RULES = Rules(
    limit=BytesPerSecond(120_000),
    capacity=BytesPerSecond(100_000),
    look_again_s=20.0,
    consumer_timeout_s=10.0,
    plan_timeout_s=60.0,
    repeat_s=10.0,
    stale_s=30.0,
)

INGEST = IngestRules(batch=BatchRules(wait_s=0.6))


async def until(condition: Callable[[], bool], patience_s: float = 120.0) -> None:
    """Wait for it, on the virtual clock."""
    deadline = asyncio.get_running_loop().time() + patience_s
    while not condition():
        assert asyncio.get_running_loop().time() < deadline, "it never came about"
        await asyncio.sleep(0.25)


def loop_ms() -> int:
    """Return the virtual clock's time."""
    return int(asyncio.get_running_loop().time() * 1000)


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
        self.name = f"process-{slot}-{world.fleet.born[slot]}"
        self.gate = Gate()
        self.ingest: Ingest | None = None
        self.lake = FakeLake(world.storage, world.staging, latency_s=world.write_s)
        self.lake.refusing = world.refusing
        self.intake = FakeIntake(world.topics, GROUP)
        self.grants = 0

    async def run(self) -> None:
        world = self.world
        bus, intake, staging, lake = (
            gated(port, self.gate) for port in (world.bus, self.intake, world.staging, self.lake)
        )
        mailbox = await open_mailbox(bus, METADATA, self.slot, self.name, "test", loop_ms)
        ingest = self.ingest = Ingest(
            mailbox=mailbox,
            intake=intake,
            staging=staging,
            landing_topic=LANDING,
            rules=world.ingest_rules,
            wall_ms=loop_ms,
        )

        async def open_lake() -> Any:
            return lake

        writers = Writers(
            open_lake=open_lake,
            bus=bus,
            landing_topic=LANDING,
            intake=intake,
            staging=staging,
            rules=self._rules,
            housekeeping=HousekeepingRules(),
            on_lost=ingest.lost,
            on_written=ingest.written,
            on_gap=ingest.gap,
        )
        await ingest.run(writers)

    def _rules(self, topic: str, term: int) -> WriterRules:
        self.grants += 1
        return WriterRules(
            table=replace(TABLE, topic=topic),
            writer=f"{self.name}/{self.grants}",
            term=term,
            from_latest=self.world.ingest_rules.from_latest,
            freshness_s=2.0,
        )

    def drain(self) -> None:
        if self.ingest is not None:
            self.ingest.leave()


@dataclass
class World:
    """Everything there is."""

    topics: FakeTopics
    names: tuple[str, ...]
    patterns: tuple[re.Pattern[str], ...] = ()
    bus: FakeBus = field(default_factory=lambda: FakeBus({METRICS: 1}, latency_s=0.002))
    storage: FakeStorage = field(default_factory=FakeStorage)
    staging: FakeStaging = field(default_factory=FakeStaging)
    write_s: float = 0.5
    refusing: set[str] = field(default_factory=set)  # tables that take no rows
    ingest_rules: IngestRules = INGEST
    rules: Rules = RULES
    fleet: FakeFleet = field(init=False)
    controllers: list[Controller] = field(default_factory=list)
    tasks: list[asyncio.Task[None]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.fleet = FakeFleet(lambda slot: Process(self, slot))

    def start_controller(self, words: int | None = None) -> asyncio.Task[None]:
        """Let another controller rule; it dies after so many words, if that is said."""
        rules = replace(self.rules, topics=Selection(frozenset(self.names), self.patterns))
        realm = Realm(METADATA, LANDING, NEEDS, rules, algorithm("sticky"))
        bus: Bus = self.bus if words is None else Mortal(self.bus, words)
        measurements = Measurements(bus, METRICS)
        controller = Controller(bus, self.fleet, realm, measurements)
        self.controllers.append(controller)
        self.tasks.append(asyncio.create_task(self._reign(controller, measurements)))
        return self.tasks[-1]

    @staticmethod
    async def _reign(controller: Controller, measurements: Measurements) -> None:
        try:
            async with meanwhile(endless(measurements.run())):
                await controller.reign()
        except* (Deposed, Died):
            pass

    def kill_controller(self) -> None:
        self.tasks[-1].cancel()

    def controller_dead(self) -> bool:
        return self.tasks[-1].done()

    def group(self) -> Group:
        return self.controllers[-1].state.group

    def steady(self) -> bool:
        """Whether the plan is carried out: partitions have readers, their tables writers."""
        state = self.controllers[-1].state
        if not isinstance(state, Sentinel):
            return False
        group, there = state.group, self.topics.logs.keys()
        owned = (*group.partitions.values(), *group.writers.values())
        return (
            all(isinstance(at, Owned) for at in owned)
            and group.partitions.keys() == there
            and group.writers.keys() == {p.topic for p in there}
        )

    def process(self, slot: int) -> Process:
        worker = self.fleet.worker(Slot(slot))
        assert isinstance(worker, Process)
        return worker

    def owner(self, partition: TopicPartition) -> Slot:
        slot = self.group().partitions[partition].slot
        assert slot is not None
        return slot

    def writer(self, topic: str) -> Slot:
        slot = self.group().writers[topic].slot
        assert slot is not None
        return slot

    def sent(self, kind: type[T]) -> list[T]:
        return [message for message in self.heard() if isinstance(message, kind)]

    def report(self, slot: int) -> Report:
        return [report for report in self.sent(Report) if report.slot == slot][-1]

    def announced(self) -> list[Staged]:
        return [
            wire.decode_staged(record.value)
            for partition in range(8)
            for record in self.bus.records(LANDING, partition)
        ]

    def values(self, partition: TopicPartition) -> list[bytes]:
        table = self.storage.tables.get(partition.topic)
        rows = table.rows.get(partition, []) if table else []
        return [row.value or b"" for row in rows]

    def landed(self) -> int:
        return sum(rows.total() for rows in self.storage.landed().values())

    def start_monitor(self) -> None:
        how = MonitorSettings(interval_s=1.0, window_s=5.0, topic=METRICS)
        work = Watch(self.topics, self.bus, Selection(frozenset(self.names), self.patterns), how)
        self.tasks.append(asyncio.create_task(work.run()))

    def start_following_monitor(self) -> None:
        """Start a monitor whose settings name no topic: it measures what the group needs."""
        how = MonitorSettings(interval_s=1.0, window_s=5.0, topic=METRICS)
        watch = Watch(self.topics, self.bus, Selection(), how)
        needs = GroupNeeds(self.bus, NEEDS, Selection(), watch.want)
        work = (watch.run(), needs.run())
        self.tasks[:0] = map(asyncio.create_task, work)  # the last one is the controller's

    def heard(self) -> list[Inbound]:
        """Return what stands in metadata partition 0; noise is left out."""
        found = []
        for record in self.bus.records(METADATA, 0):
            with contextlib.suppress(MalformedMessage):
                found.append(wire.decode_inbound(record.value))
        return found

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
async def world(
    partitions: Mapping[str, int], rules: Rules = RULES, patterns: Sequence[str] = ()
) -> AsyncIterator[World]:
    """Run monitor and controller; end everything, and tell of every failure, at the end."""
    fitting = tuple(map(re.compile, patterns))
    made = World(FakeTopics(partitions), tuple(partitions), fitting, rules=rules)
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
