"""Groups of KIP-848 whose partitions a broker assigns by load; members have no code of ours."""

import asyncio
import contextlib
import os
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from aiokafka.admin import AIOKafkaAdminClient
from tests.integration.assignor.broker_assignor import (
    METRICS_TOPIC,
    LibrdkafkaMember,
    assignor_jar,
    broker_settings,
    librdkafka_members,
    loads,
    publish_rates,
    publish_zeros,
)
from tests.integration.assignor.java_members import (
    JavaMember,
    build_programs,
    consumer_settings,
    running_members,
)
from tests.integration.assignor.plans import until
from tests.integration.assignor.test_assigned_members import PER_TICK, produce, scaler
from tests.integration.assignor.test_java_group import partitions
from tests.integration.conftest import BackgroundLoop
from tests.integration.topics import create_topic
from tests.integration.versions.servers import kafka_jars, named

from binwright.kafka.client import ClusterClient, client_options
from binwright.kafka.control_records import METRICS_PARTITION
from binwright.kafka.control_topics import KafkaControlTopics
from binwright.local.kafka import EmbeddedBroker, run_broker
from binwright.local.server import reserve_port
from binwright.protocol.errors import BrokerUnavailable, EmbeddedError
from binwright.runtime.run import background_tasks, must_not_end
from binwright.runtime.settings.kafka import KafkaSettings
from binwright.scaler.groups import ConsumerGroups
from binwright.scaler.rebalance_request import request_assignment

pytestmark = pytest.mark.integration

Member = LibrdkafkaMember | JavaMember
Rates = Sequence[float]
TRY_S = 2.0
ATTEMPTS = 15
SKEWED = [0.25] * 2 + [0.5 / 7] * 7
"""The load of nine partitions in seed 004: half of it in two of them."""
MAX_AGE_S = 20


@pytest.fixture(scope="module")
def assigning_broker(
    background_loop: BackgroundLoop, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """Bootstrap servers of a broker with the assignor."""
    directory = tmp_path_factory.mktemp("assigning")
    with background_loop.entered(run_assigning(directory, MAX_AGE_S)) as running:
        yield running.bootstrap_servers


@asynccontextmanager
async def run_assigning(
    directory: Path, max_age_s: int | None = None
) -> AsyncIterator[EmbeddedBroker]:
    (directory / "jars").mkdir(exist_ok=True)
    jar = await assignor_jar(directory / "jars")
    with reserve_port() as port:
        pass
    settings = broker_settings(port)
    if max_age_s is not None:
        settings["binwright.metrics.max.age.ms"] = str(1000 * max_age_s)
    kafka, plugins = await kafka_jars(named()[0]), [jar]
    async with run_broker(
        directory / "b", port=port, settings=settings, classpath=plugins, kafka=kafka
    ) as broker:
        yield broker


async def assigned(
    kafka: KafkaSettings,
    topic: str,
    rates: Rates | None,
    members: Sequence[Member],
    condition: Callable[[], bool],
    *,
    age_ms: int = 0,
) -> None:
    """Publish rates and ask for an assignment, until every partition is read and this holds."""

    def holds() -> bool:
        return sum(len(member.owned) for member in members) == 9 and condition()

    for attempt in range(ATTEMPTS):
        if rates is not None:
            await publish_rates(kafka, {topic: rates}, age_ms=age_ms)
        with contextlib.suppress(BrokerUnavailable):  # a broker that starts coordinates nothing yet
            async with ClusterClient(kafka) as cluster:
                await request_assignment(cluster, topic)
        try:
            await until(holds, lambda: [member.owned for member in members], TRY_S)
        except AssertionError:
            if attempt == ATTEMPTS - 1:
                raise
        else:
            return


@asynccontextmanager
async def monitor(servers: str, topic: str) -> AsyncIterator[None]:
    """Run `binwright monitor` for a topic."""
    with reserve_port() as port:
        settings = {
            "KAFKA__BOOTSTRAP_SERVERS": servers,
            "HEALTH__PORT": str(port),
            "MONITOR__PATTERN": topic,
            "MONITOR__WINDOW_S": "5",
        }
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "binwright.cli", "monitor"),
            env={**os.environ, **{f"BINWRIGHT_{name}": text for name, text in settings.items()}},
        )
    try:
        yield
    finally:
        process.terminate()
        await process.wait()


def counts(members: Sequence[Member]) -> list[int]:
    return sorted(len(member.owned) for member in members)


def ratio(members: Sequence[Member], rates: Rates) -> float:
    """Return the largest load over the mean."""
    per_member = [sum(rates[int(p.rpartition("-")[2])] for p in m.owned) for m in members]
    return max(per_member) * len(members) / sum(per_member)


def hot(number: int) -> list[float]:
    return [100.0 if each == number else 1.0 for each in range(9)]


def reads_alone(members: Sequence[Member], partition: str) -> Callable[[], bool]:
    return lambda: any(member.owned == {partition} for member in members)


def java_settings(servers: str, group: str) -> Mapping[str, str]:
    classic = {"heartbeat.interval.ms", "session.timeout.ms", "partition.assignment.strategy"}
    settings = consumer_settings(servers, group)
    return {key: value for key, value in settings.items() if key not in classic} | {
        "group.protocol": "consumer",
        "group.remote.assignor": "binwright",
    }


async def test_librdkafka_and_java_members_share_a_skewed_load_evenly(
    assigning_broker: str, tmp_path: Path
) -> None:
    """And once the load has moved, each partition that has a reader and need not move stays."""
    kafka, topic = KafkaSettings(bootstrap_servers=assigning_broker), "mixed-group"
    await create_topic(kafka, topic, 9)
    programs = await build_programs(tmp_path)
    settings = java_settings(assigning_broker, topic)
    with librdkafka_members(assigning_broker, topic, [topic], 3) as native:
        async with running_members(programs, settings, topic, ["java"]) as java:
            members: list[Member] = [*native, *java]
            await assigned(kafka, topic, SKEWED, members, lambda: ratio(members, SKEWED) <= 1.15)
            now = hot(5)
            await publish_rates(kafka, {topic: now})
            for member in members:
                member.revoked.clear()
            await assigned(kafka, topic, now, members, reads_alone(members, f"{topic}-5"))
            assert counts(members) in ([1, 2, 3, 3], [1, 2, 2, 4])
            assert len({p for member in members for p in member.revoked}) <= 5
            assert all(member.error is None for member in native)


async def test_the_brokers_own_assignor_leaves_that_load_uneven(assigning_broker: str) -> None:
    kafka, topic = KafkaSettings(bootstrap_servers=assigning_broker), "uniform-group"
    await create_topic(kafka, topic, 9)
    with librdkafka_members(
        assigning_broker, topic, [topic], 4, group_remote_assignor="uniform"
    ) as members:
        await assigned(kafka, topic, SKEWED, members, lambda: counts(members) == [2, 2, 2, 3])
        assert ratio(members, SKEWED) > 1.25


@pytest.mark.nightly
async def test_members_get_equal_numbers_by_rates_that_are_stale(assigning_broker: str) -> None:
    kafka, topic = KafkaSettings(bootstrap_servers=assigning_broker), "stale-group"
    await create_topic(kafka, topic, 9)
    await publish_rates(kafka, {topic: hot(0)}, age_ms=1000 * MAX_AGE_S + 1)
    with librdkafka_members(assigning_broker, topic, [topic], 3) as members:
        await assigned(kafka, topic, None, members, lambda: counts(members) == [3, 3, 3])
        await assigned(kafka, topic, hot(0), members, reads_alone(members, f"{topic}-0"))
        # No monitor measures any more: the rates grow old, and the next assignment is by numbers.
        await asyncio.sleep(MAX_AGE_S)
        await assigned(kafka, topic, None, members, lambda: counts(members) == [3, 3, 3])


async def test_members_read_only_what_they_subscribe_to(assigning_broker: str) -> None:
    kafka = KafkaSettings(bootstrap_servers=assigning_broker)
    one, other = "subscribed-one", "subscribed-other"
    rates = {one: [5.0, 1.0, 1.0], other: [1.0] * 6}
    await create_topic(kafka, one, 3)
    await create_topic(kafka, other, 6)
    await publish_rates(kafka, rates)
    with (
        librdkafka_members(assigning_broker, one, [one], 1) as narrow,
        librdkafka_members(assigning_broker, one, [one, other], 2) as broad,
    ):
        members = [*narrow, *broad]
        await publish_rates(kafka, rates)
        await assigned(kafka, one, rates[one], members, lambda: max(loads(members, rates)) <= 5.0)
        assert all(name.startswith(one) for member in narrow for name in member.owned)


@pytest.mark.nightly
async def test_the_scaler_has_the_broker_assign_when_the_load_has_become_uneven(
    assigning_broker: str,
) -> None:
    """Two members read three partitions each, until a monitor knows that one has half the load.

    They subscribe by a pattern, which the broker alone resolves.
    """
    kafka, topic = KafkaSettings(bootstrap_servers=assigning_broker), "scaled-group"
    await create_topic(kafka, topic, len(PER_TICK))
    every = set(map(str, partitions(topic, *PER_TICK)))
    commits = {"enable_auto_commit": "true", "auto_commit_interval_ms": "200"}
    value = b"x" * 1000  # so that bytes are as uneven as records
    with (
        reserve_port() as port,
        librdkafka_members(assigning_broker, topic, [f"^{topic}$"], 2, **commits) as members,
    ):
        await until(lambda: counts(members) == [3, 3], lambda: counts(members))
        async with (
            background_tasks(must_not_end(produce(assigning_broker, topic, value))),
            monitor(assigning_broker, topic),
            scaler(assigning_broker, port, topic),
        ):
            await until(reads_alone(members, f"{topic}-0"), lambda: [m.owned for m in members], 90)
            await until(
                lambda: set[str].union(*(m.owned for m in members)) == every,
                lambda: [m.owned for m in members],
            )
        async with ClusterClient(kafka) as cluster:
            seen = await ConsumerGroups(cluster).describe(topic)
        assert (seen.type, seen.protocol) == ("consumer", "binwright")
        assert sorted(len(member.owned) for member in seen.members.values()) == [1, 5]


@pytest.mark.nightly
async def test_a_broken_metrics_topic_leaves_a_group_assigned(tmp_path: Path) -> None:
    """Records that are no measurements, or inflate to more than its memory, are passed over.

    Then the topic is gone, and back again.
    """
    async with run_assigning(tmp_path) as broker:
        kafka, topic = KafkaSettings(bootstrap_servers=broker.bootstrap_servers), "broken-metrics"
        await create_topic(kafka, topic, 9)
        with librdkafka_members(broker.bootstrap_servers, topic, [topic], 2) as members:
            await until(lambda: counts(members) == [4, 5], lambda: counts(members))
            await publish_rates(kafka, {topic: hot(0)})
            async with KafkaControlTopics(kafka) as bus:
                for value in (b"", b"\xff\x00", b'{"kind":"measurement/2"}', b"[" * 100_000):
                    await bus.publish(METRICS_TOPIC, METRICS_PARTITION, b"x", value)
            await asyncio.to_thread(publish_zeros, broker.bootstrap_servers, 600)
            await assigned(kafka, topic, hot(0), members, reads_alone(members, f"{topic}-0"))
            admin = AIOKafkaAdminClient(**client_options(kafka))
            await admin.start()
            await admin.delete_topics([METRICS_TOPIC])
            await admin.close()
            with librdkafka_members(broker.bootstrap_servers, topic, [topic], 1) as third:
                every = [*members, *third]
                await until(
                    lambda: sum(counts(every)) == 9 and bool(third[0].owned), lambda: counts(every)
                )
                await assigned(kafka, topic, hot(8), every, reads_alone(every, f"{topic}-8"))


@pytest.mark.nightly
async def test_a_group_goes_on_after_its_broker_starts_again(tmp_path: Path) -> None:
    """And after the monitor has been away for nine minutes: rates count for ten."""
    async with run_assigning(tmp_path) as broker:
        kafka, topic = KafkaSettings(bootstrap_servers=broker.bootstrap_servers), "restarted"
        await create_topic(kafka, topic, 9)
        with librdkafka_members(broker.bootstrap_servers, topic, [topic], 3) as members:
            alone = reads_alone(members, f"{topic}-0")
            await assigned(kafka, topic, hot(0), members, alone, age_ms=540_000)
            before = [set(member.owned) for member in members]
            await broker.stop()
            await broker.start()
            assert [member.owned for member in members] == before
            # Rates from before are read again.
            await assigned(kafka, topic, None, members, alone)
            await assigned(kafka, topic, hot(8), members, reads_alone(members, f"{topic}-8"))


async def test_a_broker_without_the_address_of_its_rates_does_not_start(tmp_path: Path) -> None:
    (tmp_path / "jars").mkdir()
    jar = await assignor_jar(tmp_path / "jars")
    settings = {"group.consumer.assignors": "uniform,binwright.assignor.LoadAssignor"}
    with pytest.raises(EmbeddedError, match=r"Set binwright\.client\.bootstrap\.servers"):
        async with run_broker(tmp_path / "b", settings=settings, classpath=[jar]):
            pass
