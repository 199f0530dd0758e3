"""A night becomes a line of the series, and the page shows what is there."""

from pathlib import Path

import pytest
from bench.nightly.__main__ import OPTIONS, printed
from bench.nightly.page import page
from bench.nightly.series import (
    RATIOS,
    ChaosRun,
    Night,
    append,
    chaos_run,
    ratios_of,
    read,
)

CHAOS = {
    "clean": True,
    "faults": [{}, {}],
    "longest_recovery_s": 4.5,
    "wrong": [],
    "failure": "",
}
SHARES = {
    "bounce_paused_s": 0.3,
    "bounce_longest_gap_s": 0.2,
    "growth_paused_s": None,  # the others did not pause
    "growth_longest_gap_s": 0.1,
}
LIVE = [{"cores": 0.5, "age p99, s": 4.0}, {"cores": 1.0, "age p99, s": 5.0}]
NAME = "cores of a live load, binwright / Structured Streaming"


def night(date: str, ratio: float | None, *runs: ChaosRun) -> Night:
    chaos = runs or (ChaosRun(1, "clean", 2, 4.5),)
    return Night(date, "0.1.0 (abc)", "2 cores", chaos, {NAME: ratio})


def test_facts_of_benches_become_ratios_of_both_sides_of_a_run() -> None:
    assert list(ratios_of("landing", {"live": LIVE}).values()) == [0.5, 0.8]
    assert list(ratios_of("handover", {"ours_to_best": SHARES}).values()) == [0.3, 0.2, None, 0.1]
    assert set(ratios_of("landing", None).values()) == {None}
    assert OPTIONS.keys() == RATIOS.keys()


def test_facts_of_chaos_become_a_run() -> None:
    assert chaos_run(7, CHAOS) == ChaosRun(7, "clean", 2, 4.5)
    lost = chaos_run(7, {**CHAOS, "clean": False, "wrong": ["orders-1: 2 missing"]})
    assert (lost.outcome, lost.wrong) == ("not clean", ("orders-1: 2 missing",))
    late = chaos_run(7, {**CHAOS, "clean": False, "wrong": None, "failure": "late"})
    assert late.wrong == ("late",)
    assert chaos_run(7, None) == ChaosRun(7, "broken off")


def test_a_series_is_read_as_it_was_written(tmp_path: Path) -> None:
    file = tmp_path / "deep" / "series.jsonl"
    nights = [night("2026-11-25", 0.5), night("2026-11-26", None, ChaosRun(3, "broken off"))]
    for each in nights:
        append(file, each)
    assert read(file) == nights
    file.write_text(file.read_text() + '{"date": "x"}\n')
    with pytest.raises(ValueError, match=r"series.jsonl:3: no night of a series"):
        read(file)


@pytest.mark.parametrize(
    ("ratio", "runs", "clean"),
    [
        (0.5, (), True),
        (None, (), False),
        (0.5, (ChaosRun(1, "clean"), ChaosRun(2, "not clean")), False),
        (0.5, (ChaosRun(1, "broken off"),), False),
    ],
)
def test_a_night_is_clean_if_all_of_it_is(
    ratio: float | None, runs: tuple[ChaosRun, ...], clean: bool
) -> None:
    assert night("2026-11-25", ratio, *runs).clean is clean


def test_a_night_without_a_run_of_chaos_is_not_clean() -> None:
    assert not Night("2026-11-25", "0.1.0", "2 cores", (), {}).clean


def test_the_page_has_each_ratio_with_gaps_and_each_fault_of_chaos() -> None:
    lost = ChaosRun(9, "not clean", 3, None, ("orders-1: 2 missing (<1>)",))
    nights = [night(f"2026-11-{n}", r) for n, r in ((20, 0.5), (21, 1.0), (22, None))]
    found = page([*nights, night("2026-11-23", 0.25, lost)])
    assert found.count("<polyline") == 2
    assert found.count("<circle") == 3
    assert "last night 0.25; from 0.25 to 1.00" in found
    assert "seed 9 not clean: orders-1: 2 missing (&lt;1&gt;)" in found
    assert found.index("2026-11-23") < found.index("2026-11-20"), "the newest is first"
    assert "no value yet" in page([night("2026-11-20", None)])


def test_a_program_without_json_is_a_failure(capfd: pytest.CaptureFixture[str]) -> None:
    assert printed(("bench.no_such",), 60.0) is None
    assert "nightly: bench.no_such failed" in capfd.readouterr().err
