"""The system under test: real servers, two controllers, a monitor, consumers, cuttable lines."""

import contextlib
import json
import os
import secrets
from collections.abc import (
    AsyncIterator,
    Callable,
    Collection,
    Iterable,
    Mapping,
)
from dataclasses import dataclass, field
from pathlib import Path

import psutil
from aiokafka import TopicPartition as KafkaPartition
from aiokafka.admin import AIOKafkaAdminClient, RecordsToDelete
from tests.chaos.aimed_points import AimedPoints, aimed_points
from tests.chaos.bombed_topics import VARIANT
from tests.chaos.evolving_topics import EvolvingTopics
from tests.chaos.pace import PACE_VARIABLE
from tests.chaos.pod_memory import MEMORY_VARIABLE, POD_BYTES
from tests.chaos.proxy import Proxy, proxy
from tests.chaos.servers import (
    disk,
    may_mount,
    node_settings,
    start_broker,
)
from tests.chaos.system_settings import (
    LAKE,
    PACE,
    RegistryTopics,
    SystemShape,
    chaos_settings,
    partition_count,
    spark_settings,
)

from binwright.balancer.admin_client import AdminClient
from binwright.fleets.process import consumer_command, process_fleet
from binwright.kafka.client import client_options
from binwright.kafka.control_records import METADATA_CONFIG, METRICS_CONFIG
from binwright.kafka.control_topics import KafkaControlTopics
from binwright.local.child import Child, Command
from binwright.local.kafka import EmbeddedBroker
from binwright.local.server import HOST, reserve_port
from binwright.local.spark import SparkServer, run_spark
from binwright.local.stack import Service
from binwright.look.follower import watch_group
from binwright.look.group_view import GroupView
from binwright.protocol.model import Slot, TopicPartition
from binwright.protocol.names import is_lease, is_staged_file
from binwright.runtime.run import background_tasks
from binwright.runtime.settings.group import Settings
from binwright.runtime.settings.loading import settings_environment

END_S = 15.0


@dataclass(frozen=True, slots=True)
class LoggedService:
    """A service that is started again when it ends, and its log."""

    service: Service
    log: Path

    @property
    def pid(self) -> int | None:
        """The process; None while it does not run."""
        return self.service.pid


@dataclass(slots=True)
class System:
    """Everything that faults are done to."""

    directory: Path
    settings: Settings  # as the services see them: through the proxies
    direct_settings: Settings  # as we do
    brokers: tuple[EmbeddedBroker, ...]
    sparks: tuple[SparkServer, ...]  # each writes some of the tables
    kafka_proxies: tuple[Proxy, ...]
    spark_proxies: tuple[Proxy, ...]
    aimed_points: AimedPoints
    bus: KafkaControlTopics
    controllers: tuple[LoggedService, ...]
    monitor: LoggedService
    lake_mount: Path | None
    evolving: EvolvingTopics | None  # of tables by schemas of a registry
    view: GroupView = field(default_factory=GroupView)
    twins: list[Child] = field(default_factory=list)
    bombs: set[tuple[TopicPartition, int]] = field(default_factory=set)  # with their offsets

    @property
    def partitions(self) -> list[TopicPartition]:
        """All that is read."""
        topics = self.settings.topics
        return [TopicPartition(topic, n) for topic in topics for n in range(partition_count(topic))]

    def spark_of(self, topic: str) -> SparkServer:
        """Return the server that writes a table."""
        return next(s for s in self.sparks if s.address == self.direct_settings.lake.server(topic))

    def consumers(self) -> dict[Slot, list[int]]:
        """Return the processes of each slot that has any, in order of slots."""
        running = process_fleet(self.settings).running()
        return {slot: [process.pid for process in running[slot]] for slot in sorted(running)}

    def writer_epoch(self, topic: str) -> int | None:
        """Return the epoch of the consumer that lands the table; None: nobody does."""
        view = self.view.tables.by_name.get(topic)
        lands = view is not None and view.writer is not None and view.report.state == "landing"
        return view.epoch if view and lands else None

    def writer(self, topic: str) -> tuple[Slot, int] | None:
        """Return slot and youngest process of the consumer that lands the table."""
        if self.writer_epoch(topic) is None:
            return None
        slot = self.view.tables.by_name[topic].writer
        assert slot is not None
        running = process_fleet(self.settings).running().get(slot, ())
        youngest = max(running, key=lambda process: process.create_time(), default=None)
        return (slot, youngest.pid) if youngest else None

    def staged_files(self, topic: str) -> set[Path]:
        """Return the whole files that are staged for a table."""
        return {file for file in self._staging(topic) if is_staged_file(file.name)}

    def leases(self, topic: str) -> set[Path]:
        """Return the leases of a table."""
        return {file for file in self._staging(topic) if is_lease(file.name)}

    def kept_batches(self, partition: TopicPartition) -> set[Path]:
        """Return the batches of a partition that could not be decoded."""
        prefix = f"undecodable-{partition.partition}-"
        return {file for file in self._staging(partition.topic) if file.name.startswith(prefix)}

    def _staging(self, topic: str) -> Iterable[Path]:
        return (Path(self.settings.staging_path) / topic).glob("*")

    async def delete_announcements(self) -> None:
        """Delete every record of the landing topic, as its retention does."""
        topic = self.settings.landing_topic
        async with self._admin() as admin:
            ends = [await self.bus.end(topic, n) for n in range(await self.bus.partitions(topic))]
            await admin.delete_records(
                {
                    KafkaPartition(topic, n): RecordsToDelete(before_offset=end)
                    for n, end in enumerate(ends)
                }
            )

    async def delete_landing_topic(self) -> None:
        """Delete the landing topic."""
        async with self._admin() as admin:
            await admin.delete_topics([self.settings.landing_topic])

    @contextlib.asynccontextmanager
    async def _admin(self) -> AsyncIterator[AIOKafkaAdminClient]:
        admin = AIOKafkaAdminClient(**client_options(self.direct_settings.kafka))
        await admin.start()
        try:
            yield admin
        finally:
            await admin.close()

    def leader(self) -> LoggedService:
        """Return the controller that said last that it leads; else any."""
        return max(self.controllers, key=lambda c: led_since(c.log))

    def standby(self) -> LoggedService:
        """Return the other one."""
        leader = self.leader()
        return next(c for c in self.controllers if c is not leader)

    def twin(self, slot: Slot) -> Child:
        """Start one more process for a slot, as the fleet would."""
        twin = Child(
            Command(
                title=f"a twin of slot {slot}",
                argv=consumer_command(self.settings, slot),
                directory=self.directory,
                log=self.directory / f"consumer-{slot}.log",
                environment=environment(self.settings, self.aimed_points),
            )
        )
        self.twins.append(twin)
        return twin

    async def ends(
        self, partitions: Collection[TopicPartition] | None = None
    ) -> dict[TopicPartition, int]:
        """Return where these partitions end now, or all that are read."""
        chosen = self.partitions if partitions is None else partitions
        return {p: await self.bus.end(p.topic, p.partition) for p in chosen}


def led_since(log: Path) -> str:
    """Return when this controller began to lead, as its log says; "" if it does not."""
    since = ""
    for line in log.read_text(errors="replace").splitlines() if log.exists() else ():
        if '"controller.' in line:
            message = json.loads(line)
            since = message["timestamp"] if message["event"] == "controller.leading" else ""
    return since


def environment(settings: Settings, applied: AimedPoints) -> dict[str, str]:
    """Return a service's environment, with the hooks."""
    memory = {MEMORY_VARIABLE: str(POD_BYTES)} if VARIANT in settings.topics else {}
    pace = {PACE_VARIABLE: str(PACE)} if settings.controller.split else {}
    own = settings_environment(settings) | applied.environment() | memory | pace
    return os.environ | own


@contextlib.asynccontextmanager
async def run_system(
    directory: Path,
    shape: SystemShape,
    progress: Callable[[str], None],
    topics: RegistryTopics | None = None,
) -> AsyncIterator[System]:
    """Set everything up, with every partition read; take it down again however the block ends.

    Args:
        directory: Of data and logs; empty.
        shape: How large it is.
        progress: Told in words what goes on.
        topics: Those whose tables have the columns of schemas in a registry, if any.

    Raises:
        EmbeddedError: A server could not be had, or a service does not stay up.
    """
    async with contextlib.AsyncExitStack() as held:
        lake = directory / LAKE
        mounted = held.enter_context(disk(lake)) if may_mount() else None
        token = secrets.token_urlsafe()  # lake.token_file is that of all servers
        sparks = [
            await held.enter_async_context(
                run_spark(
                    directory / f"spark-{n}",
                    token=token,
                    memory="2g",
                    progress=progress,
                )
            )
            for n in range(shape.servers)
        ]
        spark_proxies = [
            await held.enter_async_context(proxy(int(spark.address.rpartition(":")[2])))
            for spark in sparks
        ]
        voter = held.enter_context(reserve_port())
        first, line = await start_broker(
            held, directory / "kafka-1", node_settings(1, voter), progress
        )
        kafka, lines = first.bootstrap_servers, [line]
        brokers = [first]
        direct_settings = chaos_settings(
            directory,
            shape,
            kafka,
            spark_settings(sparks, [spark.address for spark in sparks]),
            topics,
        )
        settings = chaos_settings(
            directory,
            shape,
            f"{HOST}:{line.port}",
            spark_settings(sparks, [f"sc://localhost:{between.port}" for between in spark_proxies]),
            topics,
        )
        applied = aimed_points(directory / "aims")
        bus = await held.enter_async_context(KafkaControlTopics(direct_settings.kafka))
        await _make_topics(bus, direct_settings)
        if shape.servers > 1:
            async with AdminClient(direct_settings.kafka) as admin:
                cluster = await admin.cluster_id()
            second, line = await start_broker(
                held, directory / "kafka-2", node_settings(2, voter), progress, cluster
            )
            brokers, lines = [first, second], [*lines, line]
        services = _services(directory, environment(settings, applied))
        held.push_async_callback(_end_consumers, settings)
        made = System(
            directory=directory,
            settings=settings,
            direct_settings=direct_settings,
            brokers=tuple(brokers),
            sparks=tuple(sparks),
            kafka_proxies=tuple(lines),
            spark_proxies=tuple(spark_proxies),
            aimed_points=applied,
            bus=bus,
            controllers=services[:2],
            monitor=services[2],
            lake_mount=mounted,
            evolving=topics if isinstance(topics, EvolvingTopics) else None,
        )
        watching = watch_group(
            bus, direct_settings.metadata_topic, direct_settings.monitor.topic, made.view
        )
        async with background_tasks(watching, *(watched.service.run() for watched in services)):
            yield made


async def _make_topics(bus: KafkaControlTopics, settings: Settings) -> None:
    await bus.ensure(settings.metadata_topic, 1, METADATA_CONFIG)
    await bus.ensure(settings.monitor.topic, 1, METRICS_CONFIG)
    for topic in settings.topics:
        await bus.ensure(topic, partition_count(topic), {})


def _services(directory: Path, variables: Mapping[str, str]) -> tuple[LoggedService, ...]:
    names = ("controller", "controller", "monitor")
    places = [(name, directory / f"{name}-{number}") for number, name in enumerate(names)]
    return tuple(LoggedService(Service(n, at, variables), at / f"{n}.log") for n, at in places)


async def _end_consumers(settings: Settings) -> None:
    fleet = process_fleet(settings)
    for processes in fleet.running().values():
        for process in processes:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.resume()
    fleet.grace_s = END_S
    await fleet.close()
