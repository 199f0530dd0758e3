"""A broker that keeps its sizes to itself, as managed ones do."""

import asyncio
from pathlib import Path
from statistics import median

import pytest
from aiokafka import AIOKafkaProducer
from structlog.testing import capture_logs

from binwright.kafka.client import client_options
from binwright.kafka.control_topics import KafkaControlTopics
from binwright.monitor.sampling import KafkaLogs
from binwright.runtime.settings.kafka import KafkaSettings

from .authorization import CLUSTER, DENY, acl, guarded_broker
from .metering import BatchProducer, Meter

pytestmark = pytest.mark.integration

DEADLINE_S = 90.0
TOPICS = ("plain", "lz4")


async def test_without_the_right_it_is_named_and_rates_are_estimated(tmp_path: Path) -> None:
    """Records change from 1 KB to 50 B and 5 KB meanwhile; batches are all that tells."""
    async with asyncio.timeout(DEADLINE_S):
        rules = [acl("reader", "Describe", CLUSTER, "kafka-cluster", DENY)]
        async with guarded_broker(tmp_path, ["reader"], rules, denies=False) as (owner, users):
            with capture_logs() as logged:
                meter, writers = await measured(owner, users["reader"])
    untold = [entry for entry in logged if entry["event"] == "sizes.unavailable"]
    assert len(untold) == 1
    assert "the right DESCRIBE on the CLUSTER" in untold[0]["reason"]
    for topic in TOPICS:
        sent = [rate for _, rate in meter.reported[topic]]
        assert {rate.quality for rate in sent} == {"warming", "estimated"}
        assert {rate.size for rate in sent} == {None}
        errors = [error for _, error in meter.errors(topic, writers[topic].ledger)]
        assert len(errors) > 30
        # Records of one size each second: only the seconds of a change are badly off.
        assert median(errors) < 0.25


async def measured(
    owner: KafkaSettings, reader: KafkaSettings
) -> tuple[Meter, dict[str, BatchProducer]]:
    async with (
        KafkaControlTopics(owner) as bus,
        KafkaLogs(reader) as logs,
        AIOKafkaProducer(**client_options(owner)) as plain,
        AIOKafkaProducer(**client_options(owner), compression_type="lz4") as lz4,
    ):
        for topic in TOPICS:
            await bus.ensure(topic, 1, {})
        writers = {t: BatchProducer(p, t) for t, p in zip(TOPICS, (plain, lz4), strict=True)}
        meter = Meter(logs, frozenset(TOPICS))
        works = [meter.run(), resized(writers), *(writer.run() for writer in writers.values())]
        tasks = [asyncio.create_task(work) for work in works]
        await tasks[1]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    return meter, writers


async def resized(writers: dict[str, BatchProducer]) -> None:
    for record_bytes in (1000, 50, 5000):
        for writer in writers.values():
            writer.record_bytes = record_bytes
        await asyncio.sleep(3)
