"""One client for many places: what goes wrong with one of them is no other's."""

import asyncio
from collections import defaultdict
from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka import TopicPartition
from aiokafka.errors import OffsetOutOfRangeError, TopicAuthorizationFailedError

from binwright.kafka import readers
from binwright.kafka.readers import PartitionBuffer, SharedConsumer
from binwright.protocol.errors import BrokerUnavailable

A, B = TopicPartition("a", 0), TopicPartition("b", 0)


class Client:
    """As much of aiokafka's consumer as is used, over logs in memory."""

    def __init__(self, logs: dict[TopicPartition, list[bytes]]) -> None:
        self.logs, self.at, self.paused = logs, dict[TopicPartition, int](), set[TopicPartition]()
        self.faults: list[Exception] = []
        self.stopped = False
        self._fetcher = SimpleNamespace(error_future=asyncio.get_running_loop().create_future())

    def assign(self, partitions: list[TopicPartition]) -> None:
        self.at, self.paused = dict.fromkeys(partitions, -1), set()

    def seek(self, partition: TopicPartition, offset: int) -> None:
        self.at[partition] = offset

    def pause(self, *partitions: TopicPartition) -> None:
        self.paused.update(partitions)

    def resume(self, *partitions: TopicPartition) -> None:
        self.paused.difference_update(partitions)

    def last_poll_timestamp(self, _: TopicPartition) -> int:
        return 0

    async def stop(self) -> None:
        self.stopped = True

    async def getmany(
        self,
        *,
        timeout_ms: int,
        max_records: int,
    ) -> dict[TopicPartition, list[Any]]:
        del timeout_ms
        await asyncio.sleep(0.01)
        if self.faults:
            raise self.faults.pop(0)
        found = defaultdict(list)
        for partition, at in self.at.items():
            if partition not in self.paused:
                for offset, value in list(enumerate(self.logs[partition]))[at : at + max_records]:
                    found[partition].append(record(offset, value))
                    self.at[partition] = offset + 1
        return found


def record(offset: int, value: bytes) -> Any:
    return SimpleNamespace(
        offset=offset, timestamp=0, key=b"", value=value, timestamp_type=0, headers=()
    )


class Scene:
    def __init__(self) -> None:
        self.logs: dict[TopicPartition, list[bytes]] = {A: [b"a0", b"a1"], B: [b"b0"]}
        self.clients: list[Client] = []
        self.away = 0
        self.shared = SharedConsumer(self._opened)

    async def _opened(self) -> Client:
        if self.away:
            self.away -= 1
            raise BrokerUnavailable("away")
        self.clients.append(Client(self.logs))
        return self.clients[-1]

    async def taken(self, partition: TopicPartition, place: PartitionBuffer) -> list[bytes | None]:
        self.shared.wanted(partition)
        return [r.value for r in await place.get(10, 5.0)]


@pytest.fixture
async def scene() -> Any:
    made = Scene()
    await made.shared.open()
    yield made
    await made.shared.close()
    assert all(client.stopped for client in made.clients)


@pytest.mark.parametrize(
    "fault", [OffsetOutOfRangeError({A: 7}), TopicAuthorizationFailedError("a")]
)
async def test_a_fault_of_one_partition_reaches_its_reader_only(
    scene: Scene, fault: Exception
) -> None:
    one, two = scene.shared.add(A, 0), scene.shared.add(B, 0)
    assert await scene.taken(A, one) == [b"a0", b"a1"]
    scene.clients[0].faults = [fault]
    await asyncio.sleep(0.1)
    scene.logs[A].append(b"a2")
    scene.logs[B].append(b"b1")
    assert await scene.taken(B, two) == [b"b0"]
    assert await scene.taken(B, two) == [b"b1"]
    assert scene.clients[0].paused == {A}
    with pytest.raises(type(fault)):
        await scene.taken(A, one)
    assert await scene.taken(A, one) == [b"a2"]


async def test_a_client_that_breaks_is_replaced_and_nothing_is_missed(scene: Scene) -> None:
    place = scene.shared.add(A, 0)
    assert await scene.taken(A, place) == [b"a0", b"a1"]
    scene.away = 2
    scene.clients[0].faults = [RuntimeError("in aiokafka")]
    await asyncio.sleep(0.1)
    scene.logs[A].append(b"a2")
    assert await scene.taken(A, place) == [b"a2"]
    assert len(scene.clients) == 2
    scene.clients[1]._fetcher.error_future.set_exception(RuntimeError("its fetcher ended"))
    scene.clients[1]._fetcher.error_future.exception()
    await asyncio.sleep(0.1)
    scene.logs[A].append(b"a3")
    assert await scene.taken(A, place) == [b"a3"]
    assert len(scene.clients) == 3


async def test_fetching_pauses_when_records_are_not_read(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(readers, "MOST_FETCHED", 5)
    monkeypatch.setattr(readers, "MOST_WAITING", 10)
    scene.logs[A] = [b"%d" % n for n in range(100)]
    place = scene.shared.add(A, 0)
    async with asyncio.timeout(30.0):
        while len(place.records) <= 10:  # noqa: ASYNC110 - the fetching sends no event
            await asyncio.sleep(0.01)
    await asyncio.sleep(0.2)  # twenty more turns
    assert len(place.records) <= 15
    found: list[bytes | None] = []
    while len(found) < 100:
        found += await scene.taken(A, place)
    assert found == scene.logs[A]


async def test_a_read_behind_a_seek_waits_for_what_is_there() -> None:
    """A reader that came back at once with nothing would count as one that has read all."""
    shared, read = SharedConsumer(nothing_to_open), asyncio.Event()
    buffer = shared.add(A, 0)
    buffer.append([record(5, b"x")])
    shared.seek(A, 0)
    assert await buffer.get(10, 0.01) == []

    async def reading() -> None:
        assert [r.offset for r in await buffer.get(10, 10.0)] == [0]
        read.set()

    async with asyncio.TaskGroup() as tasks:
        buffer.append([record(6, b"x")])
        shared.seek(A, 0)
        tasks.create_task(reading())
        await asyncio.sleep(0.01)
        assert not read.is_set()
        buffer.append([record(0, b"x")])
    await shared.close()


async def nothing_to_open() -> None:
    """Open no client: nothing is fetched."""
