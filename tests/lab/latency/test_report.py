"""How far the figures on latency are from the published ones, in words."""

from dataclasses import replace

from matplotlib.figure import Figure

from binwright.lab.latency import published
from binwright.lab.latency.experiments import LatencyOutcome
from binwright.lab.latency.report import ANOTHER, NONE, published_comparisons
from binwright.lab.report.contents import Chart, ReportTable

CHARTS = [
    Chart(name=f"latency-figure-{number}", caption="", figure=Figure()) for number in range(5, 9)
]
TABLES = [ReportTable(name="latency-kafka", title="", columns=(), rows=())]


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
        all_s={},
        max_s=known["max_s"] or 0.0,
        samples=None,
    )


KD_27 = as_published("kd_27")
MWF = replace(
    KD_27, algorithm="mwf", consumers=15.1, above_zero_s={90: 4.516}, max_s=5.0, above_zero=80_000
)


def differences(*outcomes: LatencyOutcome, recorded: bool = True) -> dict[str, str]:
    found = published_comparisons(outcomes, TABLES, CHARTS, recorded=recorded)
    return {one.of: one.difference for one in found}


def test_equal_values_differ_by_nothing() -> None:
    found = differences(KD_27)

    assert found["Figure 5"] == "kd_27's longest 37.661 s, +0.000 s."
    assert found["Figure 7"].startswith("Largest of kd_n +0.00 points of all samples (kd_27).")
    assert found["Figure 8"] == "Largest of kd_n +0.000 s (kd_27, p50)."


def test_the_largest_difference_is_named_with_its_sign() -> None:
    late = replace(KD_27, above_zero_s={**KD_27.above_zero_s, 99: 27.556}, max_s=30.0)
    found = differences(as_published("kd_15"), late)

    assert found["Figure 8"] == "Largest of kd_n -10.000 s (kd_27, p99)."
    assert found["Figure 5"] == "kd_27's longest 30.000 s, -7.661 s."


def test_mwf_stands_beside_its_published_range() -> None:
    found = differences(MWF)

    assert found["Figure 6"].startswith("mwf 15.10, published 14.9 to 15.24. ")
    assert found["Figure 8"].startswith("mwf's p90 4.516 s, published 4.52 s. ")


def test_differences_of_another_stream_are_marked() -> None:
    assert all(text.startswith(ANOTHER) for text in differences(KD_27, recorded=False).values())


def test_packings_that_were_not_published_have_no_difference() -> None:
    sticky = replace(KD_27, algorithm="sticky")

    assert differences(sticky)["Figure 5"] == NONE


def test_figures_that_were_not_drawn_are_not_compared() -> None:
    found = published_comparisons([KD_27], TABLES, CHARTS[1:], recorded=True)

    assert [one.of for one in found] == ["Figure 6", "Figure 7", "Figure 8"]
    assert found[0].ours == ("latency-figure-6", "latency-kafka")
