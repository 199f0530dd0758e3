"""Rates while leaders move, brokers hang, end and come back: three real brokers, one monitor."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager

import pytest
from aiokafka import AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient, NewTopic

from binwright.kafka.client import client_options
from binwright.local.kafka import EmbeddedBroker
from binwright.monitor.sampling import KafkaLogs
from binwright.runtime.settings.kafka import KafkaSettings

from .conftest import BackgroundLoop
from .metering import WINDOW_S, BatchProducer, Meter, longest_deviation

pytestmark = pytest.mark.integration

DEADLINE_S = 90.0
ANSWER_S = 0.5


class Stage:
    """Topics of one partition, written to and measured."""

    def __init__(self, brokers: tuple[EmbeddedBroker, ...], meter: Meter) -> None:
        self.brokers, self.meter = brokers, meter
        self.writers: dict[str, BatchProducer] = {}

    async def until(self, holds: Callable[[], bool]) -> None:
        async with asyncio.timeout(DEADLINE_S / 2):
            while not holds():  # noqa: ASYNC110 - a broker calls nobody back
                await asyncio.sleep(0.05)

    async def passes(self, topic: str, count: int) -> None:
        message = self.meter.reported[topic]
        wanted = len(message) + count
        await self.until(lambda: len(message) >= wanted)

    def quality(self, topic: str) -> str:
        message = self.meter.reported[topic]
        return message[-1][1].quality if message else ""

    def leader(self, topic: str) -> int | None:
        return self.meter.reported[topic][-1][1].leader

    def off_s(self, topic: str) -> float:
        errors = self.meter.errors(topic, self.writers[topic].ledger)
        assert len(errors) > 10
        return longest_deviation(errors, 0.25)


@asynccontextmanager
async def staged(
    brokers: tuple[EmbeddedBroker, ...], topics: dict[str, list[int]]
) -> AsyncIterator[Stage]:
    """Write to topics with these replicas (the first leads), and measure them."""
    servers = ",".join(broker.bootstrap_servers for broker in brokers)
    kafka = KafkaSettings(bootstrap_servers=servers)
    admin = AIOKafkaAdminClient(**client_options(kafka))
    async with asyncio.timeout(DEADLINE_S), KafkaLogs(kafka, broker_timeout_s=ANSWER_S) as logs:
        await admin.start()
        made = [
            NewTopic(topic, -1, -1, replica_assignments={0: replicas})
            for topic, replicas in topics.items()
        ]
        await admin.create_topics(made)
        await admin.close()
        stage = Stage(brokers, Meter(logs, frozenset(topics)))
        async with AIOKafkaProducer(**client_options(kafka)) as producer:
            stage.writers = {topic: BatchProducer(producer, topic) for topic in topics}
            works = [stage.meter.run(), *(writer.run() for writer in stage.writers.values())]
            tasks = [asyncio.create_task(work) for work in works]
            try:
                for topic in topics:
                    await stage.until(lambda topic=topic: stage.quality(topic) == "measured")  # type: ignore[misc]
                yield stage
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)


@contextmanager
def hanging(broker: EmbeddedBroker) -> Iterator[None]:
    """Freeze a broker: its connections stand, and nothing comes."""
    assert broker.pid
    os.kill(broker.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(broker.pid, signal.SIGCONT)


async def test_a_leader_move_does_not_distort_rates(
    background_loop: BackgroundLoop, brokers: tuple[EmbeddedBroker, ...]
) -> None:
    """Replicas differ in size, and the new leader is not the old one's continuation."""
    async with staged(brokers, {"moves": [1, 2, 3]}) as stage:
        assert stage.leader("moves") == 1
        await background_loop.run(brokers[0].stop())
        try:
            await stage.until(lambda: stage.leader("moves") in {2, 3})
            await stage.passes("moves", 30)
        finally:
            await background_loop.run(brokers[0].start())
        assert stage.off_s("moves") <= WINDOW_S
        rates = [rate.rate for _, rate in stage.meter.reported["moves"] if rate.rate is not None]
        assert min(rates) >= 0


async def test_a_broker_that_hangs_makes_its_own_partitions_stale(
    brokers: tuple[EmbeddedBroker, ...],
) -> None:
    async with staged(brokers, {"steady": [1], "frozen": [2]}) as stage:
        with hanging(brokers[1]):
            await stage.until(lambda: stage.meter.reported["frozen"][-1][1].age_s > 1)
            assert stage.quality("frozen") == "stale"
            await stage.passes("steady", 3)
            assert stage.quality("steady") == "measured"
            assert stage.meter.reported["steady"][-1][1].age_s < ANSWER_S
        await stage.until(lambda: stage.quality("frozen") == "measured")
        await stage.passes("frozen", 20)
        assert stage.off_s("steady") <= WINDOW_S
        assert stage.off_s("frozen") <= WINDOW_S


async def test_a_partition_without_a_leader_is_stale_until_it_has_one(
    background_loop: BackgroundLoop, brokers: tuple[EmbeddedBroker, ...]
) -> None:
    async with staged(brokers, {"alone": [3]}) as stage:
        end = stage.meter.reported["alone"][-1][1].end
        await background_loop.run(brokers[2].kill())
        try:
            await stage.until(lambda: stage.quality("alone") == "stale")
            await stage.passes("alone", 3)
            assert stage.quality("alone") == "stale"
        finally:
            await background_loop.run(brokers[2].start())
        await stage.until(lambda: stage.quality("alone") == "measured")
        await stage.passes("alone", 20)
        assert stage.meter.reported["alone"][-1][1].end > end
        assert stage.off_s("alone") <= WINDOW_S
