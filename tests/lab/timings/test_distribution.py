"""Percentiles of durations."""

import pytest

from binwright.lab.timings.distribution import Distribution


def test_a_quantile_is_a_sample_that_the_share_does_not_exceed() -> None:
    found = Distribution.of([4.0, 1.0, 3.0, 2.0])
    assert found is not None
    assert [found.quantile(share) for share in (0.0, 0.25, 0.5, 0.9, 1.0)] == [1, 1, 2, 4, 4]


def test_no_sample_is_no_distribution() -> None:
    assert Distribution.of([]) is None
    with pytest.raises(ValueError, match="needs a sample"):
        Distribution(())
