"""Zones on three real brokers in three racks: who serves a consumer, and where partitions are."""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiokafka import AIOKafkaProducer
from aiokafka import TopicPartition as KafkaPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from tests.integration.command_line import binwright
from tests.integration.conftest import BackgroundLoop

from binwright.consumer.read.data_reader import KafkaDataReader
from binwright.kafka.client import NO_LEADER, ClusterClient, client_options
from binwright.local.kafka import EmbeddedBroker, run_brokers
from binwright.local.stack import services
from binwright.monitor.sampling import KafkaLogs
from binwright.protocol.model import TopicPartition
from binwright.runtime.run import background_tasks, must_not_end
from binwright.runtime.settings.group import Settings, load_settings
from binwright.runtime.settings.kafka import KafkaSettings
from binwright.runtime.settings.loading import settings_environment
from binwright.testing.log_sampler import sample_topics
from binwright.testing.records import in_rows

pytestmark = pytest.mark.integration

DEADLINE_S = 120.0
RACKS = "a", "b", "c"
SELECTOR = {"replica.selector.class": "org.apache.kafka.common.replica.RackAwareReplicaSelector"}
ORDERS = TopicPartition("orders", 0)
PLACES = {0: [1, 2], 1: [2, 3]}
"""Partition -> its brokers, the preferred leader first."""


@pytest.fixture(scope="module")
def rack_brokers(
    background_loop: BackgroundLoop, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[EmbeddedBroker, ...]]:
    """Brokers 1 to 3, a rack each; replicas of the consumer's rack serve it."""
    home = tmp_path_factory.mktemp("zones")
    with background_loop.entered(run_brokers(home, racks=RACKS, settings=SELECTOR)) as running:
        yield running


@pytest.fixture(scope="module")
def kafka(rack_brokers: tuple[EmbeddedBroker, ...]) -> KafkaSettings:
    servers = ",".join(broker.bootstrap_servers for broker in rack_brokers)
    return KafkaSettings(bootstrap_servers=servers, request_timeout_s=30)


@pytest.fixture
async def topic(kafka: KafkaSettings) -> str:
    await create_topic_at(kafka, ORDERS.topic, PLACES)
    return ORDERS.topic


async def create_topic_at(kafka: KafkaSettings, name: str, at: Mapping[int, list[int]]) -> None:
    """Create a topic at these brokers, unless it is there; wait until all are led."""
    admin = AIOKafkaAdminClient(**client_options(kafka))
    await admin.start()
    try:
        async with ClusterClient(kafka) as cluster, asyncio.timeout(DEADLINE_S):
            await admin.create_topics([NewTopic(name, -1, -1, replica_assignments=dict(at))])
            led: Mapping[int, int] = {}
            while led.keys() != at.keys() or NO_LEADER in led.values():
                led = await cluster.leaders(name)
    finally:
        await admin.close()


@pytest.fixture
async def producer(kafka: KafkaSettings) -> AsyncIterator[AIOKafkaProducer]:
    async with AIOKafkaProducer(**client_options(kafka)) as sending:
        yield sending


async def write(producer: AIOKafkaProducer, count: int) -> None:
    for number in range(count):
        await producer.send_and_wait(ORDERS.topic, b"%d" % number, partition=ORDERS.partition)


async def read(reader: KafkaDataReader, count: int) -> list[bytes | None]:
    found: list[bytes | None] = []
    async with asyncio.timeout(DEADLINE_S):
        while len(found) < count:
            polled = await reader.fetch(1 << 20, 1.0)
            found += [row.value for row in in_rows(list(polled.values()))]
    return found


def serving(reader: KafkaDataReader) -> int | None:
    """Return the broker from which the partition is fetched, if that is not its leader."""
    fetcher = reader._assigned._consumer._fetcher
    preferred: tuple[int, float] | None = fetcher._preferred_read_replica.get(
        KafkaPartition(*ORDERS)
    )
    return None if preferred is None else preferred[0]


@pytest.mark.usefixtures("topic")
@pytest.mark.parametrize(("zone", "broker"), [("b", 2), ("a", None), ("c", None), (None, None)])
async def test_a_consumer_reads_from_a_replica_of_its_zone(
    kafka: KafkaSettings,
    producer: AIOKafkaProducer,
    zone: str | None,
    broker: int | None,
) -> None:
    """Broker 1 leads: in its zone it serves itself, and in a zone without a replica, too."""
    async with KafkaDataReader(kafka, "g", zone=zone) as reader:
        end = (await reader.bounds([ORDERS]))[ORDERS][1]
        await write(producer, 50)
        await reader.start(ORDERS, end)
        assert await read(reader, 50) == [b"%d" % number for number in range(50)]
        assert serving(reader) == broker


@pytest.mark.usefixtures("topic")
async def test_where_its_replica_ends_a_consumer_reads_from_the_leader(
    kafka: KafkaSettings,
    producer: AIOKafkaProducer,
    rack_brokers: tuple[EmbeddedBroker, ...],
    background_loop: BackgroundLoop,
) -> None:
    async with KafkaDataReader(kafka, "g", zone="b") as reader:
        end = (await reader.bounds([ORDERS]))[ORDERS][1]
        await write(producer, 10)
        await reader.start(ORDERS, end)
        assert len(await read(reader, 10)) == 10
        assert serving(reader) == 2
        await background_loop.run(rack_brokers[1].kill())
        try:
            await write(producer, 10)
            assert await read(reader, 10) == [b"%d" % number for number in range(10)]
            assert serving(reader) is None
        finally:
            await background_loop.run(rack_brokers[1].start())


@pytest.mark.parametrize(
    ("from_followers", "zones"),
    [(True, {0: {"a", "b"}, 1: {"b", "c"}}), (False, {0: {"a"}, 1: {"b"}})],
)
async def test_the_monitor_knows_where_partitions_can_be_read(
    kafka: KafkaSettings,
    topic: str,
    rack_brokers: tuple[EmbeddedBroker, ...],
    background_loop: BackgroundLoop,
    *,
    from_followers: bool,
    zones: dict[int, set[str]],
) -> None:
    """The preferred leader counts, not who leads: a broker that is away changes nothing."""
    async with KafkaLogs(kafka, follower_fetching=from_followers) as logs:
        await sample_topics(logs, topic)
        assert logs.zones(topic) == zones
        assert logs.zones("unknown") == {}
        await background_loop.run(rack_brokers[1].kill())
        try:
            async with asyncio.timeout(DEADLINE_S):
                led_by = {2}
                while 2 in led_by:
                    found = (await sample_topics(logs, topic))[topic]
                    led_by = {2 if sample is None else sample.leader for sample in found.values()}
            assert logs.zones(topic) == zones
        finally:
            await background_loop.run(rack_brokers[1].start())


# --- a group -------------------------------------------------------------------------------------

GROUP, CLICKS = "zoned", "clicks"
LEADERS = {0: "a", 1: "b", 2: "a", 3: "b"}
"""Partition -> the zone of its only replica: by number alone each consumer gets one of both."""
RECORD, PER_SECOND = bytes(1_000), 10


def settings_of(kafka: KafkaSettings, lake: Path) -> Settings:
    """Return those of a group whose load needs two consumers, each for two of four partitions."""
    return load_settings(
        group=GROUP,
        topics=[CLICKS],
        kafka={"bootstrap_servers": kafka.bootstrap_servers},
        lake={"path": str(lake), "spark": "sc://127.0.0.1:1"},  # rows are staged, and wait
        monitor={"topic": f"{GROUP}.metrics", "interval_s": 1.0, "window_s": 5.0},
        controller={
            "fleet": "fixed",
            "max_slots": 2,
            "limit_bytes_per_s": 3e4,
            "replan_interval_s": 3.0,
            "consumer_timeout_s": 90.0,  # nobody starts one again, however slow the machine is
            "zone_price": 1.5,
        },
    )


async def keep_writing(producer: AIOKafkaProducer) -> None:
    while True:
        for partition in LEADERS:
            await producer.send(CLICKS, RECORD, partition=partition)
        await asyncio.sleep(1 / PER_SECOND)


@asynccontextmanager
async def consumer(settings: Settings, slot: int, zone: str, log: Path) -> AsyncIterator[None]:
    """Run a consumer's process in a zone."""
    own = {**os.environ, **settings_environment(settings), "BINWRIGHT_CONSUMER__ZONE": zone}
    command = (sys.executable, "-m", "binwright.consumer", "--slot", str(slot))
    with log.open("w") as output:
        process = await asyncio.create_subprocess_exec(
            *command, env=own, stdout=output, stderr=output
        )
        try:
            yield
        finally:
            process.kill()
            await process.wait()


async def asked(kafka: KafkaSettings, *arguments: str) -> tuple[int, str]:
    options = ("--group", GROUP, "--bootstrap-servers", kafka.bootstrap_servers)
    metrics = {**os.environ, "BINWRIGHT_MONITOR__TOPIC": f"{GROUP}.metrics"}
    code, out, _ = await binwright(*arguments, *options, environment=metrics)
    return code, out


@pytest.mark.nightly
async def test_partitions_go_to_the_consumer_of_their_zone(
    kafka: KafkaSettings, producer: AIOKafkaProducer, lake: Path
) -> None:
    await create_topic_at(kafka, CLICKS, {n: [RACKS.index(z) + 1] for n, z in LEADERS.items()})
    settings, logs = settings_of(kafka, lake), lake.parent / "logs"
    logs.mkdir()
    near = {zone: {f"{CLICKS}-{n}" for n, at in LEADERS.items() if at == zone} for zone in "ab"}
    async with (
        background_tasks(must_not_end(keep_writing(producer))),
        services(settings, logs),
        consumer(settings, 0, "a", logs / "consumer-0.log"),
        consumer(settings, 1, "b", logs / "consumer-1.log"),
        asyncio.timeout(4 * DEADLINE_S),
    ):
        found: dict[str, Any] = {}
        while found != near:
            code, out = await asked(kafka, "status", "--json")
            seen = [] if code else json.loads(out)[0]["consumers"]
            found = {each["zone"]: set(each["partitions"]) for each in seen if each["partitions"]}
        code, out = await asked(kafka, "explain")
        assert (code, "0 B/s of that (0%) cross zones" in out) == (0, True), out
