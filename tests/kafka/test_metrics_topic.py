"""One reader of the metrics topic serves all controllers of a process."""

import asyncio

import pytest

from binwright.kafka import metrics_topic
from binwright.kafka.metrics_topic import MeasurementQueue, run_measurements
from binwright.kafka.publishing import publish_message
from binwright.protocol.metrics import Measurement, PartitionRate, decode_measurement
from binwright.protocol.model import BytesPerSecond
from binwright.protocol.patterns import compile_pattern
from binwright.protocol.selection import Selection
from binwright.testing.control_topics import FakeControlTopics

pytestmark = pytest.mark.looptime

TOPIC = "metrics"


def measurement(topic: str, number: int, partitions: int = 1) -> Measurement:
    row = PartitionRate(0, BytesPerSecond(1.0), 30.0, 0, 0, None)
    return Measurement(
        topic=topic,
        at_ms=0,
        monitor="m",
        number=number,
        interval_s=1.0,
        count=partitions,
        partitions=tuple(row._replace(partition=n) for n in range(partitions)),
    )


def topics(*topics: str) -> Selection:
    return Selection(frozenset(topics))


def drain(queue: MeasurementQueue) -> list[tuple[str, int]]:
    found = []
    while not queue.empty():
        each = queue.get_nowait()
        found.append((each.topic, each.number))
    return found


async def test_each_subscriber_gets_its_own_topics_from_one_reader() -> None:
    bus = FakeControlTopics({TOPIC: 1})
    async with run_measurements(bus, TOPIC) as measurements:
        with (
            measurements.subscribe(topics("orders", "clicks")) as one,
            measurements.subscribe(topics("orders")) as two,
            measurements.subscribe(None) as three,
        ):
            await asyncio.sleep(1)
            for topic in ("orders", "clicks", "others"):
                await publish_message(bus, TOPIC, 0, measurement(topic, 1))
            await asyncio.sleep(1)
            assert drain(one) == [("orders", 1), ("clicks", 1)]
            assert drain(two) == [("orders", 1)]
            assert drain(three) == [("orders", 1), ("clicks", 1), ("others", 1)]
            assert bus.readers(TOPIC) == 1


async def test_records_of_topics_without_a_subscriber_are_not_decoded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    decoded = []
    whole = decode_measurement

    def counted(payload: bytes | None) -> Measurement:
        decoded.append(payload)
        return whole(payload)

    monkeypatch.setattr(metrics_topic, "decode_measurement", counted)
    bus = FakeControlTopics({TOPIC: 1})
    async with run_measurements(bus, TOPIC) as measurements:
        with measurements.subscribe(topics("orders")) as queue:
            await asyncio.sleep(1)
            for topic in ("others", "orders", "others"):
                await publish_message(bus, TOPIC, 0, measurement(topic, 1))
            await asyncio.sleep(1)
            assert drain(queue) == [("orders", 1)]
    assert len(decoded) == 1


async def test_a_pattern_is_matched_once_for_each_topic_while_subscribers_come_and_go(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A thousand groups must not match a thousand patterns for every record."""
    matched: list[str] = []
    whole = Selection.matches_pattern

    def counted(self: Selection, topic: str) -> bool:
        matched.append(topic)
        return whole(self, topic)

    monkeypatch.setattr(Selection, "matches_pattern", counted)
    clicks, teas = (Selection(patterns=(compile_pattern(p),)) for p in ("cl.*", "tea.*"))
    bus = FakeControlTopics({TOPIC: 1})

    async def measured(number: int) -> None:
        await asyncio.sleep(1)
        for topic in ("clicks", "tea", "others"):
            await publish_message(bus, TOPIC, 0, measurement(topic, number))
        await asyncio.sleep(1)

    async with run_measurements(bus, TOPIC) as measurements:
        with measurements.subscribe(clicks) as one:
            for number in range(3):
                await measured(number)
            assert matched == ["clicks", "tea", "others"]
            with measurements.subscribe(teas) as two:
                await measured(3)
                assert matched == 2 * ["clicks", "tea", "others"]
                assert drain(two) == [("tea", 3)]
            await measured(4)
            assert len(matched) == 6
            assert drain(one) == [("clicks", number) for number in range(5)]
            assert two.empty()


async def test_routes_of_deleted_topics_are_forgotten(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("binwright.kafka.metrics_topic.REMEMBERED", 3)
    bus = FakeControlTopics({TOPIC: 1})
    async with run_measurements(bus, TOPIC) as measurements:
        with measurements.subscribe(Selection(patterns=(compile_pattern("day-.*"),))) as queue:
            await asyncio.sleep(1)
            for day in range(10):
                await publish_message(bus, TOPIC, 0, measurement(f"day-{day}", 1))
            await asyncio.sleep(1)
            assert drain(queue) == [(f"day-{day}", 1) for day in range(10)]
            assert len(measurements._routes) <= 3
        assert not any(measurements._routes.values())


async def test_a_measurement_in_parts_is_delivered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("binwright.kafka.publishing.RECORD_BYTES", 1_000)
    bus = FakeControlTopics({TOPIC: 1})
    async with run_measurements(bus, TOPIC) as measurements:
        with measurements.subscribe(topics("orders")) as queue:
            await asyncio.sleep(1)
            await publish_message(bus, TOPIC, 0, measurement("orders", 1, partitions=500))
            await asyncio.sleep(1)
            assert len(bus.records(TOPIC)) > 1
            assert drain(queue) == [("orders", 1)]


async def test_the_topic_is_read_only_while_there_are_subscribers() -> None:
    bus = FakeControlTopics({TOPIC: 1})
    async with run_measurements(bus, TOPIC) as measurements:
        await asyncio.sleep(1)
        assert bus.readers(TOPIC) == 0
        with measurements.subscribe(None):
            await asyncio.sleep(1)
            assert bus.readers(TOPIC) == 1
        await asyncio.sleep(6)
        assert bus.readers(TOPIC) == 0
        with measurements.subscribe(None) as queue:
            await asyncio.sleep(1)
            await publish_message(bus, TOPIC, 0, measurement("orders", 2))
            await asyncio.sleep(1)
            assert drain(queue) == [("orders", 2)]


async def test_a_metrics_topic_that_is_created_later_is_read() -> None:
    """Without measurements a group keeps its assignment and reads on."""
    bus = FakeControlTopics()
    async with run_measurements(bus, TOPIC) as measurements:
        with measurements.subscribe(None) as queue:
            await asyncio.sleep(60)
            await bus.ensure(TOPIC, 1, {})
            await asyncio.sleep(15)
            await publish_message(bus, TOPIC, 0, measurement("orders", 1))
            await asyncio.sleep(1)
            await bus.go_down()
            await asyncio.sleep(60)
            await bus.come_up()
            await asyncio.sleep(15)
            await publish_message(bus, TOPIC, 0, measurement("orders", 2))
            await asyncio.sleep(1)
            assert drain(queue) == [("orders", 1), ("orders", 2)]
