"""The section has every figure and table that the publication measured."""

from dataclasses import replace

import numpy as np
import pytest

from binwright.lab.report.contents import ReportSection
from binwright.lab.report.publications import PUBLICATIONS, QUEUES
from binwright.lab.slo.cases import TableCase, skewed_table, tables_of
from binwright.lab.slo.report import section
from binwright.lab.slo.results import GRID_S, SloOutcome, Trace, collect, runs_of
from binwright.lab.slo.workloads import first, second, skewed


def outcome(*, is_traced: bool) -> SloOutcome:
    """Return what a run might have given: 98 % in time, 30 replica-minutes."""
    times = np.array([1.0, 2.0])
    return SloOutcome(
        records=2,
        sla=98.0,
        minutes=31.0,
        logged_minutes=30.0,
        ups=6,
        downs=6,
        longest_s=2.0,
        distribution=np.linspace(0, 100, len(GRID_S)),
        trace=Trace(times, times, np.array([0, 1])) if is_traced else None,
    )


def made(tables: list[TableCase]) -> ReportSection:
    """Return the section of tables without their runs."""
    seeded = [replace(one, seeds=1) for one in tables]
    return section(collect(seeded, [outcome(is_traced=one.is_traced) for one in runs_of(seeded)]))


@pytest.fixture(scope="module")
def everything() -> ReportSection:
    one, two = first(), second()
    skews = [skewed_table(skewed(one), 1), skewed_table(skewed(two), 2)]
    return made([*tables_of(one, 1), *tables_of(two, 2), *skews])


def test_every_measured_item_of_the_publication_is_compared(
    everything: ReportSection,
) -> None:
    wanted = [item.name for item in PUBLICATIONS[QUEUES].items if not item.why_not]

    assert [one.of for one in everything.comparisons] == wanted
    assert everything.publication == QUEUES


def test_comparisons_name_charts_and_tables_that_are_there(everything: ReportSection) -> None:
    there = {t.name for t in everything.tables} | {c.name for c in everything.charts}

    assert {name for one in everything.comparisons for name in one.ours} <= there


def test_differences_are_numbers(everything: ReportSection) -> None:
    found = {one.of: one.difference for one in everything.comparisons}

    assert found["Figure 2"] == "109,053 events, +0.0 %."
    assert found["Figure 3"] == "1,312,212 events, -2.8 %. The shape is a stand-in's."
    assert found["Figure 4"] == "Algorithm 2 (w1): 98.00 % in time, +0.60 points."
    assert found["Figure 10"].endswith(
        "Algorithm 1 (w1-rebalance-2s): 98.00 % in time, +12.60 points, a known gap."
    )
    assert found["Table 2"] == (
        "w1: SLA at most +3.3 (Linear) points; replica-minutes at most -38 (Overprovision) %."
    )


def test_what_was_not_run_is_not_compared() -> None:
    found = [one.of for one in made([skewed_table(skewed(first()), 1)]).comparisons]

    assert found == ["Figure 7"]
