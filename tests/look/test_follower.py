"""A view is folded from the whole history of a group, and from the last measurements alone."""

import asyncio
from typing import Any

import pytest
from tests.look.page.group import METADATA, METRICS, ORDERS, TOPICS, Group

from binwright.kafka.control_records import HistoryFilter
from binwright.look.follower import (
    RECENT,
    GroupFollower,
    read_history,
    read_recent_measurements,
    watch_group,
)
from binwright.look.group_view import GroupView
from binwright.protocol.errors import BrokerUnavailable, TopicMissing
from binwright.protocol.metadata import decode_inbound
from binwright.protocol.model import TopicPartition
from binwright.protocol.orders import Approved, FreezeOrder, decode_order
from binwright.runtime.run import background_tasks
from binwright.testing.control_topics import FakeControlTopics

pytestmark = pytest.mark.looptime

TOPIC = "eu.metadata"
P = TopicPartition("orders", 0)


async def bus_with(*keys: bytes) -> FakeControlTopics:
    bus = FakeControlTopics({TOPIC: 1})
    for key in keys:
        await bus.publish(TOPIC, 0, key, b"")
    return bus


async def test_the_history_ends_where_it_was_opened_and_superseded_reports_are_left_out() -> None:
    bus = await bus_with(b"hello/0", b"report/0", b"report/0")
    reader, end = await read_history(bus, TOPIC)
    await bus.publish(TOPIC, 0, b"report/0", b"")
    await bus.publish(TOPIC, 0, b"report/0", b"")
    assert end == 3
    passed = HistoryFilter(end).passed(await reader.read(1.0))
    assert [record.offset for record in passed] == [0, 2, 3, 4]


async def test_only_the_last_measurements_are_read() -> None:
    bus = await bus_with(*[b"orders"] * (RECENT + 5))
    reader, end = await read_recent_measurements(bus, TOPIC)
    assert (reader.position, end) == (5, RECENT + 5)
    reader, _ = await read_recent_measurements(bus, TOPIC, 3)
    assert reader.position == RECENT + 2


async def test_a_short_metrics_topic_is_read_from_its_beginning() -> None:
    reader, end = await read_recent_measurements(await bus_with(b"orders"), TOPIC)
    assert (reader.position, end) == (0, 1)
    assert len(await asyncio.wait_for(reader.read(1.0), 5)) == 1


async def test_groups_are_read_up_to_now_with_their_rates() -> None:
    group = Group()
    await group.claim("c1")
    await group.measure([5.0])
    views = {METADATA: GroupView()}
    async with GroupFollower(group.bus, views, METRICS) as follower:
        await follower.catch_up()
        view = views[METADATA]
        assert view.leadership is not None
        assert view.rates == {P: 5.0}
        await group.consumer(3, {})
        await follower.read(1.0)
        assert list(view.reports) == [3]


class LateReader:
    """A reader to which records come late."""

    def __init__(self, reader: Any) -> None:
        self.reader = reader

    def __getattr__(self, name: str) -> Any:
        return getattr(self.reader, name)

    async def read(self, timeout_s: float) -> Any:
        await asyncio.sleep(0.5)
        return await self.reader.read(timeout_s)


class LateMetadata(FakeControlTopics):
    """Brokers that take longer for a group's records than for measurements."""

    async def reader(self, topic: str, partition: int, offset: int) -> Any:
        reader = await super().reader(topic, partition, offset)
        return LateReader(reader) if topic == METADATA else reader


async def test_what_a_group_reads_is_read_before_what_is_measured() -> None:
    """Else a partition of its topics without a reader would not count until the next pass."""
    group = Group(LateMetadata(TOPICS))
    await group.claim("c1")
    await group.consumer(3, {P: 1})
    await group.measure([5.0, 6.0])
    view = GroupView()
    async with GroupFollower(group.bus, {METADATA: view}, METRICS) as follower:
        await follower.catch_up()
    assert view.group.unread() == [TopicPartition("orders", 1)]


async def test_a_missing_metrics_topic_is_no_fault() -> None:
    group = Group(FakeControlTopics({METADATA: 1}))
    await group.claim("c1")
    views = {METADATA: GroupView()}
    async with GroupFollower(group.bus, views, METRICS) as follower:
        await follower.catch_up()
    assert views[METADATA].leadership is not None


async def test_a_missing_group_is_a_fault() -> None:
    with pytest.raises(TopicMissing):
        async with GroupFollower(FakeControlTopics(), {METADATA: GroupView()}):
            pass


async def test_an_outage_ends_a_reading() -> None:
    group = Group(FakeControlTopics(TOPICS, patience_s=5))
    async with GroupFollower(group.bus, {METADATA: GroupView()}) as follower:
        await group.bus.go_down()
        with pytest.raises(BrokerUnavailable):
            await follower.read(10.0)


async def test_a_view_is_watched_through_an_outage() -> None:
    group, view = Group(FakeControlTopics(TOPICS, patience_s=5)), GroupView()
    async with background_tasks(watch_group(group.bus, METADATA, METRICS, view)):
        await group.consumer(0, {})
        await asyncio.sleep(3)
        await group.bus.go_down()
        await asyncio.sleep(20)
        await group.bus.come_up()
        await group.consumer(1, {})
        await asyncio.sleep(5)
        assert list(view.reports) == [0, 1]


async def test_an_outage_while_there_are_no_measurements_ends_no_watch() -> None:
    """The metrics topic is looked for again and again: nobody may have measured yet."""
    group, view = Group(FakeControlTopics({METADATA: TOPICS[METADATA]}, patience_s=5)), GroupView()
    async with background_tasks(watch_group(group.bus, METADATA, METRICS, view)):
        await asyncio.sleep(3)
        await group.bus.go_down()
        await asyncio.sleep(20)
        await group.bus.come_up()
        await group.consumer(0, {})
        await asyncio.sleep(5)
        assert list(view.reports) == [0]


async def test_orders_are_read_once_their_topic_exists() -> None:
    """A controller creates it: one of an older version has led the group so far."""
    freeze = FreezeOrder(frozen=True, by="ann")
    group, view = Group(FakeControlTopics({METADATA: 1})), GroupView()
    async with background_tasks(watch_group(group.bus, METADATA, METRICS, view)):
        await group.consumer(0, {})
        await asyncio.sleep(5)
        assert list(view.reports) == [0]
        await group.bus.ensure(ORDERS, 1, {})
        await group.give(freeze)
        await asyncio.sleep(5)
        assert list(view.orders.by_subject.values()) == [freeze]


async def test_an_approval_counts_whether_it_or_its_plan_is_read_first() -> None:
    for first in (METADATA, ORDERS):
        group, view = Group(), GroupView()
        number = await group.propose({P: 0}, {P: 1})
        await group.give(Approved(plan=number, by="ann"))
        records = {METADATA: group.bus.records(METADATA), ORDERS: group.bus.records(ORDERS)}
        decode = {METADATA: decode_inbound, ORDERS: decode_order}
        for topic in (first, *(records.keys() - {first})):
            for record in records[topic]:
                view.apply(record.offset, record.timestamp_ms, decode[topic](record.value))
        assert view.proposal is not None
        assert view.proposal.approved


async def test_what_happened_is_in_order_of_time_though_topics_are_read_apart() -> None:
    group, view = Group(), GroupView()
    await group.claim()
    await asyncio.sleep(1)
    await group.give(FreezeOrder(frozen=True, by="ann"))
    await asyncio.sleep(1)
    await group.consumer(0, {})
    async with GroupFollower(group.bus, {METADATA: view}) as follower:
        await follower.catch_up()
    assert [text.partition(",")[0] for _, text in view.recent_events] == [
        "a controller took the lead",
        "moves are frozen",
        "consumer 0 started",
        "consumer 0 is ready",
    ]
