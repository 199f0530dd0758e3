"""The load of a demo: the package's, a stream's or a recording's."""

import os
from pathlib import Path

import pytest

from binwright.cli.runner import ProgressConsole
from binwright.local.demo import Demo, DemoOptions
from binwright.protocol import wire
from binwright.protocol.errors import StreamError
from binwright.protocol.model import BytesPerSecond, TopicPartition
from binwright.streams import recording, streams
from binwright.streams.generated import demo_stream
from binwright.streams.stream_file import StreamMeasurements
from binwright.streams.streams import PerCent

STREAM = [{TopicPartition("a", 0): PerCent(n)} for n in range(4)]


def demo(tmp_path: Path, stream: str | None, row_s: float = 30.0) -> Demo:
    return Demo(DemoOptions(stream=stream, row_s=row_s), ProgressConsole(quiet=True), tmp_path)


async def test_it_is_that_of_the_package_unless_one_is_named(tmp_path: Path) -> None:
    assert list(await demo(tmp_path, None)._stream()) == demo_stream()


async def test_a_stream_is_played_row_by_row(tmp_path: Path) -> None:
    streams.write(tmp_path / "a.json", STREAM)
    assert list(await demo(tmp_path, str(tmp_path / "a.json"))._stream()) == STREAM


async def test_a_recording_is_played_in_per_cent_of_its_capacity(tmp_path: Path) -> None:
    capacity, file = BytesPerSecond(8e6), tmp_path / "a.jsonl"
    made = StreamMeasurements(STREAM, capacity, 15)
    lines = [recording.header_line(capacity), *(wire.encode(each) + b"\n" for each in made)]
    file.write_bytes(b"".join(lines))
    assert list(await demo(tmp_path, str(file), 15)._stream()) == STREAM
    assert list(await demo(tmp_path, str(file), 30)._stream()) == [STREAM[1], STREAM[3]]
    assert os.listdir(tmp_path) == ["a.jsonl"]  # noqa: PTH208 - a moment


async def test_a_malformed_stream_is_refused_before_anything_starts(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('[{"a": {"0": -1}}]')
    with pytest.raises(StreamError, match="row 0, topic 'a', partition 0"):
        await demo(tmp_path, str(tmp_path / "a.json")).run()
    assert os.listdir(tmp_path) == ["a.json"]  # noqa: PTH208 - a moment
