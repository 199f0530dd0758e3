"""The sample that `binwright table verify` compares."""

import random

from hypothesis import given
from hypothesis import strategies as st

from binwright.consumer.verify import RUNS, sample

BOUNDS = st.dictionaries(
    st.integers(0, 9),
    st.tuples(st.integers(0, 1_000), st.integers(0, 5_000)).map(lambda p: (p[0], sum(p))),
    min_size=1,
)


@given(BOUNDS, st.integers(1, 5_000), st.integers())
def test_each_partition_has_its_share_and_no_offset_twice(
    bounds: dict[int, tuple[int, int]], wanted: int, seed: int
) -> None:
    share = max(wanted // len(bounds), 1)
    for partition, runs in sample(bounds, wanted, random.Random(seed)).items():
        start, end = bounds[partition]
        offsets = [n for run in runs for n in range(run.first, run.last + 1)]
        assert offsets == sorted({*offsets})
        assert all(start <= n < end for n in offsets)
        count = min(share, RUNS)
        assert len(offsets) == min(share // count * count, end - start) or end - start <= share


def test_another_run_draws_other_records() -> None:
    drawn = {str(sample({0: (0, 10**6)}, 100, random.Random(seed))) for seed in range(20)}
    assert len(drawn) == 20
