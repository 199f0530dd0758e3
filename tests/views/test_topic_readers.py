"""A view is folded from the whole history of a group, and from the last measurements alone."""

import asyncio

import pytest

from binwright.kafka.control_records import HistoryFilter
from binwright.testing.control_topics import FakeControlTopics
from binwright.views.topic_readers import RECENT, read_history, read_recent_measurements

pytestmark = pytest.mark.looptime

TOPIC = "eu.metadata"


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
