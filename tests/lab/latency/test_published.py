"""The paper's sentences, with what they rest on."""

from dataclasses import replace

import pytest
from tests.lab.latency.golden import outcome

from binwright.lab.latency.experiments import LatencyModel, LatencyOutcome
from binwright.lab.latency.published import Headline, headlines

MODEL = LatencyModel()


def made(name: str, consumers: float, above_zero: int, p90: float, p99: float) -> LatencyOutcome:
    return LatencyOutcome(
        algorithm=name,
        consumers=consumers,
        expected_rscore=0,
        total=1000,
        above_zero=above_zero,
        unread=0,
        above_zero_s={90: p90} if above_zero else {},
        all_s={99: p99},
        max_s=2 * p99,
        samples=None,
    )


MWF = made("mwf", 15, 20, 4.52, 2.5)
BFD = made("bfd", 14, 110, 4.5, 4.4)
KAFKA = [
    made("kd_15", 15, 250, 217, 365),
    made("kd_24", 24, 9, 2.7, 0),
    made("kd_26", 26, 177, 400, 438),
    made("kd_31", 31, 0, 0, 0),
]


def found(*outcomes: LatencyOutcome) -> list[Headline]:
    return headlines(outcomes, MODEL)


def test_without_mwf_there_is_no_headline() -> None:
    assert found(BFD, *KAFKA) == []


def test_the_percentile_rests_on_the_rebalance_time() -> None:
    (claim,) = found(MWF, BFD)

    assert (claim.published, claim.ours) == ("4.52 s", "4.520 s")
    assert "near 0.9 x 5 = 4.50 s whatever moves" in claim.rests_on
    assert "All 2 packings here have 4.500 (bfd) to 4.520 s (mwf)" in claim.rests_on
    assert "2.00 % with mwf, 11.00 % with bfd" in claim.rests_on


def test_a_packing_alone_is_compared_with_nothing() -> None:
    (claim,) = found(MWF)

    assert claim.rests_on.endswith("whatever moves.")


def test_kd_n_of_as_many_consumers_is_set_beside_mwf() -> None:
    _, claim, _ = found(MWF, BFD, *KAFKA)

    assert claim.published == "217.3 s (kd_15), 48.1 times MWF's"
    assert claim.ours == "217.000 s (kd_15), 48.0 times mwf's"
    assert "25.00 % of its samples are above 0, up to 730.0 s" in claim.rests_on


def test_more_consumers_rest_on_the_number_of_samples_above_zero() -> None:
    *_, claim = found(MWF, BFD, *KAFKA)

    assert claim.published == "+60 % at least (kd_24)"
    assert claim.ours == "+60.0 % (kd_24)"
    assert "20 with mwf; fewer have kd_24 and kd_31." in claim.rests_on
    assert "More consumers do not suffice: kd_26 have more again" in claim.rests_on
    assert "2.500 s with mwf, kd_24 and kd_31 are better, from +60.0 % on" in claim.rests_on


def test_kd_n_may_never_be_better() -> None:
    *_, claim = found(MWF, KAFKA[0])

    assert claim.ours == "no kd_n has fewer"
    assert claim.rests_on.endswith("no kd_n here has fewer.")


def test_a_group_that_nothing_is_late_in_has_no_percentile() -> None:
    none = replace(MWF, above_zero=0, above_zero_s={})

    assert found(none)[0].ours == "no sample above 0"
    assert found(none, KAFKA[0])[1].ours == "217.000 s (kd_15)"


@pytest.mark.parametrize("name", ["nf", "bfd", "mwf", "mbf", "mwfp", "mbfp"])
def test_the_percentile_does_not_separate_packings(name: str) -> None:
    """That is what the paper's 4.52 s rest on, on any stream that its rule draws."""
    assert outcome(name).above_zero_s[90] == pytest.approx(4.5, abs=0.03)
