"""Queries about data topics go to the brokers that lead them."""

import asyncio
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

import pytest

from binwright.consumer.read.data_topics import NO_OFFSET, DataTopics
from binwright.kafka.client import EARLIEST, NO_LEADER
from binwright.kafka.leaders import Leaders
from binwright.protocol.errors import BrokerUnavailable, TopicMissing
from binwright.protocol.model import TopicPartition
from binwright.protocol.ports.kafka import TopicState


@dataclass
class Metadata:
    """What a broker tells of topics."""

    leaders: Mapping[str, Mapping[int, int]]
    errors: Mapping[str, str] = field(default_factory=dict)


class FakeCluster:
    """The brokers as seen by a client: who leads, what each knows, and which do not answer."""

    def __init__(self, leaders: Mapping[int, int]) -> None:
        self.topics_of = {"orders": leaders}
        self.errors: dict[str, str] = {}
        self.requests = 0
        self.hanging: set[int] = set()
        self.latency_s = 0.0
        self.stable: dict[int, int] = {}  # partition -> where its open transaction begins
        self.ids: dict[int, str] = {}
        self.times: dict[int, int] = {}  # partition -> its first offset of a time
        self.silent: set[int] = set()
        self.moved: set[int] = set()

    async def topics(self, names: Collection[str]) -> Metadata:
        self.requests += 1
        leaders = {name: self.topics_of[name] for name in names if name in self.topics_of}
        return Metadata(leaders, {name: why for name, why in self.errors.items() if name in names})

    async def topic_id(self, topic: str, broker: int) -> str:
        del topic
        self._answer(broker)
        return self.ids[broker]

    async def topic_ids(self, topics: Collection[str], broker: int) -> dict[str, str | None]:
        await asyncio.sleep(3600 if broker in self.hanging else self.latency_s)
        self._answer(broker)
        return {topic: f"{topic}-{self.ids.get(broker, 'id')}" for topic in topics}

    async def offsets(
        self,
        broker: int,
        partitions: Mapping[str, Collection[int]],
        when: int,
        *,
        stable: bool = False,
    ) -> dict[tuple[str, int], int]:
        await asyncio.sleep(3600 if broker in self.hanging else self.latency_s)
        self._answer(broker)
        if when >= 0:
            return {
                (t, n): self.times[n]
                for t, numbers in partitions.items()
                for n in numbers
                if n in self.times
            }
        ends = self.stable if stable else {}
        return {
            (topic, number): 10 * number if when == EARLIEST else ends.get(number, 10 * number + 5)
            for topic, numbers in partitions.items()
            for number in numbers
            if number not in self.moved
        }

    def _answer(self, broker: int) -> None:
        self.requests += 1
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


async def test_offsets_of_a_time_are_those_of_logs_that_have_such_a_record() -> None:
    cluster, topics = queries({0: 1, 1: 2, 2: NO_LEADER, 3: 2})
    cluster.times = {0: 7, 1: NO_OFFSET, 3: 0}
    assert await topics.offsets_at(orders(0, 1, 3), 1_000) == {
        TopicPartition("orders", 0): 7,
        TopicPartition("orders", 3): 0,
    }
    with pytest.raises(BrokerUnavailable, match="of orders-2"):
        await topics.offsets_at(orders(0, 2), 1_000)
    del cluster.times[3]  # its leader answers with an error
    with pytest.raises(BrokerUnavailable, match="of orders-3"):
        await topics.offsets_at(orders(0, 3), 1_000)
    cluster.silent = {2}
    with pytest.raises(BrokerUnavailable, match="broker 2"):
        await topics.offsets_at(orders(0, 1), 1_000)


async def test_bounds_of_a_partition_that_does_not_exist_name_it() -> None:
    _, topics = queries({0: 1})
    with pytest.raises(TopicMissing, match="orders-7"):
        await topics.bounds(orders(0, 7))


async def test_a_topic_of_which_nothing_is_known_hides_no_other() -> None:
    cluster, topics = queries({0: 1, 1: NO_LEADER})
    cluster.topics_of |= {"leaderless": {0: NO_LEADER}, "silent": {0: 2}, "new": {}}
    cluster.errors = {"refused": "TopicAuthorizationFailed"}
    cluster.silent = {2}
    found = await topics.states(["orders", "leaderless", "silent", "new", "refused", "missing"])
    assert found.pop("orders") == TopicState(
        "orders-id", {TopicPartition("orders", 0): (0, 5)}, {}, frozenset(orders(1))
    )
    assert found == dict.fromkeys(["leaderless", "silent", "new", "refused"])


@pytest.mark.looptime
async def test_a_broker_that_hangs_hides_only_the_topics_that_it_alone_leads() -> None:
    cluster, topics = queries({0: 1, 1: 2})
    cluster.topics_of["clicks"] = {0: 2}
    cluster.hanging = {2}
    found = await topics.states(["orders", "clicks"])
    assert found["clicks"] is None
    assert found["orders"] is not None
    assert found["orders"].leaderless == {*orders(1)}
    assert asyncio.get_running_loop().time() < 10


@pytest.mark.looptime
async def test_where_all_brokers_are_slow_the_first_is_waited_for() -> None:
    cluster, topics = queries({0: 1})
    cluster.latency_s = 3.0
    found = (await topics.states(["orders"]))["orders"]
    assert found is not None
    assert found.bounds == {TopicPartition("orders", 0): (0, 5)}


async def test_leaders_that_do_not_agree_make_their_topic_unknown() -> None:
    cluster, topics = queries({0: 1, 1: 2})
    cluster.topics_of["clicks"] = {0: 1}
    cluster.ids = {1: "a", 2: "b"}
    found = await topics.states(["orders", "clicks"])
    assert found["orders"] is None
    assert found["clicks"] is not None


async def test_what_is_known_is_about_one_topic_of_the_name() -> None:
    """One is recreated between its id and its offsets: neither belongs to the other."""
    cluster, topics = queries({0: 1})
    cluster.topics_of["clicks"] = {0: 2}
    bounds = topics._bounds

    async def recreated(broker: int, asked: Leaders) -> dict[TopicPartition, tuple[int, int]]:
        cluster.ids[1] = "new"
        return await bounds(broker, asked)

    topics._bounds = recreated  # type: ignore[method-assign,assignment]
    found = await topics.states(["orders", "clicks"])
    assert found["orders"] is None
    assert found["clicks"] is not None


async def test_a_thousand_topics_take_as_many_requests_as_one() -> None:
    counts = []
    for number in (1, 1_000):
        cluster, topics = queries({0: 1})
        cluster.topics_of = {f"t{n}": {0: 1 + n % 3} for n in range(number)}
        assert len(await topics.states(list(cluster.topics_of))) == number
        counts.append(cluster.requests)
    one_leader, three_leaders = counts
    assert three_leaders == 1 + 3 * (one_leader - 1)


async def test_what_can_be_read_ends_before_an_open_transaction() -> None:
    for stable in (False, True):
        cluster = FakeCluster({0: 1, 1: 1})
        cluster.stable = {1: 12}
        topics = DataTopics(cluster, stable=stable)  # type: ignore[arg-type]
        found = (await topics.states(["orders"]))["orders"]
        first, second = orders(0, 1)
        assert found is not None
        assert found.bounds == {first: (0, 5), second: (10, 15)}, "the log's own ends"
        assert found.readable == ({first: 5, second: 12} if stable else {})
