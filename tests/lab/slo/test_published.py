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


def test_every_measured_item_of_the_publication_is_shown_or_compared(
    everything: ReportSection,
) -> None:
    wanted = {item.name for item in PUBLICATIONS[QUEUES].items if not item.why_not}
    shown = {name for chart in everything.charts for name in chart.figures}
    shown |= {name for table in everything.tables for name in table.figures}
    compared = {one.figure for one in everything.comparisons}

    assert wanted <= shown | compared
    assert compared - wanted == {"Section 5.2"}  # of which there is no figure
    assert everything.publication == QUEUES


def test_a_value_is_expected_within_a_tolerance_but_of_known_gaps_and_variants(
    everything: ReportSection,
) -> None:
    found = {one.what: one for one in everything.comparisons}

    assert found["w1, Linear: in time"].within is False
    assert found["w1, Algorithm 2: in time"].within is True
    assert found["w1, Algorithm 2: replicas added"].within is True
    variant = found["w1, Algorithm 2, 10 s apart: in time"]
    assert (variant.remark, variant.within) == ("variant", None)
    gap = found["w1-rebalance-2s, Algorithm 1: in time"]
    assert (gap.remark, gap.within) == ("known gap", None)
