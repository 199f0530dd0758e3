"""A group with everything that alerts are about: broker, registry, Spark, services, Prometheus."""

import asyncio
import contextlib
import json
import os
import signal
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import psutil
from aiokafka import AIOKafkaProducer
from aiokafka import TopicPartition as KafkaPartition
from aiokafka.admin import AIOKafkaAdminClient, RecordsToDelete
from aiokafka.errors import KafkaError
from tests.consumer.decode.avro import record, written
from tests.deploy.alerts.prometheus_server import Labels, PrometheusServer, run_prometheus
from tests.integration.command_line import binwright
from tests.integration.landing import has_landed, produce, rows, until
from tests.integration.ports import reserve_ports
from tests.integration.registry.server import RegistryServer, run_registry
from tests.integration.security.secured_broker import USER, SecuredBroker, run_secured_broker
from tests.integration.topics import create_topic

from binwright.kafka.client import client_options
from binwright.local.child import Child, Command
from binwright.local.server import HOST, reserve_port
from binwright.local.spark import TOKEN_VARIABLE, SparkServer, run_spark
from binwright.local.stack import Stack, services
from binwright.runtime.run import background_tasks
from binwright.runtime.settings.group import Settings, load_settings
from binwright.runtime.settings.loading import settings_environment

GROUP = "watched"
CLICKS, ITEMS, BILLS, EVENTS, LOGS, SLOW = (
    f"watched-{name}" for name in ("clicks", "items", "bills", "events", "logs", "slow")
)
"""Under load; of columns; the same; of Avro by a registry; raw; raw, and landed slowly."""
FIRST = record(("id", "long"))
"""Of the values in `EVENTS`."""
PARTITIONS = 2  # of each topic
READING = 2  # consumers
CONSUMERS = 3  # most of them
DEAD_S = 120.0  # after which a consumer is: a test stops one for a while
SEEN_S, GRACE_S = 240.0, 15.0
VALID_S = 30 * 86_400.0  # of a certificate
TICK_S = 0.5


@dataclass(frozen=True, slots=True)
class LiveSystem:
    """What faults are made of, and who is to see them."""

    directory: Path
    settings: Settings
    secured: SecuredBroker
    registry: RegistryServer
    spark: SparkServer
    stack: Stack
    prometheus: PrometheusServer
    by_certificate: Settings  # of a monitor that has one
    monitor: str  # the group's, as an instance
    began_s: float  # wall clock

    @property
    def broker(self) -> str:
        """Where clients reach Kafka."""
        return self.settings.kafka.bootstrap_servers

    @property
    def lake(self) -> Path:
        """Where the tables are."""
        return Path(self.settings.lake.path)

    async def run(self, *arguments: str) -> None:
        """Run a command of the product to its end; it succeeds."""
        code, text = await self.output(self.settings, *arguments)
        assert code == 0, text

    async def output(self, settings: Settings, *arguments: str) -> tuple[int, str]:
        """Run a command to its end; return its exit code, and its words on a wide terminal."""
        environment = os.environ | settings_environment(settings) | {"COLUMNS": "250"}
        code, out, errors = await binwright(*arguments, environment=environment)
        return code, " ".join(f"{out} {errors}".split())

    async def status(self) -> Any:
        """Return what `binwright status` has of the group."""
        code, text = await self.output(self.settings, "status", "--json")
        assert code == 0, text
        (found,) = (each for each in json.loads(text) if each["group"] == GROUP)
        return found

    async def fires(self, alert: str, labels: Labels) -> bool:
        """Tell whether an alert fires with these labels among its own."""
        wanted = {"alertname": alert, **labels}
        return any(wanted.items() <= found.items() for found in await self.prometheus.firing())

    def send_to_consumers(self, number: signal.Signals) -> None:
        """Send a signal to every consumer's process."""
        for pid in self.stack.consumer_pids():
            psutil.Process(pid).send_signal(number)

    async def delete_records(self, topic: str, offset: int) -> None:
        """Delete what a partition 0 keeps before an offset, as retention does."""
        admin = AIOKafkaAdminClient(**client_options(self.settings.kafka))
        await admin.start()
        try:
            await admin.delete_records(
                {KafkaPartition(topic, 0): RecordsToDelete(before_offset=offset)}
            )
        finally:
            await admin.close()


async def seen(condition: Callable[[], Awaitable[bool]], what: object, within_s: float) -> float:
    """Wait for a condition; return after how many seconds it held.

    Raises:
        AssertionError: It did not hold in time; names it.
    """
    loop = asyncio.get_running_loop()
    began = loop.time()
    while not await condition():
        assert loop.time() - began < within_s, f"not within {within_s:g} s: {what}"
        await asyncio.sleep(TICK_S)
    return loop.time() - began


async def _load(broker: str) -> None:
    """Write some records each second, for ever; while Kafka is away they are not written."""
    async with AIOKafkaProducer(bootstrap_servers=broker) as producer:
        while True:
            for partition in range(PARTITIONS):
                with contextlib.suppress(KafkaError):
                    await producer.send(CLICKS, bytes(1_000), partition=partition)
            await asyncio.sleep(TICK_S)


def _settings(
    directory: Path, secured: SecuredBroker, registry: str, spark: str, port: int
) -> Settings:
    return load_settings(
        group=GROUP,
        topics=[CLICKS, ITEMS, BILLS, EVENTS, LOGS, SLOW],
        kafka={"bootstrap_servers": secured.owner().bootstrap_servers},
        lake={"path": str(directory / "lake"), "spark": spark},
        registry={"url": registry},
        staging={"path": str(directory / "staging")},
        tables=[
            {"topics": [ITEMS, BILLS], "format": "json", "columns": "id BIGINT"},
            {"topics": [EVENTS], "format": "avro"},
        ],
        monitor={"interval_s": 1.0, "window_s": 10.0},
        controller={
            "process_logs": str(directory / "consumers"),
            "limit_bytes_per_s": 1e6,
            "max_slots": CONSUMERS,
            "consumer_timeout_s": DEAD_S,
        },
        health={"port": port},
    )


@contextlib.asynccontextmanager
async def _program(
    name: str, directory: Path, environment: Mapping[str, str], *arguments: str
) -> AsyncIterator[None]:
    """Run a command of the product until the body ends."""
    argv = (sys.executable, "-m", "binwright.cli", *arguments)
    log = directory / "logs" / f"{name}.log"
    child = Child(Command(name, argv, directory, log, {**os.environ, **environment}))
    try:
        yield
    finally:
        await child.stop(grace_s=GRACE_S)


@contextlib.asynccontextmanager
async def live_system(directory: Path) -> AsyncIterator[LiveSystem]:
    """Run it; give it once all is well, and Prometheus sees that."""
    for name in ("lake", "logs", "broker", "prometheus"):
        (directory / name).mkdir()
    async with contextlib.AsyncExitStack() as held:
        controller, *consumers = held.enter_context(reserve_ports(1 + CONSUMERS))
        monitor, second, page = (held.enter_context(reserve_port()) for _ in range(3))
        secured = await held.enter_async_context(run_secured_broker(directory / "broker"))
        registry = await held.enter_async_context(run_registry(directory / "registry"))
        number = registry.register(f"{EVENTS}-value", FIRST)
        spark = await held.enter_async_context(run_spark(directory / "spark"))
        os.environ[TOKEN_VARIABLE] = spark.token_file.read_text()
        held.callback(os.environ.pop, TOKEN_VARIABLE)
        settings = _settings(directory, secured, registry.url, spark.address, controller)
        for topic in settings.topics:
            await create_topic(settings.kafka, topic, PARTITIONS)
        own = settings.model_copy(
            update={"health": settings.health.model_copy(update={"port": monitor})}
        )
        stack = await held.enter_async_context(services(settings, directory / "logs", monitor=own))
        environment = settings_environment(settings)
        pages = ("page", "--port", str(page))
        await held.enter_async_context(_program("page", directory, environment, *pages))
        by_certificate = own.model_copy(
            update={
                "kafka": secured.connection("MUTUAL"),
                "health": own.health.model_copy(update={"port": second}),
            }
        )
        secured.authority.client(USER, valid_s=VALID_S)
        environment = settings_environment(by_certificate)
        await held.enter_async_context(_program("second", directory, environment, "monitor"))
        jobs = {
            "binwright": [monitor, second, controller],
            "binwright-consumers": consumers,
            "binwright-group": [page],
        }
        prometheus = await held.enter_async_context(run_prometheus(directory / "prometheus", jobs))
        broker = settings.kafka.bootstrap_servers
        await held.enter_async_context(background_tasks(_load(broker)))
        system = LiveSystem(
            directory=directory,
            settings=settings,
            secured=secured,
            registry=registry,
            spark=spark,
            stack=stack,
            prometheus=prometheus,
            by_certificate=by_certificate,
            monitor=f"{HOST}:{monitor}",
            began_s=time.time(),
        )
        await _all_is_well(system, number)
        yield system


async def _all_is_well(system: LiveSystem, number: int) -> None:
    """Have a row in each table that faults are about, and no alert; `number` is a schema's."""
    for topic in (ITEMS, BILLS):
        await produce(system.broker, topic, [b'{"id": 1}'])
        await until(partial(has_landed, system.lake, topic, 1))
    await produce(system.broker, EVENTS, [written(FIRST, {"id": 1}, number)])
    await until(partial(has_landed, system.lake, EVENTS, 1))
    await until(lambda: bool(rows(system.lake, CLICKS)))
    await system.run("group", "scale", str(READING), "--reason", "to have one that can move")

    async def quiet() -> bool:
        targets = await system.prometheus.targets_up()
        consumers = {f"{HOST}:{_port(system) + 1 + slot}" for slot in range(READING, CONSUMERS)}
        firing = await system.prometheus.firing()
        return not firing and all(up for name, up in targets.items() if name not in consumers)

    await seen(quiet, "every service is scraped, and no alert fires", SEEN_S)


def _port(system: LiveSystem) -> int:
    port = system.settings.health.port
    assert port is not None
    return port
