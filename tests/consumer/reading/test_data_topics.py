"""Queries about data topics go to the brokers that lead them."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

import pytest

from binwright.consumer.reading.data_topics import DataTopics
from binwright.kafka.client import EARLIEST, NO_LEADER
from binwright.protocol.errors import BrokerUnavailable, TopicMissing
from binwright.protocol.model import TopicPartition


@dataclass
class Metadata:
    """What a broker tells of topics."""

    leaders: Mapping[str, Mapping[int, int]]
    errors: Mapping[str, str] = field(default_factory=dict)


class FakeCluster:
    """The brokers as seen by a client: who leads, what each knows, and which do not answer."""

    def __init__(self, leaders: Mapping[int, int]) -> None:
        self.leaders = leaders
        self.ids: dict[int, str] = {}
        self.silent: set[int] = set()
        self.moved: set[int] = set()

    async def topics(self, names: Collection[str]) -> Metadata:
        return Metadata({name: self.leaders for name in names if name == "orders"})

    async def topic_id(self, topic: str, broker: int) -> str:
        del topic
        self._answer(broker)
        return self.ids[broker]

    async def offsets(
        self, broker: int, partitions: Mapping[str, Collection[int]], when: int
    ) -> dict[tuple[str, int], int]:
        self._answer(broker)
        return {
            (topic, number): 10 * number + (0 if when == EARLIEST else 5)
            for topic, numbers in partitions.items()
            for number in numbers
            if number not in self.moved
        }

    def _answer(self, broker: int) -> None:
        if broker in self.silent:
            raise BrokerUnavailable(f"broker {broker} does not answer")


def orders(*numbers: int) -> list[TopicPartition]:
    return [TopicPartition("orders", number) for number in numbers]


def queries(leaders: Mapping[int, int]) -> tuple[FakeCluster, DataTopics]:
    cluster = FakeCluster(leaders)
    return cluster, DataTopics(cluster)  # type: ignore[arg-type]


async def test_the_topics_id_is_asked_of_the_leaders() -> None:
    """Another broker may still have the id of a deleted topic, whose successor a leader serves."""
    cluster, topics = queries({0: 2, 1: 3, 2: 2, 3: NO_LEADER})
    cluster.ids = {1: "deleted", 2: "new", 3: "new", 4: "deleted"}
    assert await topics.topic_id("orders") == "new"


async def test_leaders_that_do_not_agree_on_the_id_are_no_answer() -> None:
    cluster, topics = queries({0: 2, 1: 3})
    cluster.ids = {2: "new", 3: "deleted"}
    with pytest.raises(BrokerUnavailable, match="do not agree"):
        await topics.topic_id("orders")


async def test_bounds_are_those_of_partitions_whose_leader_answers() -> None:
    """One partition without a leader must not stop all of its topic."""
    cluster, topics = queries({0: 1, 1: NO_LEADER, 2: 2, 3: 3})
    cluster.silent, cluster.moved = {2}, {3}
    assert await topics.bounds(orders(0, 1, 2, 3)) == {TopicPartition("orders", 0): (0, 5)}
    assert await topics.bounds(orders(1)) == {}
    with pytest.raises(BrokerUnavailable, match="broker 2"):
        await topics.bounds(orders(1, 2))


async def test_bounds_of_a_partition_that_does_not_exist_name_it() -> None:
    _, topics = queries({0: 1})
    with pytest.raises(TopicMissing, match="orders-7"):
        await topics.bounds(orders(0, 7))
