"""Runs, their means, and how these compare with the paper."""

from dataclasses import replace

import numpy as np
import pytest

from binwright.lab.simulation.records.group import GroupSettings
from binwright.lab.slo.cases import TableCase, table_of_file, tables_of
from binwright.lab.slo.policies import PolicySetup, PolicySetups, settings_for
from binwright.lab.slo.published import PUBLISHED
from binwright.lab.slo.results import (
    GRID_S,
    PolicyResult,
    SloOutcome,
    collect,
    is_better,
    run,
    runs_of,
)
from binwright.lab.slo.workloads import even, first, second, skewed
from binwright.scaler.decide.policy import Fixed

SHORT = even("short", [40, 120, 200, 260, 200, 120] * 8)


def small_table(seeds: int = 2) -> TableCase:
    return replace(table_of_file(SHORT, GroupSettings()), seeds=seeds)


def outcome(sla: float = 99.0, minutes: float = 10.0, logged: float = 9.0) -> SloOutcome:
    return SloOutcome(
        records=10,
        sla=sla,
        minutes=minutes,
        logged_minutes=logged,
        ups=1,
        downs=1,
        longest_s=1.0,
        distribution=np.linspace(0, 100, len(GRID_S)),
        trace=None,
    )


def result(sla: float, minutes: float, *, policy: object = None) -> PolicyResult:
    setup = PolicySetup(
        name="p",
        policy=policy or PolicySetups(workload=SHORT, settings=GroupSettings()).linear().policy,  # type: ignore[arg-type]
        settings=GroupSettings(),
    )
    return PolicyResult(setup, [outcome(sla, minutes)])


def test_outcomes_return_to_their_tables_in_order() -> None:
    tables = [small_table(), replace(small_table(3), name="again")]
    outcomes = [outcome(sla=number) for number in range(len(runs_of(tables)))]
    found = collect(tables, outcomes)

    policies = len(tables[0].setups)
    assert [one.sla for one in found[0].results[1].outcomes] == [2, 3]
    assert found[1].results[0].outcomes[0].sla == 2 * policies
    assert found[0].by_name["Algorithm 2"] is found[0].results[2]


def test_the_first_run_alone_is_traced() -> None:
    runs = runs_of([small_table()])

    assert [one.is_traced for one in runs[:2]] == [True, False]
    assert run(runs[0]).trace is not None
    assert run(runs[1]).trace is None


def test_a_distribution_grows_to_all_records() -> None:
    found = run(runs_of([small_table()])[0])

    assert (np.diff(found.distribution) >= 0).all()
    assert found.distribution[-1] == pytest.approx(100)
    at_sla = found.distribution[np.searchsorted(GRID_S, 0.5, "right") - 1]
    assert at_sla == pytest.approx(found.sla, abs=1)


def test_means_are_over_runs() -> None:
    found = replace(result(99, 10), outcomes=[outcome(98, 10, 8), outcome(100, 12, 10)])

    assert (found.sla, found.sla_deviation) == (99, 1)
    assert (found.minutes, found.paper_minutes) == (11, 9)
    assert (found.ups, found.downs, found.longest_s) == (1, 1, 1)


def test_a_fixed_group_is_counted_whole_as_the_paper_does() -> None:
    assert result(100, 50, policy=Fixed(5)).paper_minutes == 50


@pytest.mark.parametrize(
    ("sla", "minutes", "better"), [(99.5, 9, True), (99.5, 11, False), (98.5, 9, False)]
)
def test_a_result_is_better_in_both_or_not_at_all(
    sla: float, minutes: float, *, better: bool
) -> None:
    assert is_better(result(sla, minutes), result(99, 10)) is better


def test_every_published_row_is_simulated_or_computed() -> None:
    tables = [*tables_of(first(), 1), *tables_of(second(), 2)]
    rows = {(table.name, one.name) for table in tables for one in table.setups}
    rows |= {(table.name, "Optimal") for table in tables if table.has_optimal}
    skews = {row for row in PUBLISHED if row[0].endswith("-skew")}

    assert PUBLISHED.keys() - skews <= rows


def test_overprovision_has_five_replicas_for_the_papers_peaks() -> None:
    """70 and 73.6 events of a partition, 90 of a replica."""
    for workload in (first(), second()):
        found = PolicySetups(workload=workload, settings=GroupSettings()).overprovision()
        assert found.policy == Fixed(5)
        assert found.settings.first_replicas == 5
    skew = PolicySetups(workload=skewed(first()), settings=GroupSettings()).overprovision()
    assert skew.settings.first_replicas == 5


def test_a_usual_rebalance_takes_50_ms_and_a_long_one_sleeps_on_top() -> None:
    usual, long = settings_for(0.05), settings_for(2.0)

    assert usual.callback_s + usual.sync_s == pytest.approx(0.05)
    assert long.callback_s == 2.0
