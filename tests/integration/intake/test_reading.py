"""The intake against a real broker: what it returns, and what it must never return."""

import asyncio

import psutil
import pytest
from aiokafka import AIOKafkaProducer
from aiokafka.admin import NewPartitions
from tests.integration.intake.hands import (
    DEADLINE_S,
    Hands,
    fetched,
    intake_of,
    numbered,
    values,
)

from binwright.core.errors import TopicMissing
from binwright.core.model import TopicPartition
from binwright.core.ports import Record

pytestmark = pytest.mark.integration


async def test_a_record_comes_whole(hands: Hands) -> None:
    headers = [("a", b"1"), ("a", b""), ("b", b"\xff")]
    await hands.producer.send_and_wait(
        hands.topic, b"v", key=b"k", partition=1, timestamp_ms=1_234, headers=headers
    )
    await hands.producer.send_and_wait(hands.topic, None, key=b"k", partition=1, timestamp_ms=1_235)
    async with intake_of(hands) as intake:
        await intake.start(hands.partition(1), 0)
        found = await fetched(intake, lambda f: sum(map(len, f.values())) == 2)

    assert found == {
        hands.partition(1): [
            Record(0, 1_234, b"k", b"v", 0, tuple(headers)),
            Record(1, 1_235, b"k", None),
        ]
    }


async def test_reading_begins_at_the_offset_given(hands: Hands) -> None:
    await hands.produce(0, *numbered(10))
    async with intake_of(hands) as intake:
        await intake.start(hands.partition(0), 7)

        assert await values(intake, hands.partition(0), 3) == [b"7", b"8", b"9"]


async def test_data_come_at_once_and_silence_ends_in_time(hands: Hands) -> None:
    loop = asyncio.get_running_loop()
    async with intake_of(hands) as intake:
        await intake.start(hands.partition(0), 0)
        begun = loop.time()
        assert not await intake.fetch(1_000, 0.3)
        assert loop.time() - begun < 5

        waiting = asyncio.create_task(intake.fetch(1_000, DEADLINE_S))
        await hands.produce(0, b"x")
        assert [len(records) for records in (await waiting).values()] == [1]
        assert loop.time() - begun < DEADLINE_S


async def test_the_first_fetch_needs_no_new_connection(hands: Hands) -> None:
    """A partition that comes to a new consumer is not read by anybody meanwhile."""
    port = int(hands.address.rpartition(":")[2])
    me = psutil.Process()

    def connected() -> set[int]:
        return {c.laddr.port for c in me.net_connections("tcp") if c.raddr and c.raddr.port == port}

    await hands.produce(0, b"a")
    async with intake_of(hands) as intake:
        await intake.warm_up([hands.topic, "nowhere"])
        before = connected()
        await intake.start(hands.partition(0), 0)
        assert await values(intake, hands.partition(0), 1) == [b"a"]
        assert connected() <= before


async def test_nothing_that_was_fetched_ahead_is_returned_after_a_stop(hands: Hands) -> None:
    await hands.produce(0, *numbered(100))
    await hands.produce(1, *numbered(100))
    async with intake_of(hands) as intake:
        await intake.start(hands.partition(0), 0)
        await intake.start(hands.partition(1), 0)
        await fetched(intake, bool)  # something is buffered by now
        intake.stop(hands.partition(0))
        await hands.produce(1, b"last")
        found = await fetched(
            intake, lambda f: any(r.value == b"last" for r in f.get(hands.partition(1), ()))
        )

        assert set(found) == {hands.partition(1)}


async def test_a_partition_that_stays_loses_and_repeats_nothing(hands: Hands) -> None:
    moving, staying = hands.partition(0), hands.partition(1)
    await hands.produce(0, *numbered(3_000))
    await hands.produce(1, *numbered(3_000))
    seen: list[bytes | None] = []
    async with intake_of(hands) as intake:
        await intake.start(staying, 0)
        async with asyncio.timeout(DEADLINE_S):
            while len(seen) < 3_000:
                await intake.start(moving, 0)
                found = await intake.fetch(20_000, 1.0)
                seen += [record.value for record in found.get(staying, ())]
                intake.stop(moving)

    assert seen == list(numbered(3_000))


async def test_a_partition_started_again_goes_where_it_is_told(hands: Hands) -> None:
    await hands.produce(0, *numbered(10))
    async with intake_of(hands) as intake:
        await intake.start(hands.partition(0), 0)
        assert await values(intake, hands.partition(0), 10) == list(numbered(10))
        intake.stop(hands.partition(0))
        await intake.start(hands.partition(0), 4)

        assert await values(intake, hands.partition(0), 6) == list(numbered(6, first=4))


async def test_a_cancelled_fetch_loses_nothing(hands: Hands) -> None:
    seen: list[bytes | None] = []
    partition = hands.partition(0)
    async with intake_of(hands) as intake:
        await intake.start(partition, 0)
        sending = asyncio.create_task(hands.produce(0, *numbered(500)))
        async with asyncio.timeout(DEADLINE_S):
            while len(seen) < 500:
                fetching = asyncio.create_task(intake.fetch(1_000, 1.0))
                await asyncio.wait([fetching], timeout=0.001)
                fetching.cancel()
                for found in await asyncio.gather(fetching, return_exceptions=True):
                    if not isinstance(found, BaseException):
                        seen += [record.value for record in found.get(partition, ())]
        await sending

    assert seen == list(numbered(500))


async def test_partitions_that_were_added_can_be_started(hands: Hands) -> None:
    await hands.produce(0, *numbered(100))
    async with intake_of(hands) as intake:
        await intake.start(hands.partition(0), 0)
        assert await values(intake, hands.partition(0), 100) == list(numbered(100))
        await hands.admin.create_partitions({hands.topic: NewPartitions(3)})
        async with asyncio.timeout(DEADLINE_S):
            while True:
                try:
                    await intake.start(hands.partition(2), 0)
                except TopicMissing:
                    await asyncio.sleep(0.05)  # the broker does not tell of it yet
                else:
                    break
        await hands.produce(0, b"old")
        await hands.producer.client.force_metadata_update()
        await hands.produce(2, b"new")
        found = await fetched(intake, lambda f: len(f) == 2)

    assert {p.partition: [r.value for r in some] for p, some in found.items()} == {
        0: [b"old"],
        2: [b"new"],
    }


async def test_what_retention_took_is_a_hole_that_is_told_once(hands: Hands) -> None:
    await hands.produce(0, *numbered(10))
    await hands.forget(0, 6)
    async with intake_of(hands) as intake:
        await intake.start(hands.partition(0), 2)

        assert await values(intake, hands.partition(0), 4) == list(numbered(4, first=6))
        assert intake.lost() == {hands.partition(0): (2, 6)}
        assert intake.lost() == {}


async def test_a_place_behind_the_end_stops_that_partition_alone(hands: Hands) -> None:
    await hands.produce(0, *numbered(3))
    async with intake_of(hands) as intake:
        await intake.start(hands.partition(0), 50)
        await intake.start(hands.partition(1), 0)
        lost: dict[TopicPartition, tuple[int, int]] = {}
        async with asyncio.timeout(DEADLINE_S):
            while not lost:
                assert not await intake.fetch(1_000, 0.2)
                lost.update(intake.lost())
        await hands.produce(0, *numbered(60))
        await hands.produce(1, b"x")
        found = await fetched(intake, bool)

    assert lost == {hands.partition(0): (50, 0)}
    assert set(found) == {hands.partition(1)}


@pytest.mark.parametrize(
    ("isolation", "seen"), [("read_committed", [b"kept"]), ("read_uncommitted", [b"gone", b"kept"])]
)
async def test_aborted_records_are_passed_over(
    hands: Hands, isolation: str, seen: list[bytes]
) -> None:
    sender = AIOKafkaProducer(bootstrap_servers=hands.address, transactional_id=hands.topic)
    await sender.start()
    await sender.begin_transaction()
    await sender.send_and_wait(hands.topic, b"gone", partition=0)
    await sender.abort_transaction()
    await sender.begin_transaction()
    await sender.send_and_wait(hands.topic, b"kept", partition=0)
    await sender.commit_transaction()
    await sender.stop()
    async with intake_of(hands, isolation=isolation) as intake:
        await intake.start(hands.partition(0), 0)

        assert await values(intake, hands.partition(0), len(seen)) == seen
