"""Streams of any shape, for property tests."""

from hypothesis import strategies as st

from binwright.protocol.model import TopicPartition
from binwright.streams.streams import PerCent

PARTITIONS = st.builds(TopicPartition, st.sampled_from(["a", "b.c", "d-1"]), st.integers(0, 6))
ROWS = st.dictionaries(
    PARTITIONS,
    (st.integers(0, 10**6) | st.floats(0, 1e9)).map(PerCent),
    min_size=1,
    max_size=6,
)
STREAMS = st.lists(ROWS, min_size=1, max_size=6)
"""Partitions come and go; rates are whole or fractions, also above 100."""
