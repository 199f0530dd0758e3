"""A replay publishes a recording in order, at its pace, as one monitor."""

import asyncio
import math
from pathlib import Path

import pytest

from binwright.cli.terminal import Console
from binwright.protocol.errors import BrokerUnavailable, StreamError
from binwright.protocol.metrics import Measurement, PartitionRate, decode_measurement
from binwright.protocol.model import BytesPerSecond
from binwright.runtime.settings.group import Settings
from binwright.streams import recording
from binwright.streams.commands.record import record
from binwright.streams.commands.replay import Replayer, replay
from binwright.streams.location import StreamLocation
from binwright.streams.recording import FileRecordingWriter, header_line
from binwright.testing.control_topics import FakeControlTopics

pytestmark = pytest.mark.looptime

TOPIC = "metrics"
CAPACITY = BytesPerSecond(200.0)


def measured(at_s: float, rate: float, monitor: str = "m") -> Measurement:
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


def published(bus: FakeControlTopics) -> list[Measurement]:
    return [decode_measurement(record.value) for record in bus.records(TOPIC)]


@pytest.mark.parametrize(("speed", "took_s"), [(1.0, 20), (10.0, 2), (math.inf, 0)])
async def test_a_recording_is_published_again_at_any_pace(speed: float, took_s: float) -> None:
    bus, when = FakeControlTopics(), list[float]()
    now = asyncio.get_running_loop().time
    measurements = [measured(100, 1.0), measured(110, 2.0), measured(120, 3.0)]
    assert await replay(bus, TOPIC, measurements, speed, lambda _: when.append(now())) == 3
    assert when == pytest.approx([0, took_s / 2, took_s])
    assert [m.partitions for m in published(bus)] == [m.partitions for m in measurements]
    assert {m.interval_s for m in published(bus)} == {1 / speed}


async def test_of_two_monitors_one_is_replayed_under_a_new_name() -> None:
    bus = FakeControlTopics()
    measurements = [measured(0, 1.0), measured(0.5, 9.0, monitor="other"), measured(1, 2.0)]
    assert await replay(bus, TOPIC, measurements, math.inf, lambda _: None) == 2
    assert [m.partitions[0].rate for m in published(bus)] == [1.0, 2.0]
    assert [m.number for m in published(bus)] == [0, 1]
    assert len({m.monitor for m in published(bus)} | {"m", "other"}) == 3


async def recorded(bus: FakeControlTopics, path: Path, seconds: float) -> None:
    reader = await bus.reader(TOPIC, 0, 0)
    writer = FileRecordingWriter(path, CAPACITY)
    stop = asyncio.Event()
    task = asyncio.create_task(record(reader, writer, 5, stop))
    await asyncio.sleep(seconds)
    stop.set()
    await task


async def test_measurements_are_recorded_to_the_last_one(tmp_path: Path) -> None:
    bus, file = FakeControlTopics({TOPIC: 1}), tmp_path / "recorded.jsonl"
    measurements = [measured(n, n) for n in range(7)]
    replaying = asyncio.create_task(replay(bus, TOPIC, measurements, 1.0, lambda _: None))
    await recorded(bus, file, 6.5)
    await replaying
    found = recording.read(file)
    assert found.capacity == CAPACITY
    assert found.measurements == tuple(published(bus))
    assert len(found.measurements) == 7


async def test_a_recording_is_continued_and_other_messages_are_left_out(
    tmp_path: Path,
) -> None:
    bus, file = FakeControlTopics({TOPIC: 1}), tmp_path / "recorded.jsonl"
    await bus.publish(TOPIC, 0, b"k", b"{}")
    await replay(bus, TOPIC, [measured(0, 1.0)], math.inf, lambda _: None)
    await recorded(bus, file, 6)
    await recorded(bus, file, 6)
    assert len(recording.read(file).measurements) == 2


async def test_after_an_incomplete_line_a_recording_continues_on_a_new_line(
    tmp_path: Path,
) -> None:
    bus, file = FakeControlTopics({TOPIC: 1}), tmp_path / "recorded.jsonl"
    await replay(bus, TOPIC, [measured(0, 1.0), measured(1, 2.0)], math.inf, lambda _: None)
    await recorded(bus, file, 6)
    file.write_bytes(file.read_bytes()[:-9])
    await recorded(bus, file, 6)
    assert [m.partitions[0].rate for m in recording.read(file).measurements] == [1.0, 1.0, 2.0]


async def test_a_file_that_is_no_recording_is_not_appended_to(tmp_path: Path) -> None:
    file = tmp_path / "notes.txt"
    file.write_text("mine\n")
    with pytest.raises(StreamError, match="notes"):
        FileRecordingWriter(file, CAPACITY)
    with pytest.raises(StreamError, match="nowhere"):
        FileRecordingWriter(tmp_path / "nowhere" / "file", CAPACITY)


AWAY = Settings.model_validate({"kafka": {"bootstrap_servers": "127.0.0.1:9"}})  # nothing listens


def replayer(file: Path, tmp_path: Path) -> Replayer:
    return Replayer(StreamLocation(Console(quiet=True), tmp_path, str(file)), AWAY, 1.0)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (b'[{"a": {"0": 1}}, {"a": {"0": -1}}]', "row 1, topic 'a', partition 0"),
        (header_line(BytesPerSecond(1)) + b"3\n", "line 2"),
        (header_line(BytesPerSecond(1)), "the recording holds no measurement"),
    ],
)
async def test_a_fault_is_found_before_kafka_is_needed(
    text: bytes, fault: str, tmp_path: Path
) -> None:
    file = tmp_path / "file"
    file.write_bytes(text)
    with pytest.raises(StreamError, match=fault):
        await replayer(file, tmp_path).run()
    file.write_bytes(b'[{"a": {"0": 1}}]')
    with pytest.raises(BrokerUnavailable):
        await replayer(file, tmp_path).run()
