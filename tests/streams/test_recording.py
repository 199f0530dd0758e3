"""A recording holds measurements in order, and gives the rates known at a time."""

from pathlib import Path

import pytest

from binwright.protocol import wire
from binwright.protocol.errors import StreamError
from binwright.protocol.metrics import Measurement, PartitionRate
from binwright.protocol.model import BytesPerSecond, TopicPartition
from binwright.streams import recording, stream_file

P, Q = TopicPartition("orders", 0), TopicPartition("orders", 1)
CAPACITY = BytesPerSecond(200.0)


def measured(at_s: float, *rates: float | None, monitor: str = "m") -> Measurement:
    found = tuple(
        PartitionRate(n, None if rate is None else BytesPerSecond(rate), 30, 10, 0, None)
        for n, rate in enumerate(rates)
    )
    return Measurement(
        topic="orders",
        at_ms=round(at_s * 1000),
        monitor=monitor,
        number=round(at_s * 1000),
        interval_s=1,
        count=len(rates),
        partitions=found,
    )


def rows(*measurements: Measurement) -> list[dict[TopicPartition, float]]:
    return [dict(row) for row in recording.rows(measurements, 10)]


def lines(*measurements: Measurement) -> list[bytes]:
    return [recording.header_line(CAPACITY), *(wire.encode(m) + b"\n" for m in measurements)]


def test_a_recording_reads_back() -> None:
    measurements = (measured(0, 1.0), measured(1, 2.0, None))
    assert recording.parse(lines(*measurements)) == recording.Recording(CAPACITY, measurements)


def test_a_row_holds_the_latest_rates() -> None:
    measurements = [
        measured(0, 1.0),
        measured(5, 2.0, 3.0),
        measured(12, None, 4.0),
        measured(20, 9.0, 9.0),
    ]
    assert rows(*measurements) == [{P: 2, Q: 3}, {P: 2, Q: 4}, {P: 9, Q: 9}]


def test_a_removed_partition_is_in_no_further_row() -> None:
    assert rows(measured(0, 1.0, 1.0), measured(1, 2.0)) == [{P: 2}]
    assert rows(measured(0, 1.0), measured(1)) == []


def test_a_pause_of_the_monitor_repeats_the_last_row() -> None:
    assert rows(measured(0, 1.0), measured(35, 2.0)) == [{P: 1}] * 3 + [{P: 2}]


def test_of_two_monitors_one_counts() -> None:
    measurements = [measured(0, 1.0), measured(0.5, 7.0, monitor="other"), measured(1, 2.0)]
    assert rows(*measurements) == [{P: 2}]


def test_streams_read_a_recording_in_per_cent_of_its_capacity(tmp_path: Path) -> None:
    file = tmp_path / "recorded.jsonl"
    file.write_bytes(b"".join(lines(measured(0, 50.0), measured(31, 100.0))))
    assert stream_file.read(file) == [{P: 25.0}, {P: 50.0}]
    whole = recording.read(file)
    rows = stream_file.recorded_rows(whole.measurements, whole.capacity, stream_file.ROW_S)
    assert list(rows) == stream_file.read(file)


def test_an_incomplete_last_line_is_ignored() -> None:
    whole = lines(measured(0, 1.0), measured(1, 2.0))
    cut = [*whole[:-1], whole[-1][:-9]]
    assert recording.parse(cut).measurements == (measured(0, 1.0),)


def test_messages_of_a_later_version_are_skipped() -> None:
    later = b'{"kind":"measurement/9"}\n'
    assert recording.parse([*lines(measured(0, 1.0)), later]).measurements == (measured(0, 1.0),)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ([], "line 1: not JSON"),
        ([b"{}\n"], r"line 1: expected .*recording/1"),
        ([b'{"kind": "recording/1", "capacity_bytes_per_s": 0}\n'], "line 1: expected"),
        ([*lines(measured(0, 1.0)), b"{}\n"], "line 3: "),
    ],
)
def test_what_is_no_recording_is_refused_with_its_line(text: list[bytes], fault: str) -> None:
    with pytest.raises(StreamError, match=fault):
        recording.parse(text)


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(StreamError, match="nowhere"):
        recording.read(tmp_path / "nowhere")
    empty = tmp_path / "empty.jsonl"
    empty.write_bytes(recording.header_line(CAPACITY))
    assert recording.read(empty).measurements == ()
    with pytest.raises(StreamError, match="holds no rate"):
        stream_file.read(empty)
