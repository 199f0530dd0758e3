"""A stream or a recording is named in one way."""

from pathlib import Path

import pytest
from rich.console import Console

from binwright.protocol import wire
from binwright.protocol.errors import SettingsError, StreamError
from binwright.protocol.model import BytesPerSecond, TopicPartition
from binwright.recordings import generated as streams
from binwright.recordings import recording
from binwright.recordings.location import StreamLocation, read_stream
from binwright.recordings.stream_files.json_rows import PerCent
from binwright.recordings.stream_files.recorded import StreamMeasurements

QUIET = Console(quiet=True)
CAPACITY = BytesPerSecond(1_000_000)
STREAM = [{TopicPartition("a", 0): PerCent(10 * n)} for n in range(4)]


@pytest.fixture
def stream(tmp_path: Path) -> str:
    streams.write(tmp_path / "a.json", STREAM)
    return str(tmp_path / "a.json")


@pytest.fixture
def recorded(tmp_path: Path) -> str:
    made = StreamMeasurements(STREAM, CAPACITY, 15)
    lines = [recording.header_line(CAPACITY), *(wire.encode(each) + b"\n" for each in made)]
    (tmp_path / "a.jsonl").write_bytes(b"".join(lines))
    return str(tmp_path / "a.jsonl")


def test_a_stream_has_the_length_of_rows_and_the_capacity_that_are_given(stream: str) -> None:
    found = read_stream(stream, QUIET)
    assert (list(found.rows), found.row_s, found.capacity) == (STREAM, 30.0, None)
    found = read_stream(stream, QUIET, row_s=15, capacity=500.0)
    assert (list(found.rows), found.row_s, found.capacity) == (STREAM, 15, BytesPerSecond(500))


def test_a_recording_gives_rows_of_the_length_and_in_per_cent_of_the_capacity(
    recorded: str,
) -> None:
    found = read_stream(recorded, QUIET, row_s=15)
    assert (list(found.rows), found.row_s, found.capacity) == (STREAM, 15, CAPACITY)
    found = read_stream(recorded, QUIET, capacity=500_000)
    twice = [{p: PerCent(2 * rate) for p, rate in row.items()} for row in (STREAM[1], STREAM[3])]
    assert (list(found.rows), found.row_s, found.capacity) == (twice, 30, BytesPerSecond(500_000))


def test_a_malformed_file_is_named_with_the_place(tmp_path: Path) -> None:
    (tmp_path / "bad.json").write_text('[{"a": {"3": -1}}]')
    with pytest.raises(StreamError, match=r"bad.json: row 0, topic 'a', partition 3: "):
        read_stream(str(tmp_path / "bad.json"), QUIET)


@pytest.mark.parametrize(
    ("name", "table"),
    [
        ("a.json", None),
        ("-", None),
        ("delta:///lake/a", "/lake/a"),
        ("delta://s3a://bucket/a", "s3a://bucket/a"),
        ("delta://a", str(Path("a").absolute())),
    ],
)
def test_a_table_has_a_path_that_spark_sees(name: str, table: str | None) -> None:
    assert StreamLocation(QUIET, Path(), name).table == table


async def test_nothing_is_recorded_to_standard_output() -> None:
    with pytest.raises(SettingsError, match="name a file or delta://PATH"):
        async with StreamLocation(QUIET, Path(), "-").writer(CAPACITY):
            pass
