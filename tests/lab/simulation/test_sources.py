"""Recordings as loads: what was measured, and what was written."""

from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import pytest

from binwright.lab.simulation.sources import (
    READ_S,
    Passes,
    Recorded,
    StreamSource,
    from_file,
    recorded,
)
from binwright.monitor.decide.estimator import TopicRates
from binwright.protocol import wire
from binwright.protocol.errors import StreamError
from binwright.protocol.metrics import Measurement, PartitionRate
from binwright.protocol.model import BytesPerSecond, TopicPartition
from binwright.protocol.ports.kafka import LogSample
from binwright.streams import recording, streams

P, Q = TopicPartition("orders", 0), TopicPartition("orders", 1)
BEGAN_MS = 1_700_000_000_000


def rate(number: int, bytes_per_s: float | None, **fields: float | None) -> PartitionRate:
    """Return a partition's rate over 30 s, of 100 records of 10 bytes; `fields` differ."""
    found = PartitionRate(
        partition=number,
        rate=None if bytes_per_s is None else BytesPerSecond(bytes_per_s),
        window_s=30.0,
        end=100,
        start=0,
        bytes_per_record=10.0,
        size=1_000,
        leader=1,
    )
    return found._replace(**fields)  # type: ignore[arg-type]


def measured(
    second: float, *rates: PartitionRate, topic: str = "orders", count: int = 2, monitor: str = "m"
) -> Measurement:
    return Measurement(
        topic=topic,
        at_ms=BEGAN_MS + round(second * 1000),
        monitor=monitor,
        number=round(second),
        interval_s=1.0,
        count=count,
        partitions=rates,
    )


def passes(loads: Mapping[int, int], seconds: int) -> Iterator[Measurement]:
    """Yield what a monitor publishes of partitions that are written at these bytes/s."""
    estimator = TopicRates(30.0)
    for second in range(seconds + 1):
        samples = {
            n: LogSample(leader=1, start=0, end=load * second, size=load * second)
            for n, load in loads.items()
        }
        yield measured(second, *estimator.feed(float(second), samples), count=len(loads))


def test_a_recording_gives_what_was_written_and_what_was_measured() -> None:
    found = recorded(passes({0: 50, 1: 20}, 60))
    load, published = found.load(10.0), found.published(30.0)

    assert load.partitions == (P, Q)
    assert load.edges == (-10.0, *(float(edge) for edge in range(0, 61, 10)))
    assert load.rows[1:] == [[50.0, 20.0]] * 6
    assert published is not None
    assert published.times[:2].tolist() == [READ_S, 1 + READ_S]
    assert published.rates[-1].tolist() == [50.0, 20.0]


def test_measurements_of_another_window_are_not_taken() -> None:
    found = recorded(passes({0: 50}, 60))

    assert found.window_s == 30.0
    assert found.published(10.0) is None


def test_where_a_size_falls_the_offsets_count() -> None:
    """Retention deleted 900 bytes, then compaction some; 10 and 2 records came meanwhile."""
    found = recorded(
        [
            measured(0, rate(0, 10.0)),
            measured(1, rate(0, 10.0, end=110, start=90, size=200)),
            measured(2, rate(0, 10.0, end=111, start=90, size=212)),
            measured(3, rate(0, 10.0, end=113, start=90, size=100)),
            measured(4, rate(0, 10.0, end=150, start=90, size=None, bytes_per_record=None)),
        ]
    )

    assert found.written.ravel().tolist() == [0.0, 100.0, 112.0, 132.0, 142.0]


def test_one_of_two_monitors_is_followed() -> None:
    found = recorded(
        [
            measured(0, rate(0, 10.0, size=0)),
            measured(0.5, rate(0, 99.0, size=50), monitor="other"),
            measured(1, rate(0, 20.0, size=20)),
        ]
    )

    assert found.times.tolist() == [0.0, 1.0]
    assert found.rates.ravel().tolist() == [10.0, 20.0]


def test_partitions_come_and_go() -> None:
    """The second partition appears at 1 s with 1,000 bytes in it, and is deleted at 3 s."""
    found = recorded(
        [
            measured(0, rate(0, 10.0), count=1),
            measured(1, rate(0, 10.0), rate(1, None)),
            measured(2, rate(0, 10.0), rate(1, 5.0, size=1_005)),
            measured(3, rate(0, 10.0), count=1),
        ]
    )

    assert found.written[:, 1].tolist() == [0.0, 0.0, 5.0, 5.0]
    assert found.rates[:, 1].tolist() == [0.0, 0.0, 5.0, 0.0]


def test_passes_that_follow_too_soon_are_left_out() -> None:
    found = recorded(passes({0: 50}, 60), every_s=20.0)

    assert found.times.tolist() == [0.0, 20.0, 40.0, 60.0]
    assert np.diff(found.written.ravel()).tolist() == [1_000.0] * 3


@pytest.mark.parametrize("found", [[], [measured(0, rate(0, 10.0))], [measured(0), measured(1)]])
def test_a_recording_without_rates_is_refused(found: list[Measurement]) -> None:
    with pytest.raises(StreamError, match="the recording holds no rate over any time"):
        recorded(found)


def test_a_file_is_a_recording_or_a_stream(tmp_path: Path) -> None:
    taken, stream = tmp_path / "load.jsonl", tmp_path / "stream.json"
    lines = [wire.encode(each) + b"\n" for each in passes({0: 50}, 40)]
    taken.write_bytes(recording.header_line(BytesPerSecond(100.0)) + b"".join(lines))
    streams.write(stream, [{P: streams.PerCent(50.0)}])
    capacity = BytesPerSecond(2_000.0)

    first, second = from_file(taken, capacity, None), from_file(stream, capacity, 5.0)
    assert isinstance(first, Recorded)
    assert first.load(0.0).rows == [[50.0]] * 4
    assert isinstance(second, StreamSource)
    assert (second.load(0.0).rows, second.load(0.0).edges) == ([[1_000.0]], (0.0, 5.0))
    assert second.published(30.0) is None


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (b'{"kind": "recording/1", "capacity_bytes_per_s": 1}\n', "no rate over any time"),
        (b'{"kind": "recording/1", "capacity_bytes_per_s": 1}\nx\n', "line 2"),
        (b"[", "not JSON"),
        (None, "No such file"),
    ],
)
def test_a_file_that_is_neither_is_refused(tmp_path: Path, text: bytes | None, fault: str) -> None:
    file = tmp_path / "load"
    if text is not None:
        file.write_bytes(text)

    with pytest.raises(StreamError, match=f"load: .*{fault}"):
        from_file(file, BytesPerSecond(1.0), None)


def test_a_recording_gives_what_was_written_in_records() -> None:
    collected = Passes(in_records=True)
    for second in range(3):
        row = rate(0, 500.0, end=100 + 40 * second, records_per_s=40.0, size=None)
        collected.add(measured(second, row, count=1))
    found = collected.finish()
    assert found.written[:, 0].tolist() == [0.0, 40.0, 80.0]
    assert found.rates[:, 0].tolist() == [40.0] * 3


@pytest.mark.parametrize("in_records", [False, True])
def test_a_partition_whose_end_was_not_known_at_first_was_not_written_from_zero(
    in_records: bool,
) -> None:
    collected = Passes(in_records=in_records)
    unknown = TopicRates(30.0).feed(0.0, {0: None})
    collected.add(measured(0, *unknown, count=1))
    for second in (1, 2):
        row = rate(0, 40.0, end=1_000 * second, records_per_s=4.0, size=10_000 * second)
        collected.add(measured(second, row, count=1))
    unit = 1 if in_records else 10
    assert collected.finish().written[:, 0].tolist() == [0.0, 0.0, 1_000.0 * unit]
