"""A recording tells what was said, in order, and what was known when."""

from pathlib import Path

import pytest

from binwright.core import wire
from binwright.core.errors import StreamError
from binwright.core.messages import Measurement, PartitionRate
from binwright.core.model import BytesPerSecond, TopicPartition
from binwright.lab import recording, streams

P, Q = TopicPartition("orders", 0), TopicPartition("orders", 1)
CAPACITY = BytesPerSecond(200.0)


def said(at_s: float, *rates: float | None, monitor: str = "m") -> Measurement:
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


def rows(*told: Measurement) -> list[dict[TopicPartition, float]]:
    return [dict(row) for row in recording.rows(told, 10)]


def lines(*measurements: Measurement) -> list[bytes]:
    return [recording.begin(CAPACITY), *(wire.encode(m) + b"\n" for m in measurements)]


def test_a_recording_reads_back() -> None:
    told = (said(0, 1.0), said(1, 2.0, None))
    assert recording.parse(lines(*told)) == recording.Recording(CAPACITY, told)


def test_a_row_is_what_was_known_by_then() -> None:
    told = [said(0, 1.0), said(5, 2.0, 3.0), said(12, None, 4.0), said(20, 9.0, 9.0)]
    assert rows(*told) == [{P: 2, Q: 3}, {P: 2, Q: 4}, {P: 9, Q: 9}]


def test_what_is_gone_is_in_no_row() -> None:
    assert rows(said(0, 1.0, 1.0), said(1, 2.0)) == [{P: 2}]
    assert rows(said(0, 1.0), said(1)) == []


def test_silence_repeats_the_last_row() -> None:
    assert rows(said(0, 1.0), said(35, 2.0)) == [{P: 1}] * 3 + [{P: 2}]


def test_of_two_monitors_one_counts() -> None:
    told = [said(0, 1.0), said(0.5, 7.0, monitor="other"), said(1, 2.0)]
    assert rows(*told) == [{P: 2}]


def test_streams_read_a_recording_in_per_cent_of_its_capacity(tmp_path: Path) -> None:
    file = tmp_path / "recorded.jsonl"
    file.write_bytes(b"".join(lines(said(0, 50.0), said(31, 100.0))))
    assert streams.read(file) == [{P: 25.0}, {P: 50.0}]


def test_a_line_that_was_cut_short_is_left_out() -> None:
    whole = lines(said(0, 1.0), said(1, 2.0))
    cut = [*whole[:-1], whole[-1][:-9]]
    assert recording.parse(cut).measurements == (said(0, 1.0),)


def test_what_a_later_version_says_is_skipped() -> None:
    later = b'{"kind":"measurement/9"}\n'
    assert recording.parse([*lines(said(0, 1.0)), later]).measurements == (said(0, 1.0),)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ([], "line 1: not JSON"),
        ([b"{}\n"], r"line 1: expected .*recording/1"),
        ([b'{"kind": "recording/1", "capacity_bytes_per_s": 0}\n'], "line 1: expected"),
        ([*lines(said(0, 1.0)), b"{}\n"], "line 3: "),
    ],
)
def test_what_is_no_recording_is_told_by_line(text: list[bytes], told: str) -> None:
    with pytest.raises(StreamError, match=told):
        recording.parse(text)


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(StreamError, match="nowhere"):
        recording.read(tmp_path / "nowhere")
    empty = tmp_path / "empty.jsonl"
    empty.write_bytes(recording.begin(CAPACITY))
    assert recording.read(empty).measurements == ()
    with pytest.raises(StreamError, match="not one rate"):
        streams.read(empty)
