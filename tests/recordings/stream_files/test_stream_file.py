"""A file of either form is read as either."""

from pathlib import Path

import pytest
from tests.builders import measurement

from binwright.protocol import wire
from binwright.protocol.errors import StreamError
from binwright.protocol.measurements import Measurement, PartitionRate
from binwright.protocol.model import BytesPerSecond, TopicPartition
from binwright.recordings.recording import header_line
from binwright.recordings.stream_files.json_rows import PerCent
from binwright.recordings.stream_files.stream_file import StreamFile

P = TopicPartition("orders", 0)
CAPACITY = BytesPerSecond(200.0)


def measured(rate: float) -> Measurement:
    rates = (PartitionRate(0, BytesPerSecond(rate), 30, 0, 0, None),)
    return measurement(topic="orders", partitions=rates)


@pytest.fixture
def stream(tmp_path: Path) -> StreamFile:
    file = tmp_path / "stream.json"
    file.write_text('\ufeff[{"orders": {"0": 25}}]', encoding="utf-8")
    return StreamFile(file)


@pytest.fixture
def recording(tmp_path: Path) -> StreamFile:
    file = tmp_path / "recorded.jsonl"
    later = b'{"kind":"measurement/9"}\n'
    file.write_bytes(header_line(CAPACITY) + later + wire.encode(measured(50.0)) + b"\n")
    return StreamFile(file)


def test_a_stream_and_a_recording_are_recognised(stream: StreamFile, recording: StreamFile) -> None:
    assert (stream.is_recording(), recording.is_recording()) == (False, True)
    assert (stream.capacity(), recording.capacity()) == (None, CAPACITY)


def test_both_are_read_as_rows(stream: StreamFile, recording: StreamFile) -> None:
    quarter, half = {P: PerCent(25)}, {P: PerCent(50)}
    assert list(stream.rows()) == [quarter] == list(recording.rows())
    assert list(recording.rows(30, BytesPerSecond(100))) == [half]
    assert list(stream.rows(30, BytesPerSecond(100))) == [quarter]  # per cents stay per cents


def test_both_are_read_as_measurements(stream: StreamFile, recording: StreamFile) -> None:
    assert list(recording.measurements(30, BytesPerSecond(1))) == [measured(50.0)]
    (made,) = stream.measurements(15, CAPACITY)
    assert made.rates() == {P: BytesPerSecond(50)}
    assert made.interval_s == 15


def test_what_is_not_kept_is_counted(recording: StreamFile, tmp_path: Path) -> None:
    list(recording.rows())
    assert recording.skipped == 1
    file = tmp_path / "gap.json"
    file.write_text('[{"a": {"0": 1, "1": 2}}, {"a": {"1": 2}}]')
    gap = StreamFile(file)
    list(gap.measurements(30, CAPACITY))
    assert gap.kept_rates == 1


WHOLE = (
    b'"at_ms": 0, "monitor": "m", "number": 0, "interval_s": 1, "count": 9, "kind": "measurement/2"'
)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (b'[{"a": {"0": 1, "7": -1}}]', "row 0, topic 'a', partition 7: per cents must be"),
        (b'[{"a": {"0": 1', "row 0: not JSON"),
        (b'{"kind": "recording/1"}\n', "line 1: expected"),
        (
            header_line(CAPACITY) + b'{"topic": "a", "partitions": [[5, -1, 1, 0, 0, null]], %b}\n',
            "line 2, topic 'a', partition 5: partitions.0.1: ",
        ),
        (
            header_line(CAPACITY) + b'{"topic": "a", "partitions": [5], %b}\n',
            "line 2, topic 'a': partitions.0: ",
        ),
        (
            header_line(CAPACITY) + b'{"topic": "a", "partitions": [["x", 1, 1, 0, 0, null]],%b}\n',
            "line 2, topic 'a': partitions.0.0: ",
        ),
        (header_line(CAPACITY) + b'{"topic": "a", "partitions": []}\n', "line 2, topic 'a': at_ms"),
        (header_line(CAPACITY) + b"3\n", "line 2: message: "),
        (header_line(CAPACITY) + b"x\n", "line 2: message: "),
    ],
)
def test_a_fault_names_file_place_topic_and_partition(
    text: bytes, fault: str, tmp_path: Path
) -> None:
    (tmp_path / "file").write_bytes(text.replace(b"%b", WHOLE))
    for reading in (StreamFile.rows, lambda file: file.measurements(30, CAPACITY)):
        with pytest.raises(StreamError) as caught:
            list(reading(StreamFile(tmp_path / "file", "x")))
        assert str(caught.value).startswith(f"x: {fault}")


def test_a_file_that_does_not_exist_is_named(tmp_path: Path) -> None:
    with pytest.raises(StreamError, match=r"nowhere: .* No such file"):
        list(StreamFile(tmp_path / "nowhere").rows())
