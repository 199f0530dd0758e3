"""One reading of the metrics topic serves all reigns of a process."""

import asyncio
import re

import pytest

from binwright.controller.measurements import Heard, measuring
from binwright.core import wire
from binwright.core.messages import Measurement, PartitionRate
from binwright.core.model import BytesPerSecond
from binwright.core.selection import Selection
from binwright.shell.letters import post
from binwright.testing.bus import FakeBus

pytestmark = pytest.mark.looptime

TOPIC = "metrics"


def said(topic: str, number: int, partitions: int = 1) -> Measurement:
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


def named(*topics: str) -> Selection:
    return Selection(frozenset(topics))


def all_of(heard: Heard) -> list[tuple[str, int]]:
    found = []
    while not heard.empty():
        measurement = heard.get_nowait()
        found.append((measurement.topic, measurement.number))
    return found


async def test_each_reign_hears_of_its_own_topics_and_all_by_one_reader() -> None:
    bus = FakeBus({TOPIC: 1})
    async with measuring(bus, TOPIC) as measurements:
        with (
            measurements.heard(named("orders", "clicks")) as one,
            measurements.heard(named("orders")) as two,
            measurements.heard(None) as three,
        ):
            await asyncio.sleep(1)
            for topic in ("orders", "clicks", "others"):
                await post(bus, TOPIC, 0, said(topic, 1))
            await asyncio.sleep(1)
            assert all_of(one) == [("orders", 1), ("clicks", 1)]
            assert all_of(two) == [("orders", 1)]
            assert all_of(three) == [("orders", 1), ("clicks", 1), ("others", 1)]
            assert bus.readers(TOPIC) == 1


async def test_what_nobody_here_rules_is_not_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    decoded = []
    whole = wire.decode_measurement

    def counted(payload: bytes | None) -> Measurement:
        decoded.append(payload)
        return whole(payload)

    monkeypatch.setattr(wire, "decode_measurement", counted)
    bus = FakeBus({TOPIC: 1})
    async with measuring(bus, TOPIC) as measurements:
        with measurements.heard(named("orders")) as heard:
            await asyncio.sleep(1)
            for topic in ("others", "orders", "others"):
                await post(bus, TOPIC, 0, said(topic, 1))
            await asyncio.sleep(1)
            assert all_of(heard) == [("orders", 1)]
    assert len(decoded) == 1


async def test_a_pattern_is_tried_once_for_each_topic_whoever_comes_and_goes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A thousand groups must not try a thousand patterns for every record."""
    tried: list[str] = []
    whole = Selection.fits

    def counted(self: Selection, topic: str) -> bool:
        tried.append(topic)
        return whole(self, topic)

    monkeypatch.setattr(Selection, "fits", counted)
    clicks, teas = (Selection(patterns=(re.compile(p),)) for p in ("cl.*", "tea.*"))
    bus = FakeBus({TOPIC: 1})

    async def measured(number: int) -> None:
        await asyncio.sleep(1)
        for topic in ("clicks", "tea", "others"):
            await post(bus, TOPIC, 0, said(topic, number))
        await asyncio.sleep(1)

    async with measuring(bus, TOPIC) as measurements:
        with measurements.heard(clicks) as one:
            for number in range(3):
                await measured(number)
            assert tried == ["clicks", "tea", "others"]
            with measurements.heard(teas) as two:
                await measured(3)
                assert tried == 2 * ["clicks", "tea", "others"]
                assert all_of(two) == [("tea", 3)]
            await measured(4)
            assert len(tried) == 6
            assert all_of(one) == [("clicks", number) for number in range(5)]
            assert two.empty()


async def test_topics_that_came_and_went_are_not_remembered_for_ever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("binwright.controller.measurements.REMEMBERED", 3)
    bus = FakeBus({TOPIC: 1})
    async with measuring(bus, TOPIC) as measurements:
        with measurements.heard(Selection(patterns=(re.compile("day-.*"),))) as heard:
            await asyncio.sleep(1)
            for day in range(10):
                await post(bus, TOPIC, 0, said(f"day-{day}", 1))
            await asyncio.sleep(1)
            assert all_of(heard) == [(f"day-{day}", 1) for day in range(10)]
            assert len(measurements._routes) <= 3
        assert not any(measurements._routes.values())


async def test_a_measurement_in_parts_is_heard(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("binwright.shell.letters.RECORD_BYTES", 1_000)
    bus = FakeBus({TOPIC: 1})
    async with measuring(bus, TOPIC) as measurements:
        with measurements.heard(named("orders")) as heard:
            await asyncio.sleep(1)
            await post(bus, TOPIC, 0, said("orders", 1, partitions=500))
            await asyncio.sleep(1)
            assert len(bus.records(TOPIC)) > 1
            assert all_of(heard) == [("orders", 1)]


async def test_nobody_reads_while_nobody_rules() -> None:
    bus = FakeBus({TOPIC: 1})
    async with measuring(bus, TOPIC) as measurements:
        await asyncio.sleep(1)
        assert bus.readers(TOPIC) == 0
        with measurements.heard(None):
            await asyncio.sleep(1)
            assert bus.readers(TOPIC) == 1
        await asyncio.sleep(6)
        assert bus.readers(TOPIC) == 0
        with measurements.heard(None) as heard:
            await asyncio.sleep(1)
            await post(bus, TOPIC, 0, said("orders", 2))
            await asyncio.sleep(1)
            assert all_of(heard) == [("orders", 2)]


async def test_a_metrics_topic_that_is_not_there_yet_is_waited_for() -> None:
    """A group reads what it owns on; without a monitor nothing changes hands."""
    bus = FakeBus()
    async with measuring(bus, TOPIC) as measurements:
        with measurements.heard(None) as heard:
            await asyncio.sleep(60)
            await bus.ensure(TOPIC, 1, {})
            await asyncio.sleep(15)
            await post(bus, TOPIC, 0, said("orders", 1))
            await asyncio.sleep(1)
            await bus.go_down()
            await asyncio.sleep(60)
            await bus.come_up()
            await asyncio.sleep(15)
            await post(bus, TOPIC, 0, said("orders", 2))
            await asyncio.sleep(1)
            assert all_of(heard) == [("orders", 1), ("orders", 2)]
