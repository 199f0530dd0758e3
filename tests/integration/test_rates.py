"""Rates against the bytes really appended, on a real broker, through all that happens to logs.

Every load runs at once, beside one monitor with a window of 2 s; then each test looks at its own.
"""

import asyncio
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import median

import pytest
from aiokafka import AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, RecordsToDelete

from binwright.kafka.client import client_options
from binwright.kafka.control_topics import KafkaControlTopics
from binwright.local.kafka import run_broker
from binwright.monitor.sampling import KafkaLogs
from binwright.runtime.settings.kafka import KafkaSettings

from .metering import NOISE, WINDOW_S, BatchProducer, Ledger, Meter, longest_deviation

pytestmark = pytest.mark.integration

DEADLINE_S = 120.0
PLAY_S = 10.0
BROKER = {
    "log.retention.check.interval.ms": "300",
    "log.initial.task.delay.ms": "100",
    "log.cleaner.backoff.ms": "200",
    "log.segment.delete.delay.ms": "0",
}
SMALL = {"segment.bytes": str(1 << 20), "file.delete.delay.ms": "0"}  # the smallest there may be
COMPACTED = {
    "cleanup.policy": "compact",
    "min.cleanable.dirty.ratio": "0.01",
    "min.compaction.lag.ms": "0",
}
LOADS: dict[str, dict[str, str]] = {
    "plain": {},
    "lz4": {},
    "zstd": {},
    "by-size": {**SMALL, "retention.bytes": "1"},
    "by-time": {**SMALL, "retention.ms": "300"},
    "deleted": SMALL,
    "compacted": {**SMALL, **COMPACTED},
    "resized": {**SMALL, "retention.bytes": "1"},
    "transactions": {},
    "idle": {},
}


DELETED = ("by-size", "by-time", "deleted", "resized")
OFTEN = 2  # times that a log's beginning has moved, and its first one


@dataclass
class Play:
    """What was said, and what was true."""

    meter: Meter
    ledgers: dict[str, Ledger]

    def errors(self, topic: str) -> list[tuple[float, float]]:
        found = self.meter.errors(topic, self.ledgers[topic])
        assert len(found) > 20
        return found

    def sizes_fell(self, topic: str) -> bool:
        sizes = [rate.size or 0 for _, rate in self.meter.reported[topic]]
        return any(new < old for old, new in pairwise(sizes))


def starts(meter: Meter, topic: str) -> set[int]:
    return {rate.start for _, rate in meter.reported[topic]}


async def resize(writer: BatchProducer) -> None:
    for record_bytes in (1000, 50, 5000):
        writer.record_bytes = record_bytes
        await asyncio.sleep(PLAY_S / 3)


async def delete(admin: AIOKafkaAdminClient, writer: BatchProducer) -> None:
    while True:
        await asyncio.sleep(0.5)
        before = RecordsToDelete(before_offset=writer.ledger.ends[-1])
        await admin.delete_records({TopicPartition(writer.topic, 0): before})


async def transact(kafka: KafkaSettings, topic: str) -> None:
    async with AIOKafkaProducer(**client_options(kafka), transactional_id=topic) as producer:
        for number in range(1_000_000):
            await producer.begin_transaction()
            for _ in range(5):
                await producer.send(topic, NOISE[:1000], partition=0)
            if number % 3:
                await producer.commit_transaction()
            else:
                await producer.abort_transaction()
            await asyncio.sleep(0.01)


async def play(directory: Path) -> Play:
    async with asyncio.timeout(DEADLINE_S), run_broker(directory, settings=BROKER) as broker:
        kafka = KafkaSettings(bootstrap_servers=broker.bootstrap_servers)
        async with KafkaControlTopics(kafka) as bus, KafkaLogs(kafka) as logs:
            for topic, config in LOADS.items():
                await bus.ensure(topic, 1, config)
            meter = Meter(logs, frozenset(LOADS))
            ledgers = await load(kafka, meter)
        ledgers["transactions"] = Ledger.from_segments(directory / "data" / "transactions-0")
        return Play(meter, ledgers)


async def load(kafka: KafkaSettings, meter: Meter) -> dict[str, Ledger]:
    options = client_options(kafka)
    async with (
        AIOKafkaProducer(**options) as plain,
        AIOKafkaProducer(**options, compression_type="lz4") as lz4,
        AIOKafkaProducer(**options, compression_type="zstd") as zstd,
    ):
        admin = AIOKafkaAdminClient(**options)
        await admin.start()
        by = {"lz4": lz4, "zstd": zstd}
        names = [topic for topic in LOADS if topic not in ("idle", "transactions")]
        writers = {topic: BatchProducer(by.get(topic, plain), topic) for topic in names}
        writers["compacted"].keys = 3
        works = [
            meter.run(),
            transact(kafka, "transactions"),
            delete(admin, writers["deleted"]),
            resize(writers["resized"]),
            *(writer.run() for writer in writers.values()),
        ]
        running = [asyncio.create_task(work) for work in works]
        await asyncio.sleep(PLAY_S)
        while not all(len(starts(meter, topic)) > OFTEN for topic in DELETED):  # noqa: ASYNC110 - Kafka deletes in its own time
            await asyncio.sleep(0.1)
        for task in running:
            task.cancel()
        ended = await asyncio.gather(*running, return_exceptions=True)
        await admin.close()
    assert [e for e in ended if e and not isinstance(e, asyncio.CancelledError)] == []
    return {topic: writer.ledger for topic, writer in writers.items()}


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Play:
    """Everything at once, for ten seconds and until records were deleted often."""
    return asyncio.run(play(tmp_path_factory.mktemp("rates")))


@pytest.mark.parametrize(("topic", "bar"), [("plain", 0.02), ("lz4", 0.05), ("zstd", 0.05)])
def test_a_steady_load_is_measured_as_what_was_stored(played: Play, topic: str, bar: float) -> None:
    errors = [error for _, error in played.errors(topic)]
    assert median(errors) <= bar
    # Size and offset are asked one after the other: what comes in between counts at a window's
    # edge. Of 30 s that is a fifteenth of what it is of 2.
    assert max(errors) <= 0.15
    assert {r.quality for _, r in played.meter.reported[topic]} == {"warming", "measured"}


def test_transactions_count_with_their_markers_committed_or_not(played: Play) -> None:
    assert median(error for _, error in played.errors("transactions")) <= 0.02


@pytest.mark.parametrize("topic", DELETED)
def test_deleted_records_do_not_distort_rates(played: Play, topic: str) -> None:
    assert len(starts(played.meter, topic)) > OFTEN
    assert played.sizes_fell(topic)
    assert longest_deviation(played.errors(topic), 0.25) <= WINDOW_S


def test_compaction_does_not_distort_rates(played: Play) -> None:
    assert played.sizes_fell("compacted")
    assert longest_deviation(played.errors("compacted"), 0.25) <= WINDOW_S


def test_an_idle_partition_is_measured_at_nothing(played: Play) -> None:
    message = [rate for _, rate in played.meter.reported["idle"]]
    assert {rate.rate for rate in message[1:]} == {0.0}
    assert message[-1].quality == "measured"


def test_no_rate_is_ever_negative(played: Play) -> None:
    rates = [rate.rate for message in played.meter.reported.values() for _, rate in message]
    assert min(rate for rate in rates if rate is not None) >= 0
