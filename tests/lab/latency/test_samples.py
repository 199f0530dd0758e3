"""Samples kept as lines answer as if every sample were written out."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from binwright.lab.latency.experiments import LatencyModel
from binwright.lab.latency.samples import LatencyLine, LatencySamples, SamplesBuilder

MODEL = LatencyModel()
# Of 32 bits: a load a rounding error beside the limit makes a line that is flat to within rounding.
LOADS = st.integers(0, 300) | st.floats(0, 300, width=32)
LINES = st.lists(
    st.tuples(LOADS, LOADS, st.integers(0, 40).map(lambda eighths: eighths / 8)).map(
        lambda drawn: list(MODEL.lines(*drawn))
    ),
    max_size=4,
).map(lambda queues: [line for queue in queues for line in queue])
SHARES = st.sampled_from([0.0, 0.01, 0.25, 0.5, 0.9, 0.99, 1.0]) | st.floats(0, 1)


def kept(lines: list[LatencyLine]) -> LatencySamples:
    builder = SamplesBuilder()
    for line in lines:
        builder.add(line)
    return builder.build()


def written_out(lines: list[LatencyLine]) -> NDArray[np.float64]:
    parts = [np.maximum(one.slope * np.arange(one.count) + one.first, 0) for one in lines]
    return np.concatenate([np.zeros(0), *parts])


@given(LINES, st.data())
def test_counts_are_those_of_the_samples(lines: list[LatencyLine], data: st.DataObject) -> None:
    samples, every = kept(lines), written_out(lines)
    edges = sorted(data.draw(st.lists(st.sampled_from([0.0, 4.9, *every.tolist()]), max_size=5)))

    assert samples.total == len(every)
    assert samples.above_zero == np.count_nonzero(every > 0)
    assert samples.max_s == every.max(initial=0)
    for edge in edges:
        assert samples.above(edge) == np.count_nonzero(every > edge)
    for (low, high), found in zip(pairwise(edges), samples.histogram(edges), strict=True):
        assert found == np.count_nonzero((every > low) & (every <= high))


@given(LINES, SHARES)
def test_quantiles_are_those_of_the_samples(lines: list[LatencyLine], share: float) -> None:
    samples, every = kept(lines), written_out(lines)
    late = every[every > 0]

    for found, among in (
        (samples.quantile(share), every),
        (samples.quantile(share, above_zero=True), late),
    ):
        if len(among):
            assert found == pytest.approx(np.quantile(among, share), rel=1e-12)
        else:
            assert found is None


def test_a_line_ends_at_its_last_sample_and_never_below_zero() -> None:
    assert LatencyLine(5, -0.5, 5).last == 3
    assert LatencyLine(5, -0.5, 50).last == 0
    assert LatencyLine(0, 0.5, 5).last == 2


def test_a_billion_samples_need_no_memory_of_their_own() -> None:
    samples = kept([LatencyLine(5, -5e-9, 10**9), LatencyLine(0, 0, 10**9)])

    assert samples.total == 2 * 10**9
    assert samples.above_zero == 10**9
    assert samples.quantile(0.5, above_zero=True) == pytest.approx(2.5)
    assert samples.quantile(0.25) == 0
