"""A stream played onto a real broker."""

import asyncio
from pathlib import Path

import pytest
from aiokafka import AIOKafkaConsumer
from aiokafka import TopicPartition as KafkaPartition
from tests.integration.topics import create_topic

from binwright.local.kafka import run_broker
from binwright.protocol.errors import BrokerUnavailable, TopicMissing
from binwright.protocol.model import TopicPartition
from binwright.runtime.settings.kafka import KafkaSettings
from binwright.streams.load import LoadResult, run_load
from binwright.streams.load_pacing import Pacing
from binwright.streams.streams import PerCent, Row

pytestmark = pytest.mark.integration

LOAD = Pacing(row_s=0.5, bytes_per_per_cent=10_000, record_bytes=500)


async def made(broker: str, topic: str, partitions: int) -> str:
    await create_topic(KafkaSettings(bootstrap_servers=broker), topic, partitions)
    return topic


async def ends(broker: str, topic: str, partitions: int) -> dict[TopicPartition, int]:
    async with AIOKafkaConsumer(bootstrap_servers=broker) as consumer:
        wanted = [KafkaPartition(topic, number) for number in range(partitions)]
        found = await consumer.end_offsets(wanted)
    return {TopicPartition(*partition): end for partition, end in found.items()}


def records(load_result: LoadResult) -> dict[TopicPartition, int]:
    return {partition: sent.records for partition, sent in load_result.partitions.items()}


async def test_every_row_becomes_records_that_the_broker_has(broker: str) -> None:
    topic = await made(broker, "load.rows", 2)
    one, two = TopicPartition(topic, 0), TopicPartition(topic, 1)
    stream = [{one: PerCent(40), two: PerCent(10)}, {one: PerCent(20)}]
    begun: list[tuple[int, Row]] = []

    load_result = await run_load(
        stream,
        KafkaSettings(bootstrap_servers=broker),
        LOAD,
        on_row=lambda row, measurement: begun.append((row, measurement)),
    )

    # 60 and 10 per cent for half a second, of which up to a record may stay in the bucket.
    assert 599 <= load_result.partitions[one].records <= 600
    assert 99 <= load_result.partitions[two].records <= 100
    assert load_result.partitions[one].bytes == 500 * load_result.partitions[one].records
    assert await ends(broker, topic, 2) == records(load_result)
    assert begun == list(enumerate(stream))
    assert load_result.rows == 2
    assert load_result.shed_bytes == 0


async def test_it_ends_on_request_after_its_records_are_confirmed(broker: str) -> None:
    topic = await made(broker, "load.stopped", 1)
    stop = asyncio.Event()

    load_result = await run_load(
        [{TopicPartition(topic, 0): PerCent(50)}],
        KafkaSettings(bootstrap_servers=broker),
        Pacing(row_s=0.2, bytes_per_per_cent=10_000, duration_s=600),
        on_row=lambda row, _: stop.set() if row == 2 else None,
        stop=stop,
    )

    assert 3 <= load_result.rows < 100
    assert await ends(broker, topic, 1) == records(load_result)


async def test_a_cancelled_load_has_stopped_sending(broker: str) -> None:
    topic = await made(broker, "load.cancelled", 1)
    partition = TopicPartition(topic, 0)
    begun = asyncio.Event()
    load = Pacing(row_s=0.2, bytes_per_per_cent=10_000, duration_s=600)
    task = asyncio.create_task(
        run_load(
            [{partition: PerCent(50)}],
            KafkaSettings(bootstrap_servers=broker),
            load,
            on_row=lambda row, _: begun.set() if row == 1 else None,
        )
    )
    await asyncio.wait_for(begun.wait(), 30)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(task, 30)

    before = await ends(broker, topic, 1)
    assert before[partition] > 0
    assert await ends(broker, topic, 1) == before


async def test_a_partition_that_does_not_exist_is_named(broker: str) -> None:
    topic = await made(broker, "load.short", 1)
    kafka = KafkaSettings(bootstrap_servers=broker, request_timeout_s=1)
    stream = [{TopicPartition(topic, n): PerCent(1) for n in range(2)}]

    with pytest.raises(TopicMissing, match=r"there is no load.short-1: create it first"):
        await run_load(stream, kafka, LOAD)


async def test_unconfirmed_records_are_counted(tmp_path: Path) -> None:
    async with run_broker(tmp_path / "broker") as running:
        topic = await made(running.bootstrap_servers, "load.lost", 1)
        begun = asyncio.Event()
        task = asyncio.create_task(
            run_load(
                [{TopicPartition(topic, 0): PerCent(50)}],
                KafkaSettings(bootstrap_servers=running.bootstrap_servers),
                Pacing(row_s=0.2, bytes_per_per_cent=10_000, duration_s=3, delivery_s=1),
                on_row=lambda row, _: begun.set() if row == 1 else None,
            )
        )
        await asyncio.wait_for(begun.wait(), 30)
        await running.kill()

        with pytest.raises(
            BrokerUnavailable, match=r"\d+ of \d+ records .* the first: load.lost-0: .*timed out"
        ):
            await asyncio.wait_for(task, 60)
