"""The monitor against a real broker: what it says, beside what was really appended."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
from aiokafka import AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, RecordsToDelete
from tests.waiting import until

from binwright.kafka.client import ClusterClient, client_options
from binwright.kafka.control_topics import KafkaControlTopics
from binwright.kafka.log_dirs import DescribeLogDirs, sizes
from binwright.local.kafka import run_broker
from binwright.monitor.__main__ import run
from binwright.monitor.decide.estimator import TopicRates
from binwright.monitor.sampling import KafkaLogs
from binwright.protocol.errors import BrokerUnavailable
from binwright.protocol.metrics import Measurement, PartitionRate, decode_measurement
from binwright.protocol.patterns import compile_pattern
from binwright.protocol.ports.kafka import LogSample
from binwright.protocol.selection import Selection
from binwright.runtime.settings.group import Settings
from binwright.runtime.settings.kafka import KafkaSettings
from binwright.testing.log_sampler import sample_topics

pytestmark = pytest.mark.integration

DEADLINE_S = 60.0
RECORD = Random(1).randbytes(900)


class World:
    """A cluster that is written to, and looked at."""

    def __init__(self, bootstrap: str) -> None:
        self.kafka = KafkaSettings(bootstrap_servers=bootstrap)
        self.bus = KafkaControlTopics(self.kafka)
        self.logs = KafkaLogs(self.kafka)
        self.producer = AIOKafkaProducer(**client_options(self.kafka), acks="all")
        self.admin = AIOKafkaAdminClient(**client_options(self.kafka))

    async def write(self, topic: str, records: int, partition: int = 0) -> None:
        sent = [
            await self.producer.send(topic, RECORD, partition=partition) for _ in range(records)
        ]
        await asyncio.gather(*sent)

    async def sample_topics(self, topic: str) -> dict[int, LogSample | None]:
        return dict((await sample_topics(self.logs, topic))[topic])

    async def delete_records(self, topic: str, before: int) -> None:
        wanted = {TopicPartition(topic, 0): RecordsToDelete(before_offset=before)}
        await self.admin.delete_records(wanted)


@pytest.fixture
async def world(broker: str) -> AsyncIterator[World]:
    made = World(broker)
    async with asyncio.timeout(DEADLINE_S), made.bus, made.logs:
        await made.producer.start()
        await made.admin.start()
        yield made
        await made.producer.stop()
        await made.admin.close()


@pytest.fixture
def topic(request: pytest.FixtureRequest) -> str:
    return str(request.node.name)


async def test_a_sample_holds_bytes_and_offsets_of_every_partition(
    world: World, topic: str
) -> None:
    await world.bus.ensure(topic, 2, {})
    await world.write(topic, 100, partition=1)
    empty, written = (await world.sample_topics(topic)).values()
    assert empty == LogSample(leader=1, start=0, end=0, size=0)
    assert written
    assert (written.leader, written.start, written.end) == (1, 0, 100)
    assert written.size == pytest.approx(100 * len(RECORD), rel=0.05)


@pytest.mark.parametrize("version", [1, 2, 3, 4])
async def test_every_version_of_the_request_returns_the_same(
    world: World, topic: str, version: int
) -> None:
    topic = topic.replace("[", "-").replace("]", "")
    await world.bus.ensure(topic, 1, {})
    await world.write(topic, 10)
    sample = (await world.sample_topics(topic))[0]
    async with ClusterClient(world.kafka) as cluster:
        answer: Any = await cluster.send_request(1, DescribeLogDirs({topic: [0]}, version))
    assert version == answer.API_VERSION
    assert sample
    assert sizes(answer) == {(topic, 0): sample.size}


async def test_a_missing_topic_is_left_out(world: World, topic: str) -> None:
    assert await sample_topics(world.logs, topic) == {topic: {}}


async def test_new_partitions_and_topics_show_in_the_next_pass(world: World, topic: str) -> None:
    await world.bus.ensure(topic, 1, {})
    assert list(await world.sample_topics(topic)) == [0]
    await world.bus.ensure(topic, 3, {})
    assert sorted(await world.sample_topics(topic)) == [0, 1, 2]
    await world.admin.delete_topics([topic])

    async def is_gone() -> bool:
        return not (await sample_topics(world.logs, topic))[topic]

    await until(is_gone)


async def test_of_many_partitions_sizes_are_asked_in_turns(world: World, topic: str) -> None:
    await world.bus.ensure(topic, 9, {})

    async def is_there() -> bool:
        return all((await world.sample_topics(topic)).values())

    await until(is_there)
    async with KafkaLogs(world.kafka, sizes_per_pass=4) as logs:
        result = []
        for _ in range(3):
            samples = (await sample_topics(logs, topic))[topic]
            assert all(samples.values())  # offsets always
            result.append({p for p, s in samples.items() if s and s.size is not None})
    assert sorted(map(len, result)) == [3, 3, 3]
    assert set.union(*result) == set(range(9))


async def test_topics_are_found_by_pattern_and_kafkas_own_left_out(
    world: World, topic: str
) -> None:
    wanted = Selection(frozenset({"missing"}), (compile_pattern(f"{topic}.*|__.*"),))
    await world.bus.ensure(f"{topic}-a", 1, {})
    assert (await world.logs.sample(wanted, {})).keys() == {"missing", f"{topic}-a"}
    await world.bus.ensure(f"{topic}-b", 2, {})
    found = {}
    while f"{topic}-b" not in found:  # the deadline is the fixture's
        await asyncio.sleep(0.2)
        found = dict(await world.logs.sample(wanted, {}))
    assert {name: len(samples) for name, samples in found.items()} == {
        "missing": 0,
        f"{topic}-a": 1,
        f"{topic}-b": 2,
    }


async def test_a_topic_recreated_under_its_name_has_no_rate_at_first(
    world: World, topic: str
) -> None:
    """Also where its new log has outgrown the old one by the next look."""
    rates = TopicRates(window_s=3600)
    await world.bus.ensure(topic, 1, {})
    await world.write(topic, 50)
    await world.delete_records(topic, 10)
    await measured(world, topic, rates)
    await world.admin.delete_topics([topic])

    async def is_gone() -> bool:
        return not (await sample_topics(world.logs, topic))[topic]

    await until(is_gone)
    await world.bus.ensure(topic, 1, {})
    await world.write(topic, 200)
    again = await measured(world, topic, rates)
    assert (again.rate, again.quality, again.end) == (None, "warming", 200)


async def measured(world: World, topic: str, rates: TopicRates) -> PartitionRate:
    now = asyncio.get_running_loop().time
    asked = now()
    samples = await world.sample_topics(topic)
    return rates.feed((asked + now()) / 2, samples)[0]


async def test_deleted_records_and_segments_do_not_distort_rates(world: World, topic: str) -> None:
    """Sizes fall by whole segments, starts move; what was written in between still counts."""
    small_segments = {"segment.bytes": str(1 << 20), "file.delete.delay.ms": "0"}
    await world.bus.ensure(topic, 1, small_segments)
    rates = TopicRates(window_s=3600)
    begin = await measured(world, topic, rates)
    written = 0
    for _ in range(12):
        await world.write(topic, 400)
        written += 400
        last = await measured(world, topic, rates)
        await world.delete_records(topic, written - 50)
    assert begin.rate is None
    assert last.rate is not None
    assert last.start > 0
    assert last.rate * last.window_s == pytest.approx(written * len(RECORD), rel=0.08)


async def test_a_steady_load_is_measured_as_what_was_appended(world: World, topic: str) -> None:
    await world.bus.ensure(topic, 1, {})
    metrics = f"{topic}.metrics"
    settings = Settings.model_validate(
        {
            "topics": (topic, f"{topic}-that-does-not-exist"),
            "kafka": world.kafka,
            "monitor": {"interval_s": 0.2, "window_s": 3, "topic": metrics},
        }
    )
    monitor = asyncio.create_task(run(settings))
    producing = asyncio.create_task(produce(world, topic))
    try:
        message = await received(world, metrics, 50)
        appended = await true_rate(world, topic)
    finally:
        for task in (producing, monitor):
            task.cancel()
        await asyncio.gather(producing, monitor, return_exceptions=True)
    assert {m.topic for m in message if m.count} == {topic}
    last = next(m for m in reversed(message) if m.count).partitions[0]
    assert last.rate == pytest.approx(appended, rel=0.3)  # the machine is busy: loosely
    assert last.bytes_per_record == pytest.approx(len(RECORD), rel=0.2)


async def produce(world: World, topic: str) -> None:
    while True:
        await asyncio.gather(world.write(topic, 20), asyncio.sleep(0.02))


async def received(world: World, metrics: str, count: int) -> list[Measurement]:
    await until(lambda: exists(world, metrics))
    reader = await world.bus.reader(metrics, 0, 0)
    message: list[Measurement] = []
    while len(message) < count:
        message += [decode_measurement(record.value) for record in await reader.read(1)]
    await reader.close()
    return message


async def exists(world: World, topic: str) -> bool:
    return bool(await world.bus.partitions(topic))


async def true_rate(world: World, topic: str) -> float:
    """Return the bytes/s that the log grows by, from two looks at it."""
    loop = asyncio.get_running_loop()
    (old,), begin = (await world.sample_topics(topic)).values(), loop.time()
    await asyncio.sleep(2)
    (new,), end = (await world.sample_topics(topic)).values(), loop.time()
    assert old
    assert new
    return ((new.size or 0) - (old.size or 0)) / (end - begin)


@pytest.mark.nightly
async def test_a_broker_restart_leaves_a_gap_in_measurements(tmp_path: Path, topic: str) -> None:
    async with asyncio.timeout(DEADLINE_S), run_broker(tmp_path) as running:
        kafka = KafkaSettings(bootstrap_servers=running.bootstrap_servers)
        async with KafkaControlTopics(kafka) as bus, KafkaLogs(kafka, broker_timeout_s=2) as logs:
            await bus.ensure(topic, 1, {})
            await bus.publish(topic, 0, b"k", RECORD)
            before = await sample_topics(logs, topic)
            await running.stop()
            with pytest.raises(BrokerUnavailable):
                await sample_topics(logs, topic)
            await running.start()
            assert await sample_topics(logs, topic) == before
