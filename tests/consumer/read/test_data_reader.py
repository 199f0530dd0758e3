"""The data reader when aiokafka fails, and when starts and stops overlap."""

import asyncio
from collections.abc import AsyncIterator, Collection, Mapping
from types import SimpleNamespace

import pytest
from aiokafka import TopicPartition as KafkaPartition
from aiokafka.errors import CorruptRecordException, KafkaError, TopicAuthorizationFailedError

from binwright.consumer.read.data_reader import GIVE_UP_S, KafkaDataReader
from binwright.kafka.decoding import DecodeFault, Watch
from binwright.protocol.errors import BrokerUnavailable, TopicMissing
from binwright.protocol.model import TopicPartition
from binwright.protocol.ports.kafka import ReadProgress, Record, Records, UndecodableBatch
from binwright.runtime.settings.kafka import KafkaSettings

P, Q = TopicPartition("orders", 0), TopicPartition("orders", 1)
C = TopicPartition("clicks", 0)
pytestmark = pytest.mark.looptime(noop_cycles=1)


class FakeClient:
    """A consumer of aiokafka with five records in each partition, which may fail.

    Like aiokafka's, it is past the records that it took before the error when it raises.
    """

    def __init__(self) -> None:
        self._subscription = SimpleNamespace(subscription=SimpleNamespace(assignment=None))
        self.positions: dict[KafkaPartition, int] = {}
        self.paused: set[KafkaPartition] = set()
        self.assigned = 0
        self.error: KafkaError | None = None
        self.torn: dict[KafkaPartition, int] = {}
        """Partition -> offset at which a batch of two cannot be decoded."""
        self.tried = 0  # how often such a batch was fetched
        self.out_of_memory = self.large = self.silent = False
        self.ends: dict[KafkaPartition, int] = {}  # as the last fetch has them

    def assign(self, partitions: list[KafkaPartition]) -> None:
        self._subscription.subscription.assignment = SimpleNamespace(tps=partitions)
        self.positions, self.paused = dict.fromkeys(partitions, 0), set()
        self.assigned += 1

    def seek(self, partition: KafkaPartition, offset: int) -> None:
        self.positions[partition] = offset

    def pause(self, *partitions: KafkaPartition) -> None:
        self.paused.update(partitions)

    def resume(self, *partitions: KafkaPartition) -> None:
        self.paused.difference_update(partitions)

    def highwater(self, partition: KafkaPartition) -> int | None:
        return self.ends.get(partition)

    last_stable_offset = highwater

    def last_poll_timestamp(self, partition: KafkaPartition) -> int | None:
        """Return when the broker answered last: now, for what is fetched from it."""
        if self.silent or partition in self.paused:
            return None
        return round(asyncio.get_running_loop().time() * 1000)

    async def getmany(self, *, timeout_ms: int, max_records: int) -> dict[KafkaPartition, Records]:
        assert timeout_ms > 0
        assert max_records > 0
        polled = {}
        for partition, position in self.positions.items():
            end = self.torn.get(partition, 5)
            if partition in self.paused:
                continue
            if position == self.torn.get(partition):
                watched = self.watch(partition)
                watched.fault = DecodeFault(
                    position,
                    position + 2,
                    "torn",
                    b"batch",
                    self.out_of_memory,
                    large=self.large and watched.large_before < position + 2,
                )
                self.tried += 1
            elif position < 5:
                end = end if end > position else 5
                polled[partition] = Records.of(
                    Record(offset, 0, None, b"v") for offset in range(position, end)
                )
                self.positions[partition] = end
        if self.error:
            raise self.error
        if not polled:
            await asyncio.sleep(timeout_ms / 1000)
        return polled

    def watch(self, partition: KafkaPartition) -> Watch:
        watched: dict[KafkaPartition, Watch] = self._subscription.subscription.assignment.watched
        return watched[partition]

    async def stop(self) -> None:
        """Do nothing: there are no connections."""


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
    return {p: list(records.offsets) for p, records in found.items()}


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


async def test_progress_is_of_partitions_that_are_started_and_fetched(
    reader: KafkaDataReader, client: FakeClient
) -> None:
    await reader.start(P, 2)
    await reader.start(Q, 1)
    client.ends[KafkaPartition(*P)] = 7
    reader._assigned._limits.stored_bytes = 99
    assert reader.progress() == ReadProgress(99, {P: (2, 7)})


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


async def test_a_batch_that_cannot_be_decoded_is_given_up_after_minutes_and_delays_no_other(
    reader: KafkaDataReader, client: FakeClient
) -> None:
    """Another replica may have it intact: its leader may change meanwhile."""
    now = asyncio.get_running_loop().time
    client.torn[KafkaPartition(*P)] = 1
    await reader.start(P, 0)
    await reader.start(Q, 0)
    assert await offsets(reader) == {P: [0], Q: [0, 1, 2, 3, 4]}
    begun = now()
    given_up: Mapping[TopicPartition, UndecodableBatch] = {}
    while not given_up:
        assert now() < begun + GIVE_UP_S + 40
        assert not await offsets(reader)
        assert now() >= begun + GIVE_UP_S or reader.stuck() == {P: "torn"}
        given_up = reader.undecodable()
    assert now() >= begun + GIVE_UP_S
    assert 10 < client.tried < 20, "the waits grow"
    assert given_up == {P: UndecodableBatch(1, 3, "torn", b"batch")}
    assert not reader.stuck()
    assert not reader.undecodable(), "each is told once"
    assert not await offsets(reader), "the partition is stopped there"
    await reader.start(P, 3)
    assert await offsets(reader) == {P: [3, 4]}


async def test_a_batch_that_is_decoded_at_last_is_returned(
    reader: KafkaDataReader, client: FakeClient
) -> None:
    client.torn[KafkaPartition(*P)] = 1
    await reader.start(P, 1)
    await reader.fetch(1_000, 1.0)
    assert reader.stuck() == {P: "torn"}
    del client.torn[KafkaPartition(*P)]
    await asyncio.sleep(60)
    assert await offsets(reader) == {P: [1, 2, 3, 4]}
    assert not reader.stuck()


async def test_a_large_batch_is_reported_at_once_and_may_be_allowed_until_the_next_stop(
    reader: KafkaDataReader, client: FakeClient
) -> None:
    client.torn[KafkaPartition(*P)] = 1
    client.large = True
    await reader.start(P, 1)
    assert not await offsets(reader)
    assert reader.undecodable() == {P: UndecodableBatch(1, 3, "torn", b"batch", large=True)}
    reader.allow_large(P, 3)
    await reader.start(P, 1)
    assert not await offsets(reader)
    assert not reader.undecodable(), "it is tried, and fails like others"
    assert reader.stuck() == {P: "torn"}
    reader.stop(P)
    await reader.start(P, 1)
    assert not await offsets(reader)
    assert reader.undecodable()[P].large


async def test_a_silent_broker_is_reported_unless_nothing_is_fetched_from_it(
    reader: KafkaDataReader, client: FakeClient
) -> None:
    client.torn[KafkaPartition(*P)] = 1
    client.silent = True
    await reader.start(P, 1)
    for _ in range(100):
        await reader.fetch(1_000, 1.0)  # most of the time the partition is left alone
    await reader.start(Q, 5)
    for _ in range(29):
        await reader.fetch(1_000, 1.0)
    with pytest.raises(BrokerUnavailable, match="no broker has answered a fetch for 30 s"):
        await reader.fetch(1_000, 1.0)


async def test_for_want_of_memory_no_batch_is_given_up(
    reader: KafkaDataReader, client: FakeClient
) -> None:
    client.torn[KafkaPartition(*P)] = 1
    client.out_of_memory = True
    await reader.start(P, 1)
    until = asyncio.get_running_loop().time() + 3 * GIVE_UP_S
    while asyncio.get_running_loop().time() < until:
        assert not await offsets(reader)
        assert not reader.undecodable()
    assert reader.stuck() == {P: "torn"}


async def test_positions_behind_offsets_without_a_record_are_reported_once(
    reader: KafkaDataReader, client: FakeClient
) -> None:
    await reader.start(P, 0)
    await reader.start(Q, 5)
    client.watch(KafkaPartition(*P)).passed = 5
    client.watch(KafkaPartition(*Q)).passed = 7
    await reader.fetch(1_000, 1.0)
    assert reader.passed() == {Q: 7}, "the records of the other one tell its position"
    assert not reader.passed()
    client.watch(KafkaPartition(*Q)).passed = 9
    await reader.fetch(1_000, 1.0)
    reader.stop(Q)
    assert not reader.passed()
