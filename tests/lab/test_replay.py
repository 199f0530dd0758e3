"""What was recorded is said again: in order, at its pace, by one monitor."""

import asyncio
import math
from pathlib import Path

import pytest

from binwright.core import wire
from binwright.core.errors import StreamError
from binwright.core.messages import Measurement, PartitionRate
from binwright.core.model import BytesPerSecond
from binwright.lab import recording
from binwright.lab.recorder import FileKeeper, record
from binwright.lab.replay import replay
from binwright.testing.bus import FakeBus

pytestmark = pytest.mark.looptime

TOPIC = "metrics"
CAPACITY = BytesPerSecond(200.0)


def said(at_s: float, rate: float, monitor: str = "m") -> Measurement:
    found = PartitionRate(0, BytesPerSecond(rate), 30, 10, 0, None)
    return Measurement(
        topic="orders",
        at_ms=round(at_s * 1000),
        monitor=monitor,
        number=round(at_s * 10),
        interval_s=1,
        count=1,
        partitions=(found,),
    )


def heard(bus: FakeBus) -> list[Measurement]:
    return [wire.decode_measurement(record.value) for record in bus.records(TOPIC)]


@pytest.mark.parametrize(("speed", "took_s"), [(1.0, 20), (10.0, 2), (math.inf, 0)])
async def test_a_recording_is_said_again_at_any_pace(speed: float, took_s: float) -> None:
    bus, when = FakeBus(), list[float]()
    now = asyncio.get_running_loop().time
    told = [said(100, 1.0), said(110, 2.0), said(120, 3.0)]
    assert await replay(bus, TOPIC, told, speed, lambda _: when.append(now())) == 3
    assert when == pytest.approx([0, took_s / 2, took_s])
    assert [m.partitions for m in heard(bus)] == [m.partitions for m in told]
    assert {m.interval_s for m in heard(bus)} == {1 / speed}


async def test_of_two_monitors_one_is_said_again_under_a_new_name() -> None:
    bus = FakeBus()
    told = [said(0, 1.0), said(0.5, 9.0, monitor="other"), said(1, 2.0)]
    assert await replay(bus, TOPIC, told, math.inf, lambda _: None) == 2
    assert [m.partitions[0].rate for m in heard(bus)] == [1.0, 2.0]
    assert [m.number for m in heard(bus)] == [0, 1]
    assert len({m.monitor for m in heard(bus)} | {"m", "other"}) == 3


async def recorded(bus: FakeBus, path: Path, seconds: float) -> None:
    reader = await bus.reader(TOPIC, 0, 0)
    keeper = FileKeeper(path, CAPACITY)
    stop = asyncio.Event()
    task = asyncio.create_task(record(reader, keeper, 5, stop))
    await asyncio.sleep(seconds)
    stop.set()
    await task


async def test_what_is_said_is_recorded_to_the_last_word(tmp_path: Path) -> None:
    bus, file = FakeBus({TOPIC: 1}), tmp_path / "recorded.jsonl"
    told = [said(n, n) for n in range(7)]
    playing = asyncio.create_task(replay(bus, TOPIC, told, 1.0, lambda _: None))
    await recorded(bus, file, 6.5)
    await playing
    found = recording.read(file)
    assert found.capacity == CAPACITY
    assert found.measurements == tuple(heard(bus))
    assert len(found.measurements) == 7


async def test_a_recording_is_continued_and_what_is_no_measurement_left_out(
    tmp_path: Path,
) -> None:
    bus, file = FakeBus({TOPIC: 1}), tmp_path / "recorded.jsonl"
    await bus.publish(TOPIC, 0, b"k", b"{}")
    await replay(bus, TOPIC, [said(0, 1.0)], math.inf, lambda _: None)
    await recorded(bus, file, 6)
    await recorded(bus, file, 6)
    assert len(recording.read(file).measurements) == 2


async def test_a_recording_that_was_cut_short_is_continued_on_a_line_of_its_own(
    tmp_path: Path,
) -> None:
    bus, file = FakeBus({TOPIC: 1}), tmp_path / "recorded.jsonl"
    await replay(bus, TOPIC, [said(0, 1.0), said(1, 2.0)], math.inf, lambda _: None)
    await recorded(bus, file, 6)
    file.write_bytes(file.read_bytes()[:-9])
    await recorded(bus, file, 6)
    assert [m.partitions[0].rate for m in recording.read(file).measurements] == [1.0, 1.0, 2.0]


async def test_a_file_of_something_else_is_not_appended_to(tmp_path: Path) -> None:
    file = tmp_path / "notes.txt"
    file.write_text("mine\n")
    with pytest.raises(StreamError, match="notes"):
        FileKeeper(file, CAPACITY)
    with pytest.raises(StreamError, match="nowhere"):
        FileKeeper(tmp_path / "nowhere" / "file", CAPACITY)
