"""A compact stream is the stream."""

import tracemalloc

from hypothesis import given
from tests.recordings.stream_files.drawn import STREAMS

from binwright.protocol.model import TopicPartition
from binwright.recordings.generated import Walk, generate
from binwright.recordings.stream_files.compact import CompactStream
from binwright.recordings.stream_files.json_rows import PerCent, Row, lines


@given(STREAMS)
def test_a_compact_stream_has_the_same_rows(stream: list[Row]) -> None:
    compact = CompactStream(stream)
    assert list(compact) == stream
    assert len(compact) == len(stream)
    assert compact[-1] == stream[-1]
    assert compact[1:] == stream[1:]
    assert compact.partitions == sorted({p for row in stream for p in row})
    assert "".join(lines(compact)) == "".join(lines(stream))


def test_whole_numbers_beyond_64_bits_are_rates_too() -> None:
    row = {TopicPartition("a", 0): PerCent(2**70)}
    assert list(CompactStream([row])) == [row]


def test_a_rate_takes_eight_bytes_and_little_more() -> None:
    """Dictionaries of the same rows take some forty."""
    walk = Walk(topics=("a", "b"), partitions=500, rows=200, delta=5, seed=1)
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        compact = CompactStream(generate(walk))
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(compact) == 200
    assert after - before < 12 * 1_000 * 200
