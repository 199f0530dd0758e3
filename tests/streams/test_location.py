"""A stream or a recording is named in one way."""

import os
from pathlib import Path

import pytest

from binwright.cli.terminal import Console
from binwright.protocol import wire
from binwright.protocol.errors import SettingsError, StreamError
from binwright.protocol.model import BytesPerSecond, TopicPartition
from binwright.streams import recording, streams
from binwright.streams.location import StreamLocation, open_output, read_stream
from binwright.streams.stream_file import StreamMeasurements
from binwright.streams.streams import PerCent

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


def test_a_file_appears_when_it_is_complete(tmp_path: Path) -> None:
    file = tmp_path / "made"
    with open_output(str(file)) as output:
        output.write(b"1")
        assert not file.exists()
    assert file.read_bytes() == b"1"
    with open_output(str(file)) as output:
        output.write(b"2")
        output.flush()
        assert file.read_bytes() == b"1"
    assert file.read_bytes() == b"2"


def test_a_failure_leaves_what_was_there(tmp_path: Path) -> None:
    file = tmp_path / "made"
    file.write_bytes(b"1")
    with pytest.raises(ZeroDivisionError), open_output(str(file)) as output:
        output.write(b"%d" % (1 // 0))
    assert [each.name for each in tmp_path.iterdir()] == ["made"]
    assert file.read_bytes() == b"1"


def test_a_pipe_is_written_and_stays_a_pipe(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reading = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        with open_output(str(pipe)) as output:
            output.write(b"1")
        assert os.read(reading, 9) == b"1"
    finally:
        os.close(reading)
    assert pipe.is_fifo()


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "file")
    with open_output(str(tmp_path / "link")) as output:
        output.write(b"1")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "file").read_bytes() == b"1"


def test_a_file_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    with pytest.raises(StreamError, match="nowhere/x"), open_output(f"{tmp_path}/nowhere/x"):
        pass
