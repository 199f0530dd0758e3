"""Ends of logs, from measurements and from look-ups."""

import asyncio
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

import pytest

from binwright.kafka.client import EARLIEST, TopicsMetadata
from binwright.protocol import wire
from binwright.protocol.errors import BrokerUnavailable
from binwright.protocol.metrics import Measurement, PartitionRate
from binwright.protocol.model import BytesPerSecond
from binwright.runtime.run import background_tasks, must_not_end
from binwright.scaler.ends import ABSENT_LOOKS, FOLLOWED_S, STARTS_S, MeasuredEnds, TopicEnds
from binwright.testing.control_topics import FakeControlTopics

pytestmark = pytest.mark.looptime
METRICS, ANSWER_S = "binwright.metrics", 2.0


@dataclass
class FakeCluster:
    """Partition n of each topic is led by broker n, and ends at `ends` times the loop's time."""

    partitions: dict[str, int]
    rate: int = 10
    late: dict[int, float] = field(default_factory=dict)
    gone: set[int] = field(default_factory=set)
    asked: list[int] = field(default_factory=list)
    away: bool = False
    refused: str = ""
    ids: dict[str, str] = field(default_factory=dict)
    first: int = 0
    firsts: int = 0

    async def topics(self, names: Collection[str], *, with_ids: bool = False) -> TopicsMetadata:
        if self.away:
            raise BrokerUnavailable("no broker answers")
        found = {
            t: {n: n for n in range(self.partitions[t])} for t in names if t in self.partitions
        }
        refused = {t: self.refused for t in names if self.refused}
        assert with_ids
        return TopicsMetadata(found if not refused else {}, refused, ids=self.ids)

    async def offsets(
        self, broker: int, partitions: Mapping[str, Collection[int]], when: int
    ) -> dict[tuple[str, int], int]:
        if when == EARLIEST:
            self.firsts += 1
            return {
                (topic, n): self.first for topic, numbers in partitions.items() for n in numbers
            }
        self.asked.append(broker)
        await asyncio.sleep(self.late.get(broker, 0))
        if broker in self.gone:
            raise BrokerUnavailable(f"ask broker {broker}: closed")
        at = int(asyncio.get_running_loop().time() * self.rate)
        return {(topic, n): at for topic, numbers in partitions.items() for n in numbers}


def ends_of(cluster: FakeCluster, measured: MeasuredEnds | None = None) -> TopicEnds:
    return TopicEnds(cluster, measured, timeout_s=ANSWER_S)  # type: ignore[arg-type]


def measurement(*rows: PartitionRate, topic: str = "orders", count: int | None = None) -> bytes:
    count = len(rows) if count is None else count
    return wire.encode(
        Measurement(
            topic=topic,
            at_ms=0,
            monitor="m",
            number=1,
            interval_s=1.0,
            count=count,
            partitions=rows,
        )
    )


ROW = PartitionRate(0, BytesPerSecond(5_000.0), 30.0, 700, 0, 500.0, 10.0)


async def test_two_look_ups_give_ends_and_rates() -> None:
    made = ends_of(FakeCluster({"orders": 2}))
    await asyncio.sleep(100)
    first = (await made.look_up(["orders"]))["orders"]
    await asyncio.sleep(10)
    second = (await made.look_up(["orders"]))["orders"]

    assert (first.ends, first.rates, first.count) == ({0: 1_000, 1: 1_000}, {}, 2)
    assert second.rates == {0: 10, 1: 10}


async def test_a_rate_is_that_of_the_window() -> None:
    cluster = FakeCluster({"orders": 1})
    made = TopicEnds(cluster, None, timeout_s=ANSWER_S, window_s=15)  # type: ignore[arg-type]
    for rate in (10, 10, 20):
        cluster.rate = rate
        await made.look_up(["orders"])
        await asyncio.sleep(10)
    assert (await made.look_up(["orders"]))["orders"].rates == {0: 25}


async def test_a_late_broker_delays_one_look_up_and_its_partitions_are_missing() -> None:
    made = ends_of(FakeCluster({"orders": 2}, late={1: 100}))
    loop = asyncio.get_running_loop()
    began = loop.time()
    first = (await made.look_up(["orders"]))["orders"]
    between = loop.time()
    second = (await made.look_up(["orders"]))["orders"]

    assert (between - began, loop.time() - between) == (ANSWER_S, 0)
    assert (set(first.ends), set(second.ends), second.count) == ({0}, {0}, 2)
    await made.close()


async def test_a_broker_that_is_gone_costs_its_own_partitions_only() -> None:
    found = await ends_of(FakeCluster({"orders": 2}, gone={1})).look_up(["orders"])

    assert set(found["orders"].ends) == {0}


async def test_without_brokers_the_last_ends_stay_with_their_time() -> None:
    cluster = FakeCluster({"orders": 1})
    made = ends_of(cluster)
    before = await made.look_up(["orders"])
    cluster.away = True
    await asyncio.sleep(30)

    assert await made.look_up(["orders"]) == before


async def test_a_topic_that_does_not_exist_has_no_ends() -> None:
    assert await ends_of(FakeCluster({})).look_up(["orders"]) == {}


async def test_a_topic_that_was_deleted_is_reported_missing_after_some_looks() -> None:
    """A broker may be the last to learn of a topic that is new."""
    cluster = FakeCluster({"orders": 1})
    made = ends_of(cluster)
    await made.look_up(["orders"])
    cluster.partitions.clear()
    for _ in range(ABSENT_LOOKS - 1):
        assert await made.look_up(["orders"]) == {}

    assert (await made.look_up(["orders"]))["orders"].count == 0
    cluster.partitions["orders"] = 1
    assert (await made.look_up(["orders"]))["orders"].count == 1
    cluster.partitions.clear()
    assert await made.look_up(["orders"]) == {}


async def test_a_topic_that_is_not_described_is_not_one_that_does_not_exist() -> None:
    cluster = FakeCluster({"orders": 1}, refused="no right")
    found = await ends_of(cluster).look_up(["orders"])

    assert found["orders"].refused == "no right"


async def test_first_offsets_are_known_and_not_asked_for_at_every_look() -> None:
    cluster = FakeCluster({"orders": 1}, first=40)
    made = ends_of(cluster)
    await asyncio.sleep(100)
    for _ in range(5):
        found = (await made.look_up(["orders"]))["orders"]
        await asyncio.sleep(1)
    assert (found.starts, cluster.firsts) == ({0: 40}, 1)

    cluster.first = 70
    await asyncio.sleep(STARTS_S)
    assert (await made.look_up(["orders"]))["orders"].starts == {0: 70}


async def test_a_recreated_topic_has_another_id_and_no_rate_of_the_one_before() -> None:
    cluster = FakeCluster({"orders": 1}, ids={"orders": "a"})
    made = ends_of(cluster)
    for topic_id in "aab":
        cluster.ids["orders"] = topic_id
        found = (await made.look_up(["orders"]))["orders"]
        await asyncio.sleep(10)

    assert (found.topic_id, found.rates, cluster.firsts) == ("b", {}, 2)


async def test_measured_topics_are_not_looked_up() -> None:
    cluster, bus = FakeCluster({"orders": 1, "clicks": 1}), FakeControlTopics()
    await bus.ensure(METRICS, 1, {})
    measured = MeasuredEnds(bus, METRICS)
    made = ends_of(cluster, measured)
    async with background_tasks(must_not_end(measured.run())):
        await asyncio.sleep(1)
        stale = ROW._replace(partition=1, quality="stale")
        await bus.publish(METRICS, 0, b"orders", measurement(ROW, stale))
        await bus.publish(METRICS, 0, b"clicks", measurement(ROW, topic="clicks", count=5_000))
        await asyncio.sleep(1)
        found = await made.look_up(["orders", "clicks"])

    assert (found["orders"].ends, found["orders"].rates) == ({0: 700}, {0: 10})
    assert found["orders"].starts == {0: 0}
    assert found["orders"].count == 2
    assert (set(found), made.looked_up) == ({"orders", "clicks"}, 1)


async def test_a_topic_that_no_monitor_follows_any_more_is_looked_up() -> None:
    cluster, bus = FakeCluster({"orders": 1}), FakeControlTopics()
    await bus.ensure(METRICS, 1, {})
    measured = MeasuredEnds(bus, METRICS)
    made = ends_of(cluster, measured)
    async with background_tasks(must_not_end(measured.run())):
        await asyncio.sleep(1)
        await bus.publish(METRICS, 0, b"orders", measurement(ROW))
        await asyncio.sleep(FOLLOWED_S + 1)
        await made.look_up(["orders"])

    assert (made.looked_up, cluster.asked) == (1, [0])


async def test_a_measurement_that_cannot_be_read_is_looked_up() -> None:
    cluster, bus = FakeCluster({"orders": 1}), FakeControlTopics()
    await bus.ensure(METRICS, 1, {})
    measured = MeasuredEnds(bus, METRICS)
    async with background_tasks(must_not_end(measured.run())):
        await asyncio.sleep(1)
        await bus.publish(METRICS, 0, b"orders", b"?")
        await asyncio.sleep(1)

        assert measured.latest("orders") is None
    assert cluster.asked == []
