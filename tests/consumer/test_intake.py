"""What the intake does where aiokafka fails, and where commands cross each other."""

import asyncio
from collections.abc import AsyncIterator, Collection

import pytest
from aiokafka import ConsumerRecord
from aiokafka import TopicPartition as Theirs
from aiokafka.errors import CorruptRecordException, KafkaError, TopicAuthorizationFailedError

from binwright.consumer import decode
from binwright.consumer.intake import TRIES, KafkaIntake
from binwright.core.errors import BrokerUnavailable, TopicMissing
from binwright.core.model import TopicPartition
from binwright.shell.settings import KafkaSettings

P, Q = TopicPartition("orders", 0), TopicPartition("orders", 1)
C = TopicPartition("clicks", 0)
pytestmark = pytest.mark.looptime(noop_cycles=1)


class Client:
    """A consumer of aiokafka with five records in each partition, which may fail.

    Like aiokafka's, it has moved on past what came before an error when it raises.
    """

    def __init__(self) -> None:
        self.places: dict[Theirs, int] = {}
        self.paused: set[Theirs] = set()
        self.assigned = 0
        self.error: KafkaError | None = None
        self.torn: dict[Theirs, int] = {}  # -> offset at which a batch of two cannot be decoded

    def assign(self, partitions: list[Theirs]) -> None:
        self.places, self.paused = dict.fromkeys(partitions, 0), set()
        self.assigned += 1

    def seek(self, partition: Theirs, offset: int) -> None:
        self.places[partition] = offset

    def pause(self, *partitions: Theirs) -> None:
        self.paused.update(partitions)

    def resume(self, *partitions: Theirs) -> None:
        self.paused.difference_update(partitions)

    def last_poll_timestamp(self, _: Theirs) -> int | None:
        return None

    async def getmany(
        self, *, timeout_ms: int, max_records: int
    ) -> dict[Theirs, list[ConsumerRecord]]:
        assert timeout_ms > 0
        assert max_records > 0
        came = {}
        for partition, place in self.places.items():
            end = self.torn.get(partition, 5)
            if partition in self.paused:
                continue
            if place == self.torn.get(partition):
                decode.watch(partition).fault = decode.Fault(place, place + 2, "torn")
            elif place < 5:
                end = end if end > place else 5
                came[partition] = [_record(partition, offset) for offset in range(place, end)]
                self.places[partition] = end
        if self.error:
            raise self.error
        if not came:
            await asyncio.sleep(timeout_ms / 1000)
        return came

    async def stop(self) -> None:
        """Nothing to let go of."""


def _record(partition: Theirs, offset: int) -> ConsumerRecord:
    return ConsumerRecord(*partition, offset, 0, 0, None, b"v", None, -1, 1, ())


class Topics:
    """What there is; it can be slow to tell."""

    def __init__(self) -> None:
        self.told = asyncio.Event()
        self.told.set()

    async def existing(self, topics: Collection[str]) -> set[TopicPartition]:
        await self.told.wait()
        if "nowhere" in topics:
            raise TopicMissing("no such topics: nowhere")
        return {p for p in (P, Q, C) if p.topic in topics}


@pytest.fixture
async def client() -> Client:
    return Client()


@pytest.fixture
async def intake(client: Client) -> AsyncIterator[KafkaIntake]:
    intake = KafkaIntake(KafkaSettings(), "g")
    intake._read._consumer = client
    intake._topics = Topics()  # type: ignore[assignment]
    intake._tidied_at = float("inf")
    yield intake
    await intake.__aexit__()


async def offsets(intake: KafkaIntake) -> dict[TopicPartition, list[int]]:
    found = await intake.fetch(1_000_000, 1.0)
    return {p: [record.offset for record in records] for p, records in found.items()}


async def test_a_topic_is_assigned_when_its_first_partition_is_started(
    intake: KafkaIntake, client: Client
) -> None:
    await intake.start(P, 2)
    assert (set(client.places), client.assigned) == ({Theirs(*P), Theirs(*Q)}, 1)
    assert client.paused == {Theirs(*Q)}
    await intake.start(Q, 0)
    assert client.assigned == 1, "the others would lose what they have fetched ahead"
    assert await offsets(intake) == {P: [2, 3, 4], Q: [0, 1, 2, 3, 4]}
    await intake.start(C, 1)
    assert client.places == {Theirs(*P): 5, Theirs(*Q): 5, Theirs(*C): 1}


async def test_an_error_loses_nothing_that_came_with_it(
    intake: KafkaIntake, client: Client
) -> None:
    """aiokafka forgets what it took from other partitions before the error."""
    await intake.start(P, 2)
    client.error = CorruptRecordException("Invalid CRC")
    with pytest.raises(BrokerUnavailable, match="Invalid CRC"):
        await intake.fetch(1_000, 1.0)
    client.error = None

    assert await offsets(intake) == {P: [2, 3, 4]}


async def test_only_what_is_started_is_not_paused(intake: KafkaIntake, client: Client) -> None:
    await intake.start(P, 0)
    assert client.paused == {Theirs(*Q)}
    intake.stop(P)
    intake.stop(P)

    assert client.paused == {Theirs(*P), Theirs(*Q)}


async def test_a_stop_that_crosses_the_first_start_wins(
    intake: KafkaIntake, client: Client
) -> None:
    """C4: the partition would be fetched, and thrown away, until something else happens to it."""
    topics: Topics = intake._topics  # type: ignore[assignment]
    topics.told.clear()
    starting = asyncio.create_task(intake.start(P, 2))
    await asyncio.sleep(1)
    intake.stop(P)
    topics.told.set()
    await starting

    assert not await offsets(intake)
    await intake.start(P, 3)
    assert await offsets(intake) == {P: [3, 4]}
    assert client.assigned == 1


async def test_a_later_start_wins_over_one_that_still_looks(intake: KafkaIntake) -> None:
    topics: Topics = intake._topics  # type: ignore[assignment]
    topics.told.clear()
    first = asyncio.create_task(intake.start(P, 0))
    second = asyncio.create_task(intake.start(P, 3))
    await asyncio.sleep(1)
    topics.told.set()
    await asyncio.gather(first, second)

    assert await offsets(intake) == {P: [3, 4]}


async def test_a_missing_topic_is_named_and_the_others_go_on(intake: KafkaIntake) -> None:
    await intake.start(P, 4)
    with pytest.raises(TopicMissing, match="nowhere"):
        await intake.start(TopicPartition("nowhere", 0), 0)
    with pytest.raises(TopicMissing, match="orders-7"):
        await intake.start(TopicPartition("orders", 7), 0)

    assert await offsets(intake) == {P: [4]}


async def test_a_refused_topic_rests_alone(intake: KafkaIntake, client: Client) -> None:
    await intake.start(P, 0)
    await intake.start(Q, 0)
    await intake.start(C, 0)
    client.error = TopicAuthorizationFailedError("orders")
    for _ in range(3):  # one for each of its partitions, and the pause was in vain so far
        await intake.fetch(1_000, 1.0)
    assert client.paused == {Theirs(*P), Theirs(*Q)}
    client.error = None
    client.places = dict.fromkeys(client.places, 0)
    assert await offsets(intake) == {C: [0, 1, 2, 3, 4]}
    await asyncio.sleep(1)
    assert (await offsets(intake)).keys() == {P, Q}, "and it is tried again"


async def test_a_batch_that_cannot_be_decoded_is_a_hole_after_some_tries(
    intake: KafkaIntake, client: Client
) -> None:
    await intake.start(P, 0)
    await intake.start(Q, 0)
    client.torn[Theirs(*P)] = 1
    assert await offsets(intake) == {P: [0], Q: [0, 1, 2, 3, 4]}
    for _ in range(TRIES):
        assert intake.undecodable == 0
        await asyncio.sleep(20)
        assert not await offsets(intake)
    assert intake.undecodable == 2
    assert await offsets(intake) == {P: [3, 4]}
