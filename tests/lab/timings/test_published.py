"""The published values, as they are read."""

import pytest

from binwright.lab.timings.published import DELTA_2, DELTA_3, DELTA_4


def test_the_bins_of_figure_16_hold_every_observation() -> None:
    assert DELTA_3.observations == 273
    assert max(DELTA_3.quantiles) == 1.0
    shares = {seconds: share for share, seconds in DELTA_3.quantiles.items()}
    assert shares[50] == pytest.approx(0.879, abs=0.0005)


def test_a_quantile_of_bins_is_the_upper_end_of_its_bin() -> None:
    assert [DELTA_3.quantile(share) for share in (0.5, 0.8, 0.99, 1.0)] == [30, 50, 350, 510]


def test_other_quantiles_are_those_that_were_read() -> None:
    assert (DELTA_2.quantile(0.99), DELTA_4.quantile(0.5)) == (1.4, 5.15)
    assert DELTA_2.quantile(0.25) is None
