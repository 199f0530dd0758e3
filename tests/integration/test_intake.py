"""The intake against a real broker: what it returns, and what it must never return."""

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import psutil
import pytest
from aiokafka import AIOKafkaProducer, OffsetAndMetadata
from aiokafka import TopicPartition as Theirs
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic, RecordsToDelete
from aiokafka.consumer import AIOKafkaConsumer

from binwright.consumer.intake import KafkaIntake
from binwright.core.errors import BrokerUnavailable, TopicMissing
from binwright.core.model import TopicPartition
from binwright.core.ports import Hint, Intake, Record
from binwright.embedded.broker import run_broker
from binwright.shell.settings import KafkaSettings

pytestmark = pytest.mark.integration

DEADLINE_S = 30.0


class Hands:
    """Does to the broker what the intake must cope with."""

    def __init__(self, address: str, topic: str) -> None:
        self.address, self.topic = address, topic
        self.admin = AIOKafkaAdminClient(bootstrap_servers=address)
        self.producer = AIOKafkaProducer(bootstrap_servers=address)

    def partition(self, number: int) -> TopicPartition:
        return TopicPartition(self.topic, number)

    async def make(self, partitions: int) -> None:
        made = await self.admin.create_topics([NewTopic(self.topic, partitions, 1)])
        assert all(error[1] == 0 for error in made.topic_errors)

    async def produce(self, number: int, *values: bytes) -> None:
        for value in values:
            await self.producer.send(self.topic, value, partition=number, timestamp_ms=1_000)
        await self.producer.flush()

    async def forget(self, number: int, before: int) -> None:
        await self.admin.delete_records({Theirs(self.topic, number): RecordsToDelete(before)})


@pytest.fixture
async def hands(broker: str, request: pytest.FixtureRequest) -> AsyncIterator[Hands]:
    """Two partitions of a topic named by the test."""
    async with ready(broker, re.sub(r"\W", "-", request.node.name)) as hands:
        yield hands


@asynccontextmanager
async def ready(address: str, topic: str) -> AsyncIterator[Hands]:
    hands = Hands(address, topic)
    await hands.admin.start()
    await hands.producer.start()
    try:
        await hands.make(2)
        yield hands
    finally:
        await hands.producer.stop()
        await hands.admin.close()


def intake_of(hands: Hands, *, group: str = "g", isolation: str = "read_committed") -> KafkaIntake:
    kafka = KafkaSettings(bootstrap_servers=hands.address, request_timeout_s=10)
    return KafkaIntake(kafka, group, [hands.topic], isolation)


async def fetched(
    intake: Intake, enough: Callable[[dict[TopicPartition, list[Record]]], bool]
) -> dict[TopicPartition, list[Record]]:
    """Fetch until there is enough."""
    found: dict[TopicPartition, list[Record]] = {}
    async with asyncio.timeout(DEADLINE_S):
        while not enough(found):
            for partition, records in (await intake.fetch(1 << 20, 1.0)).items():
                found.setdefault(partition, []).extend(records)
    return found


async def values(intake: Intake, partition: TopicPartition, count: int) -> list[bytes | None]:
    found = await fetched(intake, lambda f: len(f.get(partition, ())) >= count)
    return [record.value for record in found[partition]]


def numbered(count: int, first: int = 0) -> Sequence[bytes]:
    return [b"%d" % number for number in range(first, first + count)]


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


async def test_bounds_tell_what_there_is(hands: Hands) -> None:
    await hands.produce(0, *numbered(10))
    await hands.forget(0, 4)
    async with intake_of(hands) as intake:
        assert await intake.bounds([hands.partition(0), hands.partition(1)]) == {
            hands.partition(0): (4, 10),
            hands.partition(1): (0, 0),
        }


async def test_missing_topics_and_partitions_are_named(hands: Hands) -> None:
    async with intake_of(hands) as intake:
        with pytest.raises(TopicMissing, match=f"{hands.topic}-7"):
            await intake.bounds([hands.partition(7)])
        with pytest.raises(TopicMissing, match=f"{hands.topic}-7"):
            await intake.start(hands.partition(7), 0)
    kafka = KafkaSettings(bootstrap_servers=hands.address)
    with pytest.raises(TopicMissing, match="nowhere"):
        async with KafkaIntake(kafka, "g", [hands.topic, "nowhere"]):
            pass


async def test_hints_come_back_as_they_were_given(hands: Hands) -> None:
    hint = Hint(5, 1 << 40, "0b8f-table")
    async with intake_of(hands, group="ours") as intake:
        await intake.hint({hands.partition(0): hint})
        assert await intake.hints([hands.partition(0), hands.partition(1)]) == {
            hands.partition(0): hint
        }
        assert await intake.hints([]) == {}
        await intake.hint({})
    async with intake_of(hands, group="others") as intake:
        assert await intake.hints([hands.partition(0)]) == {}


async def test_hints_are_where_people_look_for_offsets(hands: Hands) -> None:
    async with intake_of(hands, group="looked-at") as intake:
        await intake.hint({hands.partition(0): Hint(5, 1, "t")})
    told = await hands.admin.list_consumer_group_offsets("looked-at")

    assert {where.partition: offset.offset for where, offset in told.items()} == {0: 5}


async def test_offsets_that_others_committed_are_no_hints(hands: Hands) -> None:
    consumer = AIOKafkaConsumer(
        bootstrap_servers=hands.address, group_id="foreign", enable_auto_commit=False
    )
    await consumer.start()
    consumer.assign([Theirs(hands.topic, 0), Theirs(hands.topic, 1)])
    await consumer.commit(
        {
            Theirs(hands.topic, 0): OffsetAndMetadata(3, ""),
            Theirs(hands.topic, 1): OffsetAndMetadata(3, '{"v": "1"}'),
        }
    )
    await consumer.stop()
    async with intake_of(hands, group="foreign") as intake:
        assert await intake.hints([hands.partition(0), hands.partition(1)]) == {}


async def test_a_broker_that_is_not_there_is_named() -> None:
    kafka = KafkaSettings(bootstrap_servers="127.0.0.1:9")
    with pytest.raises(BrokerUnavailable, match=r"127\.0\.0\.1:9"):
        async with KafkaIntake(kafka, "g", ["any"]):
            pass


async def test_a_silent_broker_is_told_of_and_a_restart_loses_nothing(tmp_path: Path) -> None:
    async with (
        run_broker(tmp_path / "own") as server,
        ready(server.bootstrap_servers, "t") as hands,
    ):
        kafka = KafkaSettings(bootstrap_servers=hands.address, request_timeout_s=2)
        async with KafkaIntake(kafka, "g", ["t"]) as intake:
            await intake.start(hands.partition(0), 0)
            await hands.produce(0, *numbered(5))
            assert await values(intake, hands.partition(0), 5) == list(numbered(5))
            await server.stop()
            with pytest.raises(BrokerUnavailable, match="no broker has answered"):
                await fetched(intake, bool)
            with pytest.raises(BrokerUnavailable):
                await intake.bounds([hands.partition(0)])
            with pytest.raises(BrokerUnavailable):
                await intake.hint({hands.partition(0): Hint(5, 1, "t")})
            await server.start()
            await hands.produce(0, *numbered(5, first=5))

            seen: list[bytes | None] = []
            async with asyncio.timeout(DEADLINE_S):
                while len(seen) < 5:
                    try:
                        found = await intake.fetch(1_000, 0.5)
                    except BrokerUnavailable:
                        continue
                    seen += [record.value for record in found.get(hands.partition(0), ())]
            assert seen == list(numbered(5, first=5))
