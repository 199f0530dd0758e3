"""A stream becomes a recording and a stream again."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.recordings.stream_files.drawn import ROWS, STREAMS

from binwright.protocol import wire
from binwright.protocol.errors import StreamError
from binwright.protocol.model import BytesPerSecond, TopicPartition
from binwright.recordings.stream_files import recorded
from binwright.recordings.stream_files.json_rows import PerCent, Row
from binwright.recordings.stream_files.recorded import StreamMeasurements

CAPACITY = BytesPerSecond(2_000_000)
LENGTHS = st.sampled_from([0.1, 1 / 3, 1.0, 7.5, 30.0, 3600.0])


def row(**rates: dict[int, float]) -> dict[TopicPartition, PerCent]:
    return {
        TopicPartition(topic, number): PerCent(rate)
        for topic, partitions in rates.items()
        for number, rate in partitions.items()
    }


def again(stream: Sequence[Row], row_s: float) -> list[Row]:
    """Return the stream that its measurements give, each written and read as a message."""
    made = StreamMeasurements(stream, CAPACITY, row_s)
    messages = (wire.decode_measurement(wire.encode(measurement)) for measurement in made)
    return list(recorded.rows(messages, CAPACITY, row_s))


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
    made = StreamMeasurements(stream, CAPACITY, row_s)
    assert all(measurement.interval_s == row_s for measurement in made)
    assert made.kept_rates == 0
    for left, right in zip(again(stream, row_s), stream, strict=True):
        assert left == pytest.approx(right, rel=1e-12)


def test_a_partition_missing_below_others_keeps_its_last_rate_and_is_counted() -> None:
    stream = [row(a={0: 10, 1: 20}), row(a={1: 30}), row(a={1: 40}), row(a={0: 5})]
    made = StreamMeasurements(stream, CAPACITY, 30)
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
    gone = [m for m in StreamMeasurements(stream, CAPACITY, 30) if m.topic == "a"][-1]
    assert (gone.count, gone.partitions, gone.at_ms) == (0, (), 30_000)
    assert again(stream, 30) == stream


def test_rates_are_bytes_per_second_of_the_capacity() -> None:
    (made,) = StreamMeasurements([row(a={3: 7})], CAPACITY, 15)
    assert made.rates() == {TopicPartition("a", 3): BytesPerSecond(140_000)}
    assert (made.count, made.interval_s, made.partitions[0].window_s) == (4, 15, 15)


def test_another_capacity_gives_other_per_cents() -> None:
    made = StreamMeasurements([row(a={0: 50})], CAPACITY, 30)
    assert list(recorded.rows(made, BytesPerSecond(500_000), 30)) == [row(a={0: 200})]


def test_longer_rows_have_the_latest_rates() -> None:
    made = StreamMeasurements([row(a={0: n}) for n in range(6)], CAPACITY, 10)
    assert list(recorded.rows(made, CAPACITY, 30)) == [row(a={0: 2}), row(a={0: 5})]


@pytest.mark.parametrize("rate", [1e308, 1.7e308])
def test_a_rate_that_no_number_can_hold_is_named(rate: float) -> None:
    made = StreamMeasurements([row(a={0: 1}), row(a={0: rate})], BytesPerSecond(1e6), 30)
    with pytest.raises(StreamError, match="row 1, a-0: too large"):
        list(made)


def test_a_recording_without_rates_is_refused() -> None:
    with pytest.raises(StreamError, match="holds no rate"):
        list(recorded.rows([], CAPACITY, 30))
