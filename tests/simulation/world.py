"""The whole system on fakes and virtual time: monitor, controllers, consumers, table writers."""

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from math import inf
from typing import Any, TypeVar
from uuid import NAMESPACE_OID, uuid5

from tests.builders import configured
from tests.look.agreement import differences
from tests.simulation.gate import Gate, gated

from binwright.consumer.decide.buffer import BatchConfig
from binwright.consumer.decide.land.states import WriterConfig
from binwright.consumer.ingest import Ingest, IngestConfig
from binwright.consumer.land.announcements import LandingTopic
from binwright.consumer.land.backfill import EarlierStager
from binwright.consumer.land.context import SharedLake, WriterContext
from binwright.consumer.land.maintenance import MaintenanceConfig, TableMaintenance
from binwright.consumer.land.orders import TableOrders
from binwright.consumer.land.replay import BadRecordDecoder
from binwright.consumer.land.writers import Writers
from binwright.consumer.mailbox import open_mailbox
from binwright.consumer.read.ranges import RangeReader
from binwright.consumer.stage.file_writer import RowWriter
from binwright.controller.decide.events import Event, Tick
from binwright.controller.decide.states import Sentinel
from binwright.controller.group_context import GroupContext
from binwright.controller.leadership import Leadership
from binwright.group.config import GroupConfig
from binwright.group.fold import Measured, RecordRead
from binwright.group.group import Group
from binwright.group.ownership import Owned
from binwright.kafka.election import LeadershipLost
from binwright.kafka.metrics_topic import Measurements
from binwright.look.group_view import GroupView
from binwright.monitor.group_needs import GroupNeeds
from binwright.monitor.passes import Monitor
from binwright.packing.catalogue import algorithm
from binwright.protocol import wire
from binwright.protocol.errors import MalformedMessage
from binwright.protocol.landing import Staged, decode_staged
from binwright.protocol.metadata import Inbound, Report, decode_inbound
from binwright.protocol.metrics import Measurement, decode_measurement
from binwright.protocol.model import Slot, TopicPartition
from binwright.protocol.orders import GroupOrder
from binwright.protocol.patterns import Pattern, compile_pattern
from binwright.protocol.ports.kafka import ControlTopics
from binwright.protocol.selection import Selection
from binwright.runtime.run import background_tasks, must_not_end
from binwright.runtime.settings.monitor import MonitorSettings
from binwright.tables.ports import Table
from binwright.tables.targets import Target
from binwright.testing.control_topics import FakeControlTopics, loop_ms
from binwright.testing.data_topics import FakeDataReader, FakePace, FakeTopics
from binwright.testing.fleet import FakeFleet
from binwright.testing.lake import FakeLake
from binwright.testing.lake_storage import FakeStorage
from binwright.testing.staging import FakeStaging

T = TypeVar("T")

P = [TopicPartition("orders", number) for number in range(4)]
GROUP, METADATA, METRICS = "simulation", "simulation.metadata", "binwright.metrics"
COMMANDS, LANDING = "simulation.commands", "simulation.landing"
ORDERS = "simulation.group-orders"
NEEDS = "binwright.metrics.needs"
TABLE = Table("", GROUP, "a cluster")
CONFIG = replace(
    configured(120_000, 100_000, replan_interval_s=20.0, plan_timeout_s=60.0), stale_s=30.0
)

INGEST = IngestConfig(batch=BatchConfig(wait_s=0.6))


async def until(condition: Callable[[], bool], timeout_s: float = 120.0) -> None:
    """Wait for a condition, on the virtual clock."""
    deadline = asyncio.get_running_loop().time() + timeout_s
    while not condition():
        assert asyncio.get_running_loop().time() < deadline, f"not true within {timeout_s} s"
        await asyncio.sleep(0.25)


class MortalControlTopics:
    """A controller's bus that kills it after it has published `dies_after` records."""

    def __init__(self, bus: FakeControlTopics, dies_after: int) -> None:
        self.bus, self.dies_after = bus, dies_after

    def __getattr__(self, name: str) -> Any:
        return getattr(self.bus, name)

    async def publish(self, topic: str, partition: int, key: bytes, value: bytes) -> int:
        if not self.dies_after:
            raise ControllerDied
        self.dies_after -= 1
        return await self.bus.publish(topic, partition, key, value)


class ControllerDied(Exception):
    """The controller was killed between two records."""


class WatchedLeadership(Leadership):
    """A leadership whose records and measurements a view reads, which decides by the same."""

    def __init__(self, bus: ControlTopics, *args: Any, **more: Any) -> None:
        super().__init__(bus, *args, **more)
        self.view = GroupView.of(self.state.group.config)

    def _feed(self, event: Event) -> None:
        match event:
            case RecordRead(offset=offset, message=message):
                self.view.apply(offset, loop_ms(), message)
            case Measured(measurement=measurement):
                # A monitor's own time is the wall clock's, and all else here is the loop's.
                self.view.apply_measurement(replace(measurement, at_ms=loop_ms()))
        super()._feed(event)
        group = self.state.group
        known = group.config.limits == self.view.group.config.limits
        known = known and group.load.known_catch_up == self.view.group.load.known_catch_up
        if isinstance(event, Tick) and known:  # else what it has published is still on its way
            found = differences(self.state, self.view, group.people.wall_ms)
            assert not found, found


class Process:
    """One consumer process: it sends its Hello, then reads and writes."""

    def __init__(self, world: "World", slot: Slot) -> None:
        self.world, self.slot = world, slot
        self.name = f"process-{slot}-{world.fleet.starts[slot]}"
        self.gate = Gate()
        self.ingest: Ingest | None = None
        self.lake = FakeLake(world.storage, world.staging, latency_s=world.write_s)
        self.lake.refusing = world.refusing
        self.reader = FakeDataReader(world.topics, GROUP)
        self.part_reader = FakeDataReader(world.topics, GROUP)
        self.reader.pace = self.part_reader.pace = FakePace(world.process_bytes_per_s)
        self.grants = 0

    async def run(self) -> None:
        world = self.world
        await asyncio.sleep(world.start_s.get(self.slot, 0.0))
        bus, reader, staging, lake = (
            gated(port, self.gate) for port in (world.bus, self.reader, world.staging, self.lake)
        )
        mailbox = await open_mailbox(bus, METADATA, COMMANDS, self.slot, self.name, "test", loop_ms)

        async def open_lake() -> Any:
            return lake

        context = WriterContext(
            lake=SharedLake(open_lake),
            targets=world.targets,
            server=lambda _: "sc://spark",
            append_limit_s=60.0,
            bus=bus,
            landing_topic=LANDING,
            announcements=LandingTopic(bus, LANDING, loop_ms),
            orders=TableOrders(bus, ORDERS),
            reader=reader,
            staging=staging,
            bad_records=BadRecordDecoder(staging=staging),
            earlier=EarlierStager(
                reader=RangeReader(
                    lambda: contextlib.nullcontext(gated(self.part_reader, self.gate))
                ),
                writer=RowWriter(staging=staging),
            ),
            config=self._writer_config,
            maintenance=TableMaintenance(MaintenanceConfig(), lambda _: "sc://spark"),
        )
        self.ingest = Ingest(
            mailbox=mailbox,
            reader=reader,
            part_reader=lambda: contextlib.nullcontext(gated(self.part_reader, self.gate)),
            staging=staging,
            landing_topic=LANDING,
            writers=partial(Writers, context),
            config=replace(world.ingest_config, targets=world.targets),
            wall_ms=loop_ms,
        )
        await self.ingest.run()

    def _writer_config(self, target: Target) -> WriterConfig:
        self.grants += 1
        return WriterConfig(
            table=replace(TABLE, topic=target.topic, named=target.name),
            writer=uuid5(NAMESPACE_OID, f"{self.name}/{self.grants}").hex,
            from_latest=self.world.ingest_config.from_latest,
            freshness_s=2.0,
        )

    def drain(self) -> None:
        if self.ingest is not None:
            self.ingest.leave()


@dataclass
class World:
    """One group with its topics, storage, monitors, controllers and consumers."""

    topics: FakeTopics
    names: tuple[str, ...]
    patterns: tuple[Pattern, ...] = ()
    bus: FakeControlTopics = field(
        default_factory=lambda: FakeControlTopics({METRICS: 1}, latency_s=0.002)
    )
    storage: FakeStorage = field(default_factory=FakeStorage)
    staging: FakeStaging = field(default_factory=FakeStaging)
    write_s: float = 0.5
    start_s: Mapping[Slot, float] = field(default_factory=dict)  # what a process takes to begin
    process_bytes_per_s: float = inf  # what each process can read
    refusing: set[str] = field(default_factory=set)  # tables that accept no rows
    named: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Topic -> its tables; else it has one of its name."""
    ingest_config: IngestConfig = INGEST
    config: GroupConfig = CONFIG
    fleet: FakeFleet = field(init=False)
    controllers: list[Leadership] = field(default_factory=list)
    tasks: list[asyncio.Task[None]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.fleet = FakeFleet(lambda slot: Process(self, slot))

    def targets(self, topic: str) -> tuple[Target, ...]:
        return tuple(Target(topic, name) for name in self.named.get(topic, (topic,)))

    def start_controller(self, dies_after: int | None = None) -> asyncio.Task[None]:
        """Start another controller; it dies after `dies_after` records unless that is None."""
        config = replace(self.config, topics=Selection(frozenset(self.names), self.patterns))
        group_context = GroupContext(
            METADATA, COMMANDS, LANDING, ORDERS, NEEDS, config, algorithm("sticky")
        )
        bus: ControlTopics = (
            self.bus if dies_after is None else MortalControlTopics(self.bus, dies_after)
        )
        measurements = Measurements(bus, METRICS)
        controller = WatchedLeadership(bus, self.fleet, group_context, measurements, now_ms=loop_ms)
        self.controllers.append(controller)
        self.tasks.append(asyncio.create_task(self._lead(controller, measurements)))
        return self.tasks[-1]

    @staticmethod
    async def _lead(controller: Leadership, measurements: Measurements) -> None:
        try:
            async with background_tasks(must_not_end(measurements.run())):
                await controller.lead()
        except* (LeadershipLost, ControllerDied):
            pass

    def kill_controller(self) -> None:
        self.tasks[-1].cancel()

    def controller_dead(self) -> bool:
        return self.tasks[-1].done()

    async def order(self, order: GroupOrder) -> None:
        """Give an order, as a person does."""
        await self.bus.publish(ORDERS, 0, wire.key(order), wire.encode(order))

    def group(self) -> Group:
        return self.controllers[-1].state.group

    def steady(self) -> bool:
        """Whether the plan is carried out: all partitions have readers, their tables writers."""
        state = self.controllers[-1].state
        if not isinstance(state, Sentinel):
            return False
        group, there = state.group, self.topics.logs.keys()
        owned = (*group.members.partitions.values(), *group.members.writers.values())
        return (
            all(isinstance(at, Owned) for at in owned)
            and group.members.partitions.keys() == there
            and group.members.writers.keys() == {p.topic for p in there}
        )

    def process(self, slot: int) -> Process:
        worker = self.fleet.worker(Slot(slot))
        assert isinstance(worker, Process)
        return worker

    def owner(self, partition: TopicPartition) -> Slot:
        slot = self.group().members.partitions[partition].slot
        assert slot is not None
        return slot

    def writer(self, topic: str) -> Slot:
        slot = self.group().members.writers[topic].slot
        assert slot is not None
        return slot

    def sent(self, kind: type[T]) -> list[T]:
        return [message for message in self.metadata_messages() if isinstance(message, kind)]

    def report(self, slot: int) -> Report:
        return [report for report in self.sent(Report) if report.slot == slot][-1]

    def announced(self) -> list[Staged]:
        return [
            decode_staged(record.value)
            for partition in range(8)
            for record in self.bus.records(LANDING, partition)
            if b"/" not in (record.key or b"")  # else it is about parts of a split partition
        ]

    def values(self, partition: TopicPartition) -> list[bytes]:
        table = self.storage.tables.get(partition.topic)
        rows = table.rows.get(partition, []) if table else []
        return [row.value or b"" for row in rows]

    def landed(self) -> int:
        return sum(rows.total() for rows in self.storage.landed().values())

    def start_monitor(self) -> None:
        settings = MonitorSettings(interval_s=1.0, window_s=5.0, topic=METRICS)
        work = Monitor(
            self.topics, self.bus, Selection(frozenset(self.names), self.patterns), settings
        )
        self.tasks.append(asyncio.create_task(work.run()))

    def start_following_monitor(self) -> None:
        """Start a monitor whose settings name no topic: it measures what the group needs."""
        settings = MonitorSettings(interval_s=1.0, window_s=5.0, topic=METRICS)
        watch = Monitor(self.topics, self.bus, Selection(), settings)
        needs = GroupNeeds(self.bus, NEEDS, Selection(), watch.measurer.set_selection)
        work = (watch.run(), needs.run())
        self.tasks[:0] = map(asyncio.create_task, work)  # the last task is the controller's

    def metadata_messages(self) -> list[Inbound]:
        """Return the messages of metadata partition 0; malformed records are skipped."""
        found = []
        for record in self.bus.records(METADATA, 0):
            with contextlib.suppress(MalformedMessage):
                found.append(decode_inbound(record.value))
        return found

    def measured(self) -> list[Measurement]:
        return [decode_measurement(r.value) for r in self.bus.records(METRICS, 0)]

    def load(self, rates: Mapping[TopicPartition, float]) -> None:
        for partition, rate in rates.items():
            self.topics.grow(partition, rate)

    def audit(self) -> dict[TopicPartition, tuple[list[int], list[int]]]:
        """Return lost and duplicated offsets by partition, where a table has any."""
        landed = self.storage.landed()
        mismatches = {}
        for partition in self.topics.logs:
            start, end = self.topics.bounds(partition)
            found = [landed.get(partition, Counter())]
            if names := self.named.get(partition.topic):
                found = [self._landed_in(name, partition) for name in names]
            for counts in found:
                lost = [offset for offset in range(start, end) if not counts[offset]]
                duplicated = [offset for offset, times in counts.items() if times > 1]
                if lost or duplicated:
                    mismatches[partition] = (lost[:5], duplicated[:5])
        return mismatches

    def _landed_in(self, table: str, partition: TopicPartition) -> Counter[int]:
        found = self.storage.tables.get(table)
        return Counter(row.offset for row in (found.rows.get(partition, ()) if found else ()))

    async def all_landed_once(self, timeout_s: float = 120.0) -> None:
        """Stop the load and wait until all of it has landed exactly once."""
        self.load(dict.fromkeys(self.topics.logs, 0.0))
        deadline = asyncio.get_running_loop().time() + timeout_s
        while mismatches := self.audit():
            if asyncio.get_running_loop().time() > deadline:
                raise AssertionError(f"not landed exactly once after {timeout_s} s: {mismatches}")
            await asyncio.sleep(0.5)


@contextlib.asynccontextmanager
async def world(
    partitions: Mapping[str, int],
    config: GroupConfig = CONFIG,
    patterns: Sequence[str] = (),
    bus: FakeControlTopics | None = None,
) -> AsyncIterator[World]:
    """Run a monitor and a controller; end all tasks and report every failure at the end."""
    compiled = tuple(map(compile_pattern, patterns))
    created = World(FakeTopics(partitions), tuple(partitions), compiled, config=config)
    created.bus = bus or created.bus
    created.start_monitor()
    created.start_controller()
    try:
        yield created
        failed = [t.exception() for t in created.tasks if t.done() and not t.cancelled()]
        assert not any(failed), failed
    finally:
        for task in created.tasks:
            task.cancel()
        await asyncio.gather(*created.tasks, return_exceptions=True)
        await created.fleet.close()
