"""Two policies are compared in replica-minutes at the same share of records in time."""

from dataclasses import replace

import numpy as np
import pytest

from binwright.lab.slo.bounds import least_minutes, minutes_at
from binwright.lab.slo.cases import frontier_table
from binwright.lab.slo.report import equal_sla
from binwright.lab.slo.results import (
    GRID_S,
    SloOutcome,
    TableResult,
    Trace,
    collect,
    run_all,
    runs_of,
)
from binwright.lab.slo.workloads import even, first

POINTS = [(99.0, 40.0), (95.0, 30.0), (94.0, 35.0), (80.0, 20.0)]


@pytest.mark.parametrize(
    ("sla", "minutes"),
    [(99.0, 40.0), (97.0, 35.0), (95.0, 30.0), (90.0, 26.666666), (70.0, 20.0), (99.1, None)],
)
def test_minutes_lie_on_a_line_between_the_best_settings(sla: float, minutes: float | None) -> None:
    """The setting with 94 % is beaten in both by that with 95 %."""
    assert minutes_at(sla, POINTS) == (minutes and pytest.approx(minutes))


def test_no_policy_has_all_in_time_for_less_than_each_seconds_replicas() -> None:
    """Of 100 records in time a replica: 90 need one, 150 two, 210 in five parts three."""
    workload = even("known", [90] * 60 + [150] * 60 + [210] * 60)

    assert least_minutes(workload, 100, 100) == pytest.approx(1 + 2 + 3, rel=0.01)


def test_a_share_that_may_be_late_is_taken_where_it_spares_the_most() -> None:
    """Without the 10 late of 210 in each of those seconds two replicas do, as 80 and 120."""
    workload = even("known", [90] * 60 + [150] * 60 + [210] * 60)

    assert least_minutes(workload, 100, 90) < least_minutes(workload, 100, 100) - 1


def outcome(sla: float, minutes: float) -> SloOutcome:
    """Return what a run might have given."""
    return SloOutcome(
        records=2,
        sla=sla,
        minutes=minutes,
        logged_minutes=minutes,
        ups=0,
        downs=0,
        longest_s=1.0,
        distribution=np.linspace(0, 100, len(GRID_S)),
        trace=Trace(np.array([1.0]), np.array([1.0]), np.array([0])),
    )


def made(scaler: list[tuple[float, float]], rule: list[tuple[float, float]]) -> list[TableResult]:
    table = replace(frontier_table(first(), 1), seeds=1)
    assert len(table.setups) == len(scaler) + len(rule)
    return collect([table], [outcome(*one) for one in [*scaler, *rule]])


SCALER = [(99.9, 32.0), (99.0, 30.0), (95.0, 24.0), (90.0, 20.0), (85.0, 19.0)]


def test_the_settings_at_which_the_scaler_needs_too_much_are_marked() -> None:
    rule = [(99.0, 50.0), (97.0, 40.0), (95.0, 30.0), (90.0, 22.0), (80.0, 20.0)]
    table = equal_sla(made(SCALER, rule))
    assert table is not None

    assert [row[5] for row in table.rows] == [None, 0.6, 0.8, 0.909, 0.905, 0.909]
    assert [row[1] for row in table.rows][-2:] == ["scaled group, 65%", "KEDA, lag 90"]
    assert [row[6] for row in table.rows] == [None, "yes", "yes", "no", "no", "no"]
    assert table.rows[-1][8] == 0.898


def test_the_scaler_needs_fewer_minutes_than_the_lag_rule_on_workload_1() -> None:
    """At the same share of records in time, where most of them are to be."""
    tables = [replace(frontier_table(first(), 1), seeds=3)]
    table = equal_sla(collect(tables, run_all(runs_of(tables), 2, lambda _: None)))

    assert table is not None
    rows = {str(row[1]): row for row in table.rows}
    for name in ("scaled group, 95%", "scaled group, 85%"):
        ratio = rows[name][5]
        assert ratio is None or float(str(ratio)) <= 0.85
    assert float(str(rows["scaled group, 100%"][2])) > 99
