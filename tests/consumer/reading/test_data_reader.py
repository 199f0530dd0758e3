"""The data reader when aiokafka fails, and when starts and stops overlap."""

import asyncio
from collections.abc import AsyncIterator, Collection

import pytest
from aiokafka import ConsumerRecord
from aiokafka import TopicPartition as KafkaPartition
from aiokafka.errors import CorruptRecordException, KafkaError, TopicAuthorizationFailedError

from binwright.consumer.reading.data_reader import TRIES, KafkaDataReader
from binwright.kafka.aiokafka_patches import DecodeFault, watch
from binwright.protocol.errors import BrokerUnavailable, TopicMissing
from binwright.protocol.model import TopicPartition
from binwright.runtime.settings import KafkaSettings

P, Q = TopicPartition("orders", 0), TopicPartition("orders", 1)
C = TopicPartition("clicks", 0)
pytestmark = pytest.mark.looptime(noop_cycles=1)


class FakeClient:
    """A consumer of aiokafka with five records in each partition, which may fail.

    Like aiokafka's, it is past the records that it took before the error when it raises.
    """

    def __init__(self) -> None:
        self.positions: dict[KafkaPartition, int] = {}
        self.paused: set[KafkaPartition] = set()
        self.assigned = 0
        self.error: KafkaError | None = None
        self.torn: dict[
            KafkaPartition, int
        ] = {}  # -> offset at which a batch of two cannot be decoded

    def assign(self, partitions: list[KafkaPartition]) -> None:
        self.positions, self.paused = dict.fromkeys(partitions, 0), set()
        self.assigned += 1

    def seek(self, partition: KafkaPartition, offset: int) -> None:
        self.positions[partition] = offset

    def pause(self, *partitions: KafkaPartition) -> None:
        self.paused.update(partitions)

    def resume(self, *partitions: KafkaPartition) -> None:
        self.paused.difference_update(partitions)

    def last_poll_timestamp(self, _: KafkaPartition) -> int | None:
        return None

    async def getmany(
        self, *, timeout_ms: int, max_records: int
    ) -> dict[KafkaPartition, list[ConsumerRecord]]:
        assert timeout_ms > 0
        assert max_records > 0
        polled = {}
        for partition, position in self.positions.items():
            end = self.torn.get(partition, 5)
            if partition in self.paused:
                continue
            if position == self.torn.get(partition):
                watch(partition).fault = DecodeFault(position, position + 2, "torn")
            elif position < 5:
                end = end if end > position else 5
                polled[partition] = [_record(partition, offset) for offset in range(position, end)]
                self.positions[partition] = end
        if self.error:
            raise self.error
        if not polled:
            await asyncio.sleep(timeout_ms / 1000)
        return polled

    async def stop(self) -> None:
        """Do nothing: there are no connections."""


def _record(partition: KafkaPartition, offset: int) -> ConsumerRecord:
    return ConsumerRecord(*partition, offset, 0, 0, None, b"v", None, -1, 1, ())


class SlowTopics:
    """The existing partitions; the reply waits for `described`."""

    def __init__(self) -> None:
        self.described = asyncio.Event()
        self.described.set()

    async def existing(self, topics: Collection[str]) -> set[TopicPartition]:
        await self.described.wait()
        if "nowhere" in topics:
            raise TopicMissing("no such topics: nowhere")
        return {p for p in (P, Q, C) if p.topic in topics}


@pytest.fixture
async def client() -> FakeClient:
    return FakeClient()


@pytest.fixture
async def reader(client: FakeClient) -> AsyncIterator[KafkaDataReader]:
    reader = KafkaDataReader(KafkaSettings(), "g")
    reader._assigned._consumer = client
    reader._topics = SlowTopics()  # type: ignore[assignment]
    reader._cleaned_up_at = float("inf")
    yield reader
    await reader.__aexit__()


async def offsets(reader: KafkaDataReader) -> dict[TopicPartition, list[int]]:
    found = await reader.fetch(1_000_000, 1.0)
    return {p: [record.offset for record in records] for p, records in found.items()}


async def test_a_topic_is_assigned_when_its_first_partition_is_started(
    reader: KafkaDataReader, client: FakeClient
) -> None:
    await reader.start(P, 2)
    assert (set(client.positions), client.assigned) == ({KafkaPartition(*P), KafkaPartition(*Q)}, 1)
    assert client.paused == {KafkaPartition(*Q)}
    await reader.start(Q, 0)
    assert client.assigned == 1, "an assignment would discard what other partitions fetched ahead"
    assert await offsets(reader) == {P: [2, 3, 4], Q: [0, 1, 2, 3, 4]}
    await reader.start(C, 1)
    assert client.positions == {KafkaPartition(*P): 5, KafkaPartition(*Q): 5, KafkaPartition(*C): 1}


async def test_an_error_loses_no_records_fetched_along_with_it(
    reader: KafkaDataReader, client: FakeClient
) -> None:
    """aiokafka drops what it took from other partitions before the error."""
    await reader.start(P, 2)
    client.error = CorruptRecordException("Invalid CRC")
    with pytest.raises(BrokerUnavailable, match="Invalid CRC"):
        await reader.fetch(1_000, 1.0)
    client.error = None

    assert await offsets(reader) == {P: [2, 3, 4]}


async def test_only_started_partitions_are_not_paused(
    reader: KafkaDataReader, client: FakeClient
) -> None:
    await reader.start(P, 0)
    assert client.paused == {KafkaPartition(*Q)}
    reader.stop(P)
    reader.stop(P)

    assert client.paused == {KafkaPartition(*P), KafkaPartition(*Q)}


async def test_a_stop_during_the_first_start_wins(
    reader: KafkaDataReader, client: FakeClient
) -> None:
    """Else the partition would be fetched and discarded until its next command."""
    topics: SlowTopics = reader._topics  # type: ignore[assignment]
    topics.described.clear()
    starting = asyncio.create_task(reader.start(P, 2))
    await asyncio.sleep(1)
    reader.stop(P)
    topics.described.set()
    await starting

    assert not await offsets(reader)
    await reader.start(P, 3)
    assert await offsets(reader) == {P: [3, 4]}
    assert client.assigned == 1


async def test_a_later_start_wins_over_a_pending_one(reader: KafkaDataReader) -> None:
    topics: SlowTopics = reader._topics  # type: ignore[assignment]
    topics.described.clear()
    first = asyncio.create_task(reader.start(P, 0))
    second = asyncio.create_task(reader.start(P, 3))
    await asyncio.sleep(1)
    topics.described.set()
    await asyncio.gather(first, second)

    assert await offsets(reader) == {P: [3, 4]}


async def test_a_missing_topic_is_named_and_other_topics_are_read(reader: KafkaDataReader) -> None:
    await reader.start(P, 4)
    with pytest.raises(TopicMissing, match="nowhere"):
        await reader.start(TopicPartition("nowhere", 0), 0)
    with pytest.raises(TopicMissing, match="orders-7"):
        await reader.start(TopicPartition("orders", 7), 0)

    assert await offsets(reader) == {P: [4]}


async def test_a_refused_topic_delays_no_other(reader: KafkaDataReader, client: FakeClient) -> None:
    await reader.start(P, 0)
    await reader.start(Q, 0)
    await reader.start(C, 0)
    client.error = TopicAuthorizationFailedError("orders")
    for _ in range(3):  # one error per partition, and one more while all are paused
        await reader.fetch(1_000, 1.0)
    assert client.paused == {KafkaPartition(*P), KafkaPartition(*Q)}
    client.error = None
    client.positions = dict.fromkeys(client.positions, 0)
    assert await offsets(reader) == {C: [0, 1, 2, 3, 4]}
    await asyncio.sleep(1)
    assert (await offsets(reader)).keys() == {P, Q}, "and it is tried again"


async def test_a_batch_that_cannot_be_decoded_is_skipped_after_some_fetches(
    reader: KafkaDataReader, client: FakeClient
) -> None:
    await reader.start(P, 0)
    await reader.start(Q, 0)
    client.torn[KafkaPartition(*P)] = 1
    assert await offsets(reader) == {P: [0], Q: [0, 1, 2, 3, 4]}
    for _ in range(TRIES):
        assert reader.undecodable == 0
        await asyncio.sleep(20)
        assert not await offsets(reader)
    assert reader.undecodable == 2
    assert await offsets(reader) == {P: [3, 4]}
