"""What the intake does when aiokafka fails in the middle of handing over records."""

from collections.abc import AsyncIterator

import pytest
from aiokafka import ConsumerRecord
from aiokafka import TopicPartition as Theirs
from aiokafka.errors import CorruptRecordException

from binwright.consumer.intake import KafkaIntake
from binwright.core.errors import BrokerUnavailable
from binwright.core.model import TopicPartition
from binwright.shell.settings import KafkaSettings

P = TopicPartition("orders", 0)


class Half:
    """A consumer with five records in each partition, of which one broke.

    Like aiokafka's, it has moved on past what came before the broken one when it raises.
    """

    def __init__(self) -> None:
        self.places: dict[Theirs, int] = {}
        self.paused: set[Theirs] = set()
        self.broken = True

    def assign(self, partitions: list[Theirs]) -> None:
        self.places = dict.fromkeys(partitions, 0)

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
            if partition not in self.paused and place < 5:
                came[partition] = [_record(partition, offset) for offset in range(place, 5)]
                self.places[partition] = 5
        if self.broken:
            raise CorruptRecordException("Invalid CRC")
        return came

    async def stop(self) -> None:
        """Nothing to let go of."""


def _record(partition: Theirs, offset: int) -> ConsumerRecord:
    return ConsumerRecord(*partition, offset, 0, 0, None, b"v", None, -1, 1, ())


@pytest.fixture
async def half() -> Half:
    return Half()


@pytest.fixture
async def intake(half: Half) -> AsyncIterator[KafkaIntake]:
    intake = KafkaIntake(KafkaSettings(), "g", ["orders"])
    await intake._consumer.stop()
    intake._consumer = half
    intake._assign({P, TopicPartition("orders", 1)})
    yield intake
    await intake.__aexit__()


async def test_an_error_loses_nothing_that_came_with_it(intake: KafkaIntake, half: Half) -> None:
    """aiokafka forgets what it took from other partitions before the error."""
    await intake.start(P, 2)
    with pytest.raises(BrokerUnavailable, match="Invalid CRC"):
        await intake.fetch(1_000, 1.0)
    half.broken = False

    assert [r.offset for r in (await intake.fetch(1_000, 1.0))[P]] == [2, 3, 4]


async def test_only_what_is_started_is_not_paused(intake: KafkaIntake, half: Half) -> None:
    assert half.paused == {Theirs("orders", 0), Theirs("orders", 1)}
    await intake.start(P, 0)
    assert half.paused == {Theirs("orders", 1)}
    intake.stop(P)
    intake.stop(P)

    assert half.paused == {Theirs("orders", 0), Theirs("orders", 1)}
