"""The intake against a real broker: what it returns, and what it must never return."""

import asyncio

import psutil
import pytest
from aiokafka import AIOKafkaProducer
from aiokafka.admin import NewPartitions
from tests.integration.intake.data_topic import (
    DEADLINE_S,
    DataTopic,
    fetch_until,
    new_intake,
    numbered_values,
    values,
)

from binwright.consumer.read.aiokafka_consumer import FETCH_WAIT_MS
from binwright.protocol.errors import TopicMissing
from binwright.protocol.model import TopicPartition
from binwright.protocol.ports.kafka import NO_RECORDS, Record
from binwright.runtime.clock import loop_s
from binwright.testing.records import in_rows

pytestmark = pytest.mark.integration


async def test_a_record_is_returned_with_all_its_fields(data_topic: DataTopic) -> None:
    headers = [("a", b"1"), ("a", b""), ("b", b"\xff")]
    await data_topic.producer.send_and_wait(
        data_topic.topic, b"v", key=b"k", partition=1, timestamp_ms=1_234, headers=headers
    )
    await data_topic.producer.send_and_wait(
        data_topic.topic, None, key=b"k", partition=1, timestamp_ms=1_235
    )
    async with new_intake(data_topic) as intake:
        await intake.start(data_topic.partition(1), 0)
        found = await fetch_until(intake, lambda f: sum(map(len, f.values())) == 2)

    assert found == {
        data_topic.partition(1): [
            Record(0, 1_234, b"k", b"v", 0, tuple(headers)),
            Record(1, 1_235, b"k", None),
        ]
    }


async def test_reading_begins_at_the_offset_given(data_topic: DataTopic) -> None:
    await data_topic.produce(0, *numbered_values(10))
    async with new_intake(data_topic) as intake:
        await intake.start(data_topic.partition(0), 7)

        assert await values(intake, data_topic.partition(0), 3) == [b"7", b"8", b"9"]


async def test_data_come_at_once_and_silence_ends_in_time(data_topic: DataTopic) -> None:
    loop = asyncio.get_running_loop()
    async with new_intake(data_topic) as intake:
        await intake.start(data_topic.partition(0), 0)
        begun = loop.time()
        assert not await intake.fetch(1_000, 0.3)
        assert loop.time() - begun < 5

        waiting = asyncio.create_task(intake.fetch(1_000, DEADLINE_S))
        await data_topic.produce(0, b"x")
        assert [len(records) for records in (await waiting).values()] == [1]
        assert loop.time() - begun < DEADLINE_S


async def test_the_first_fetch_needs_no_new_connection(data_topic: DataTopic) -> None:
    """A partition that comes to a new consumer is not read by anybody meanwhile."""
    port = int(data_topic.address.rpartition(":")[2])
    me = psutil.Process()

    def connected() -> set[int]:
        return {c.laddr.port for c in me.net_connections("tcp") if c.raddr and c.raddr.port == port}

    await data_topic.produce(0, b"a")
    async with new_intake(data_topic) as intake:
        await intake.warm_up([data_topic.topic, "nowhere"])
        before = connected()
        await intake.start(data_topic.partition(0), 0)
        assert await values(intake, data_topic.partition(0), 1) == [b"a"]
        assert connected() <= before


async def test_the_first_fetch_of_a_started_partition_does_not_wait_for_more_records(
    data_topic: DataTopic,
) -> None:
    """A broker gathers records for later fetches, up to `FETCH_WAIT_MS`."""
    await data_topic.produce(0, b"a")
    partition, took_ms = data_topic.partition(0), []
    async with new_intake(data_topic) as intake:
        await intake.warm_up([data_topic.topic])
        for _ in range(10):
            begun = loop_s()
            await intake.start(partition, 0)
            assert await values(intake, partition, 1) == [b"a"]
            took_ms.append(1_000 * (loop_s() - begun))
            intake.stop(partition)
            await asyncio.sleep(2 * FETCH_WAIT_MS / 1_000)  # the next fetch has returned
    assert min(took_ms) < FETCH_WAIT_MS / 2


async def test_nothing_that_was_fetched_ahead_is_returned_after_a_stop(
    data_topic: DataTopic,
) -> None:
    await data_topic.produce(0, *numbered_values(100))
    await data_topic.produce(1, *numbered_values(100))
    async with new_intake(data_topic) as intake:
        await intake.start(data_topic.partition(0), 0)
        await intake.start(data_topic.partition(1), 0)
        await fetch_until(intake, bool)  # something is buffered by now
        intake.stop(data_topic.partition(0))
        await data_topic.produce(1, b"last")
        found = await fetch_until(
            intake, lambda f: any(r.value == b"last" for r in f.get(data_topic.partition(1), ()))
        )

        assert set(found) == {data_topic.partition(1)}


async def test_a_partition_that_stays_loses_and_repeats_nothing(data_topic: DataTopic) -> None:
    moving, staying = data_topic.partition(0), data_topic.partition(1)
    await data_topic.produce(0, *numbered_values(3_000))
    await data_topic.produce(1, *numbered_values(3_000))
    seen: list[bytes | None] = []
    async with new_intake(data_topic) as intake:
        await intake.start(staying, 0)
        async with asyncio.timeout(DEADLINE_S):
            while len(seen) < 3_000:
                await intake.start(moving, 0)
                found = await intake.fetch(20_000, 1.0)
                seen += [record.value for record in in_rows([found.get(staying, NO_RECORDS)])]
                intake.stop(moving)

    assert seen == list(numbered_values(3_000))


async def test_a_partition_started_again_reads_from_the_given_offset(data_topic: DataTopic) -> None:
    await data_topic.produce(0, *numbered_values(10))
    async with new_intake(data_topic) as intake:
        await intake.start(data_topic.partition(0), 0)
        assert await values(intake, data_topic.partition(0), 10) == list(numbered_values(10))
        intake.stop(data_topic.partition(0))
        await intake.start(data_topic.partition(0), 4)

        assert await values(intake, data_topic.partition(0), 6) == list(numbered_values(6, first=4))


async def test_a_cancelled_fetch_loses_nothing(data_topic: DataTopic) -> None:
    seen: list[bytes | None] = []
    partition = data_topic.partition(0)
    async with new_intake(data_topic) as intake:
        await intake.start(partition, 0)
        sending = asyncio.create_task(data_topic.produce(0, *numbered_values(500)))
        async with asyncio.timeout(DEADLINE_S):
            while len(seen) < 500:
                fetching = asyncio.create_task(intake.fetch(1_000, 1.0))
                await asyncio.wait([fetching], timeout=0.001)
                fetching.cancel()
                for found in await asyncio.gather(fetching, return_exceptions=True):
                    if not isinstance(found, BaseException):
                        seen += [
                            record.value for record in in_rows([found.get(partition, NO_RECORDS)])
                        ]
        await sending

    assert seen == list(numbered_values(500))


async def test_partitions_that_were_added_can_be_started(data_topic: DataTopic) -> None:
    await data_topic.produce(0, *numbered_values(100))
    async with new_intake(data_topic) as intake:
        await intake.start(data_topic.partition(0), 0)
        assert await values(intake, data_topic.partition(0), 100) == list(numbered_values(100))
        await data_topic.admin.create_partitions({data_topic.topic: NewPartitions(3)})
        async with asyncio.timeout(DEADLINE_S):
            while True:
                try:
                    await intake.start(data_topic.partition(2), 0)
                except TopicMissing:
                    await asyncio.sleep(0.05)  # the broker does not tell of it yet
                else:
                    break
        await data_topic.produce(0, b"old")
        await data_topic.producer.client.force_metadata_update()
        await data_topic.produce(2, b"new")
        found = await fetch_until(intake, lambda f: len(f) == 2)

    assert {p.partition: [r.value for r in some] for p, some in found.items()} == {
        0: [b"old"],
        2: [b"new"],
    }


async def test_offsets_that_retention_deleted_are_reported_once(data_topic: DataTopic) -> None:
    await data_topic.produce(0, *numbered_values(10))
    await data_topic.delete_before(0, 6)
    async with new_intake(data_topic) as intake:
        await intake.start(data_topic.partition(0), 2)

        assert await values(intake, data_topic.partition(0), 4) == list(numbered_values(4, first=6))
        assert intake.jumps() == {data_topic.partition(0): (2, 6)}
        assert intake.jumps() == {}


async def test_an_offset_behind_the_end_stops_that_partition_alone(data_topic: DataTopic) -> None:
    await data_topic.produce(0, *numbered_values(3))
    async with new_intake(data_topic) as intake:
        await intake.start(data_topic.partition(0), 50)
        await intake.start(data_topic.partition(1), 0)
        jumps: dict[TopicPartition, tuple[int, int]] = {}
        async with asyncio.timeout(DEADLINE_S):
            while not jumps:
                assert not await intake.fetch(1_000, 0.2)
                jumps.update(intake.jumps())
        await data_topic.produce(0, *numbered_values(60))
        await data_topic.produce(1, b"x")
        found = await fetch_until(intake, bool)

    assert jumps == {data_topic.partition(0): (50, 0)}
    assert set(found) == {data_topic.partition(1)}


async def transactions(data_topic: DataTopic, *, gone: bytes, kept: bytes) -> None:
    """Write a record in a transaction that is aborted, and one in a transaction that is not."""
    sender = AIOKafkaProducer(
        bootstrap_servers=data_topic.address, transactional_id=data_topic.topic
    )
    await sender.start()
    await sender.begin_transaction()
    await sender.send_and_wait(data_topic.topic, gone, partition=0)
    await sender.abort_transaction()
    await sender.begin_transaction()
    await sender.send_and_wait(data_topic.topic, kept, partition=0)
    await sender.commit_transaction()
    await sender.stop()


@pytest.mark.parametrize(
    ("isolation", "seen"), [("read_committed", [b"kept"]), ("read_uncommitted", [b"gone", b"kept"])]
)
async def test_aborted_records_are_passed_over(
    data_topic: DataTopic, isolation: str, seen: list[bytes]
) -> None:
    await transactions(data_topic, gone=b"gone", kept=b"kept")
    async with new_intake(data_topic, isolation=isolation) as intake:
        await intake.start(data_topic.partition(0), 0)

        assert await values(intake, data_topic.partition(0), len(seen)) == seen


async def test_a_partition_that_ends_in_a_marker_is_passed_to_its_end(
    data_topic: DataTopic,
) -> None:
    await transactions(data_topic, gone=b"gone", kept=b"kept")
    partition, passed = data_topic.partition(0), dict[TopicPartition, int]()
    async with new_intake(data_topic) as intake:
        await intake.start(partition, 0)
        assert await values(intake, partition, 1) == [b"kept"]
        _, end = (await intake.bounds([partition]))[partition]
        async with asyncio.timeout(DEADLINE_S):
            while passed.get(partition) != end:
                passed |= intake.passed()
                assert not await intake.fetch(1_000, 0.2)
