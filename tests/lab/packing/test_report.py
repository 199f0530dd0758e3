"""The paper's recorded values, and the section that sets ours beside them."""

import csv
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from binwright.cli.main import app
from binwright.lab.packing import published
from binwright.lab.packing.experiments import PackingScore
from binwright.lab.packing.published import DELTAS, OF_FOUR_STARTS, RECORDED
from binwright.lab.packing.report import paper_section
from binwright.lab.report.contents import ReportSection
from binwright.packing.catalogue import PAPER
from binwright.packing.score import pareto_front

Scores = dict[tuple[int, str], PackingScore]


def recorded_scores(suffix: str = "", cbs: float = 0.0) -> Scores:
    """Return what the paper recorded as if it were computed here, CBS increased."""
    points = {delta: published.recorded_points(delta, suffix) for delta in DELTAS}
    return {
        (delta, name): PackingScore(
            points[delta][name][0] + cbs, points[delta][name][0] + cbs, moved, 0.0
        )
        for delta in DELTAS
        for name, (_, moved) in points[delta].items()
    }


@pytest.fixture(scope="module")
def section() -> ReportSection:
    return paper_section(recorded_scores(), recorded_scores(OF_FOUR_STARTS, cbs=0.01), 3, 501)


def test_the_recorded_values_are_of_twelve_algorithms_at_six_deltas() -> None:
    starts = (f"{field}{OF_FOUR_STARTS}" for field in ("cbs", "expected_rscore"))
    for field in ("cbs", "expected_rscore", "moves", *starts):
        assert list(RECORDED[field]) == list(PAPER)
        assert [set(found) for found in RECORDED[field].values()] == [set(map(str, DELTAS))] * 12


@pytest.mark.parametrize(
    ("delta", "front"),
    [
        (5, ["bfd", "ffd", "mbfp", "mbf", "mwf"]),
        (10, ["bfd", "ffd", "wfd", "mbfp", "mbf", "mwf"]),
        (15, ["bfd", "ffd", "wfd", "mbfp", "mbf", "mwf"]),
        (20, ["bfd", "ffd", "mbfp", "mbf", "mwf"]),
        (25, ["bfd", "ffd", "wfd", "mbfp", "mbf", "mwfp", "mwf"]),
    ],
)
def test_the_recorded_means_of_four_starts_have_the_fronts_of_figure_12(
    delta: int, front: list[str]
) -> None:
    assert pareto_front(published.recorded_points(delta, OF_FOUR_STARTS)) == front


@pytest.mark.parametrize(("delta", "change", "cbs"), [(25, -0.2398, 0.0881), (5, -0.5524, 0.1181)])
def test_the_recorded_values_make_the_headline_ratios(
    delta: int, change: float, cbs: float
) -> None:
    found = published.saving(published.recorded_points(delta))

    assert found is not None
    assert found.rival == "nfd"
    assert found.rscore_change == pytest.approx(change, abs=5e-5)
    assert found.cbs == pytest.approx(cbs, abs=5e-5)


def test_the_headlines_show_ours_beside_the_recorded() -> None:
    found = published.headlines(recorded_scores())

    recorded = [one.published for one in found]
    assert recorded == pytest.approx([-23.98, 8.81, -55.24, 11.81], abs=5e-3)
    assert {one.difference for one in found} == {0.0}


def test_every_recorded_value_is_compared(section: ReportSection) -> None:
    figures = (*(f"Figure {n}" for n in range(9, 13)), published.TEXT)
    of: dict[str, list[float | None]] = {figure: [] for figure in figures}
    for one in section.comparisons:
        of[one.figure].append(one.difference)

    deltas = len(DELTAS)
    assert [len(gaps) for gaps in of.values()] == [
        *(8 * deltas, 4 * deltas, 12 * deltas, 2 * 12 * deltas, 12 * deltas + 4)
    ]
    assert of["Figure 9"] == pytest.approx([0.0] * 8 * deltas)
    assert of["Figure 12"][: 12 * deltas] == pytest.approx([1.0] * 12 * deltas)  # CBS: a point more


def test_the_command_prints_the_headlines_and_writes_the_report(tmp_path: Path) -> None:
    arguments = ["lab", "paper", "--rows", "1", "--jobs", "2", "--output", str(tmp_path), "--json"]
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    text = (tmp_path / "report.md").read_text()

    assert found["published"][0]["figure"] == "Figure 9"
    assert len(found["scores"]) == len(found["starts"]) == 6 * 16
    assert json.loads((tmp_path / "fronts.json").read_text()) == found["starts"]
    assert "| mwf | " in text
    assert "| Figure 10 | mwf, delta 5: CBS | % | 11.8" in text
    for number in (9, 10, 11, 12):
        assert f"(paper-figure-{number}.png)" in text
        assert (tmp_path / f"paper-figure-{number}.png").exists()
        assert (tmp_path / f"paper-figure-{number}.svg").exists()
    with (tmp_path / "scores.csv").open() as file:
        assert len(list(csv.DictReader(file))) == 6 * 16

    even, fronts = (_consumers_of_bfd(tmp_path / name) for name in ("scores.json", "fronts.json"))
    assert fronts == pytest.approx((even + 1 + 100 + 200) / 4)  # all rates 0, 50, 100 per cent


def _consumers_of_bfd(file: Path) -> float:
    found = {(one["delta"], one["algorithm"]): one for one in json.loads(file.read_text())}
    return float(found[0, "bfd"]["consumers"])
