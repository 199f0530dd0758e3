"""A file of either form is read as either."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.builders import measurement
from tests.streams.strategies import ROWS, STREAMS

from binwright.protocol import wire
from binwright.protocol.errors import StreamError
from binwright.protocol.metrics import Measurement, PartitionRate, decode_measurement
from binwright.protocol.model import BytesPerSecond, TopicPartition
from binwright.streams.recording import header_line
from binwright.streams.stream_file import StreamFile, StreamMeasurements, recorded_rows
from binwright.streams.streams import PerCent, Row

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


FULL = BytesPerSecond(2_000_000)
LENGTHS = st.sampled_from([0.1, 1 / 3, 1.0, 7.5, 30.0, 3600.0])


def row(**rates: dict[int, float]) -> dict[TopicPartition, PerCent]:
    return {
        TopicPartition(topic, number): PerCent(rate)
        for topic, partitions in rates.items()
        for number, rate in partitions.items()
    }


def again(stream: Sequence[Row], row_s: float) -> list[Row]:
    """Return the stream that its measurements give, each written and read as a message."""
    made = StreamMeasurements(stream, FULL, row_s)
    messages = (decode_measurement(wire.encode(measurement)) for measurement in made)
    return list(recorded_rows(messages, FULL, row_s))


@given(st.lists(ROWS, min_size=1, max_size=6), LENGTHS)
def test_a_stream_whose_partitions_stay_is_kept(rows: list[Row], row_s: float) -> None:
    """Every partition of the first row is in all rows, with a rate of its own row or of before."""
    stream: list[Row] = []
    for each in rows:
        stream.append({**(stream[-1] if stream else {}), **each})
    found = again(stream, row_s)
    assert len(found) == len(stream)
    for left, right in zip(found, stream, strict=True):
        assert left == pytest.approx(dict(right), rel=1e-12)


@given(STREAMS, LENGTHS)
def test_partitions_that_kafka_could_take_away_come_and_go(
    rows: list[dict[TopicPartition, PerCent]], row_s: float
) -> None:
    """A topic keeps its partitions below the last one: those without a rate get 1 per cent."""
    stream = [
        {
            TopicPartition(topic, number): rates.get(TopicPartition(topic, number), PerCent(1))
            for topic in {p.topic for p in rates}
            for number in range(1 + max(p.partition for p in rates if p.topic == topic))
        }
        for rates in rows
    ]
    made = StreamMeasurements(stream, FULL, row_s)
    assert all(measurement.interval_s == row_s for measurement in made)
    assert made.kept_rates == 0
    for left, right in zip(again(stream, row_s), stream, strict=True):
        assert left == pytest.approx(right, rel=1e-12)


def test_a_partition_missing_below_others_keeps_its_last_rate_and_is_counted() -> None:
    stream = [row(a={0: 10, 1: 20}), row(a={1: 30}), row(a={1: 40}), row(a={0: 5})]
    made = StreamMeasurements(stream, FULL, 30)
    list(made)
    assert made.kept_rates == 2
    assert again(stream, 30) == [
        row(a={0: 10, 1: 20}),
        row(a={0: 10, 1: 30}),
        row(a={0: 10, 1: 40}),
        row(a={0: 5}),
    ]


def test_a_topic_that_is_gone_is_measured_as_deleted() -> None:
    stream = [row(a={0: 10}, b={0: 20}), row(b={0: 20})]
    gone = [m for m in StreamMeasurements(stream, FULL, 30) if m.topic == "a"][-1]
    assert (gone.count, gone.partitions, gone.at_ms) == (0, (), 30_000)
    assert again(stream, 30) == stream


def test_rates_are_bytes_per_second_of_the_capacity() -> None:
    (made,) = StreamMeasurements([row(a={3: 7})], FULL, 15)
    assert made.rates() == {TopicPartition("a", 3): BytesPerSecond(140_000)}
    assert (made.count, made.interval_s, made.partitions[0].window_s) == (4, 15, 15)


def test_another_capacity_gives_other_per_cents() -> None:
    made = StreamMeasurements([row(a={0: 50})], FULL, 30)
    assert list(recorded_rows(made, BytesPerSecond(500_000), 30)) == [row(a={0: 200})]


def test_longer_rows_have_the_latest_rates() -> None:
    made = StreamMeasurements([row(a={0: n}) for n in range(6)], FULL, 10)
    assert list(recorded_rows(made, FULL, 30)) == [row(a={0: 2}), row(a={0: 5})]


@pytest.mark.parametrize("rate", [1e308, 1.7e308])
def test_a_rate_that_no_number_can_hold_is_named(rate: float) -> None:
    made = StreamMeasurements([row(a={0: 1}), row(a={0: rate})], BytesPerSecond(1e6), 30)
    with pytest.raises(StreamError, match="row 1, a-0: too large"):
        list(made)


def test_a_recording_without_rates_is_refused() -> None:
    with pytest.raises(StreamError, match="holds no rate"):
        list(recorded_rows([], FULL, 30))
