"""Published latencies beside ours, and what the paper's text says of MWF."""

from dataclasses import replace

import pytest
from tests.lab.latency.golden import outcome

from binwright.lab.latency import published
from binwright.lab.latency.experiments import LatencyOutcome
from binwright.lab.latency.published import comparisons, headlines


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


def differences(*outcomes: LatencyOutcome) -> dict[str, float | None]:
    return {one.what: one.difference for one in comparisons(outcomes)}


def as_published(name: str) -> LatencyOutcome:
    """Return an outcome that is equal to what was published of kd_n."""
    known = published.KAFKA[name]
    return LatencyOutcome(
        algorithm=name,
        consumers=27,
        expected_rscore=0,
        total=published.TOTAL,
        above_zero=round(known["above_zero"] or 0),
        unread=0,
        above_zero_s={n: known[f"p{n}_above_zero_s"] or 0.0 for n in (50, 90, 99)},
        all_s={n: known[f"p{n}_all_s"] or 0.0 for n in (90, 99)},
        max_s=known["max_s"] or 0.0,
        samples=None,
    )


def test_equal_values_differ_by_nothing() -> None:
    found = comparisons([as_published("kd_27")])

    assert len(found) == 7
    assert {one.difference for one in found} == {0.0}
    assert {one.figure for one in found} == {"Figure 5", "Figure 7", "Figure 8", "Section VI-C"}


def test_the_difference_of_each_value_has_its_sign() -> None:
    kd_27 = as_published("kd_27")
    late = replace(kd_27, above_zero_s={**kd_27.above_zero_s, 99: 27.556}, max_s=30.0)
    found = differences(late)

    assert found["kd_27: p99 of samples > 0"] == pytest.approx(-10.0)
    assert found["kd_27: longest"] == pytest.approx(-7.661)


def test_mwf_stands_beside_its_published_range() -> None:
    found = differences(replace(MWF, consumers=15.1), BFD)

    assert found["mwf: consumers, mean"] == 0
    assert found["mwf: longest"] == 0
    assert found["bfd: p90 of samples > 0"] == 0
    assert differences(replace(MWF, consumers=15.5))["mwf: consumers, mean"] == pytest.approx(0.26)


def test_the_text_compares_mwf_with_as_many_consumers_and_with_more() -> None:
    _, same, more = headlines([MWF, BFD, *KAFKA])

    assert (same.published, same.ours) == (217.325, 217)
    assert (more.published, more.unit) == (60.0, "%")
    assert more.ours == pytest.approx(60.0)


@pytest.mark.parametrize("name", ["nf", "bfd", "mwf", "mbf", "mwfp", "mbfp"])
def test_the_percentile_does_not_separate_packings(name: str) -> None:
    """That is what the paper's 4.52 s rest on, on any stream that its rule draws."""
    assert outcome(name).above_zero_s[90] == pytest.approx(4.5, abs=0.03)
