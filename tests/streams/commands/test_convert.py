"""Streams and recordings are converted into one another, and what is not kept is reported."""

import asyncio
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.builders import measurement
from tests.streams.strategies import STREAMS

from binwright.cli.terminal import Console
from binwright.protocol import wire
from binwright.protocol.errors import SettingsError, StreamError
from binwright.protocol.metrics import Measurement, PartitionRate
from binwright.protocol.model import BytesPerSecond, TopicPartition
from binwright.streams import recording, stream_file, streams
from binwright.streams.commands.convert import Conversion, Form
from binwright.streams.location import StreamLocation
from binwright.streams.streams import PerCent, Row

CAPACITY = BytesPerSecond(2_000_000.0)
P = TopicPartition("orders", 0)

MEASUREMENTS = st.lists(
    st.builds(
        lambda rates, at: measurement(
            topic="orders",
            at_ms=at,
            count=len(rates),
            partitions=tuple(
                PartitionRate(n, None if r is None else BytesPerSecond(r), 30.0, 9, 1, 100.0)
                for n, r in enumerate(rates)
            ),
        ),
        st.lists(st.none() | st.floats(0, 1e9), max_size=4),
        st.integers(0, 2**40),
    ),
    max_size=8,
)


def convert(
    source: Path,
    destination: Path | str,
    form: Form,
    *,
    row_s: float = 30.0,
    capacity: float | None = None,
) -> str:
    """Convert; return what is reported."""
    console = Console(log_path=False, log_time=False, width=1_000)
    with tempfile.TemporaryDirectory() as directory, console.capture() as reported:
        found, made = (
            StreamLocation(console, Path(directory), str(name)) for name in (source, destination)
        )
        asyncio.run(Conversion(found, made, form, row_s, capacity).run())
    return reported.get()


def stable(stream: Sequence[Row]) -> list[dict[TopicPartition, PerCent]]:
    """Return a stream in which partitions come and do not go."""
    rows: list[dict[TopicPartition, PerCent]] = []
    for row in stream:
        rows.append({**(rows[-1] if rows else {}), **row})
    return rows


@given(STREAMS, st.sampled_from([0.5, 30.0]), st.floats(1, 1e12))
def test_a_stream_survives_its_way_through_a_recording(
    stream: list[Row], row_s: float, capacity: float
) -> None:
    with tempfile.TemporaryDirectory() as name:
        first, recorded, last = (Path(name) / file for file in ("a.json", "b.jsonl", "c.json"))
        streams.write(first, stable(stream))
        convert(first, recorded, Form.RECORDING, row_s=row_s, capacity=capacity)
        convert(recorded, last, Form.STREAM, row_s=row_s)
        found = stream_file.read(last)
    assert len(found) == len(stream)
    for left, right in zip(found, stable(stream), strict=True):
        assert left == pytest.approx(right, rel=1e-12)


@given(MEASUREMENTS)
def test_a_recording_is_copied_measurement_by_measurement(measured: list[Measurement]) -> None:
    with tempfile.TemporaryDirectory() as name:
        first, last = Path(name) / "a.jsonl", Path(name) / "b.jsonl"
        lines = [recording.header_line(CAPACITY), *(wire.encode(m) + b"\n" for m in measured)]
        first.write_bytes(b"".join(lines))
        convert(first, last, Form.RECORDING)
        assert last.read_bytes() == first.read_bytes()


@given(STREAMS)
def test_a_stream_is_copied_row_by_row(stream: list[Row]) -> None:
    with tempfile.TemporaryDirectory() as name:
        first, last = Path(name) / "a.json", Path(name) / "b.json"
        streams.write(first, stream)
        convert(first, last, Form.STREAM)
        assert last.read_bytes() == first.read_bytes()


def test_what_a_recording_lacks_is_reported(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('[{"a": {"0": 1, "1": 2}}, {"a": {"1": 2}}]')
    report = convert(tmp_path / "a.json", tmp_path / "b.jsonl", Form.RECORDING, capacity=1e6)
    assert f"2 measurements from {tmp_path}/a.json to {tmp_path}/b.jsonl" in report
    assert "a row lasts 30 s, the first is at 1970-01-01 00:00:00 UTC" in report
    assert "1 times a partition is missing below others of its topic: it keeps" in report


def test_what_a_stream_lacks_is_reported(tmp_path: Path) -> None:
    rates = (PartitionRate(0, BytesPerSecond(1e6), 30, 0, 0, None),)
    message = wire.encode(measurement(topic="orders", partitions=rates)) + b"\n"
    later = b'{"kind":"measurement/9"}\n'
    (tmp_path / "a.jsonl").write_bytes(recording.header_line(CAPACITY) + later + message)
    report = convert(tmp_path / "a.jsonl", tmp_path / "b.json", Form.STREAM, row_s=15)
    assert "1 rows from" in report
    assert "the latest rates of 15 s; not kept: times, offsets, record sizes" in report
    assert "100 per cent are 2,000,000 bytes/s: a stream does not say so" in report
    assert "left out: 1 messages of a later version" in report
    assert stream_file.read(tmp_path / "b.json") == [{P: PerCent(50)}]
    convert(tmp_path / "a.jsonl", tmp_path / "c.json", Form.STREAM, capacity=500_000)
    assert stream_file.read(tmp_path / "c.json") == [{P: PerCent(200)}]


def test_per_cents_need_a_capacity(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('[{"a": {"0": 1}}]')
    with pytest.raises(SettingsError, match=r"a.json is a stream, in per cent.*--capacity"):
        convert(tmp_path / "a.json", tmp_path / "b.jsonl", Form.RECORDING)
    assert not (tmp_path / "b.jsonl").exists()


def test_names_may_look_like_formats_and_markup(tmp_path: Path) -> None:
    (tmp_path / "{a}[red].json").write_text('[{"a": {"0": 1}}]')
    report = convert(tmp_path / "{a}[red].json", tmp_path / "{}[b].json", Form.STREAM)
    assert "{a}[red].json to " in report
    assert "{}[b].json" in report


def test_what_is_there_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('[{"a": {"0": 1}}]')
    with pytest.raises(SettingsError, match=r"a.json exists: name another file"):
        convert(tmp_path / "a.json", tmp_path / "a.json", Form.STREAM)


@pytest.mark.parametrize(
    ("source", "destination", "error"),
    [
        ('[{"a": {"0": 1}}, 3]', "b.json", "row 1"),
        ('[{"a": {"0": 1}}]', "none/b.json", "No such file"),
    ],
)
def test_a_failed_conversion_leaves_nothing(
    tmp_path: Path, source: str, destination: str, error: str
) -> None:
    (tmp_path / "a.json").write_text(source)
    with pytest.raises(StreamError, match=error):
        convert(tmp_path / "a.json", tmp_path / destination, Form.STREAM)
    assert [file.name for file in tmp_path.iterdir()] == ["a.json"]


# --- the command -------------------------------------------------------------------------------


def command(*arguments: str, given: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    words = (sys.executable, "-m", "binwright.cli", "convert", *arguments)
    return subprocess.run(words, input=given, capture_output=True, check=False, timeout=60)


def test_standard_input_becomes_standard_output() -> None:
    stream = b'[\n{"a": {"0": 1}}\n]\n'
    made = command("-", "-", "--form", "recording", "--capacity", "100", given=stream)
    assert made.returncode == 0, made.stderr
    assert made.stdout.startswith(b'{"kind":"recording/1","capacity_bytes_per_s":100.0}\n')
    again = command("-", "-", "--form", "stream", given=made.stdout)
    assert again.stdout == stream
    assert b"1 rows from - to -" in again.stderr


def test_a_file_is_recognised_by_what_it_holds_and_made_by_its_name(tmp_path: Path) -> None:
    (tmp_path / "stream").write_text('[{"a": {"0": 1}}]')
    made = command(str(tmp_path / "stream"), str(tmp_path / "b.jsonl"), "--capacity", "100")
    assert made.returncode == 0, made.stderr
    assert recording.read(tmp_path / "b.jsonl").capacity == BytesPerSecond(100)
    assert command(str(tmp_path / "b.jsonl"), str(tmp_path / "c.json")).returncode == 0
    assert stream_file.read(tmp_path / "c.json") == [{TopicPartition("a", 0): PerCent(1)}]


@pytest.mark.parametrize(
    ("arguments", "fault"),
    [
        (("a.json", "b"), "b: name it .json for a stream or .jsonl for a recording, or give"),
        (("a.json", "delta://x", "--form", "stream"), "a table holds a recording, no stream"),
        (("a.json", "delta://"), "delta://: name a directory or prefix"),
        (("a.json", "b.json"), "a.json: [Errno 2] No such file"),
    ],
)
def test_what_cannot_be_converted_is_a_usage_error(
    arguments: Sequence[str], fault: str, tmp_path: Path
) -> None:
    made = subprocess.run(
        (sys.executable, "-m", "binwright.cli", "convert", *arguments),
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        cwd=tmp_path,
    )
    assert (made.returncode, fault in made.stderr) == (2, True), made.stderr


def test_ctrl_c_ends_the_wait_for_standard_input(tmp_path: Path) -> None:
    words = (sys.executable, "-m", "binwright.cli", "convert", "-", "-", "--form", "stream")
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen(words, stdin=subprocess.PIPE, env=environment) as running:
        try:
            deadline = time.monotonic() + 60
            while not list(tmp_path.glob("binwright-*/standard-input")):
                assert time.monotonic() < deadline
                time.sleep(0.05)
            running.send_signal(signal.SIGINT)
            assert running.wait(60) == 0
        finally:
            running.kill()
    assert not list(tmp_path.iterdir())
