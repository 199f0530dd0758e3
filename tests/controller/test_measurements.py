"""One reading of the metrics topic serves all reigns of a process."""

import asyncio

import pytest

from binwright.controller.measurements import Heard, measuring
from binwright.core import wire
from binwright.core.messages import Measurement, PartitionRate
from binwright.core.model import BytesPerSecond
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
            measurements.heard(["orders", "clicks"]) as one,
            measurements.heard(["orders"]) as two,
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
        with measurements.heard(["orders"]) as heard:
            await asyncio.sleep(1)
            for topic in ("others", "orders", "others"):
                await post(bus, TOPIC, 0, said(topic, 1))
            await asyncio.sleep(1)
            assert all_of(heard) == [("orders", 1)]
    assert len(decoded) == 1


async def test_a_measurement_in_parts_is_heard(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("binwright.shell.letters.RECORD_BYTES", 1_000)
    bus = FakeBus({TOPIC: 1})
    async with measuring(bus, TOPIC) as measurements:
        with measurements.heard(["orders"]) as heard:
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
