"""The simulator gives what the published experiments gave, within tolerance."""

from dataclasses import replace
from statistics import fmean

import pytest

from binwright.lab.slo.cases import skewed_table, tables_of
from binwright.lab.slo.policies import APART, DOWN, UP
from binwright.lab.slo.published import PUBLISHED, comparisons
from binwright.lab.slo.results import (
    RIVAL,
    RIVALS,
    TableResult,
    collect,
    is_better,
    run_all,
    runs_of,
)
from binwright.lab.slo.workloads import first, skewed
from binwright.scaler.decide.paper_algorithms import Algorithm1

SEEDS = 5
LEFT_OUT = frozenset({"KEDA, lag", "HPA, CPU", "binwright, default"})


@pytest.fixture(scope="module")
def results() -> list[TableResult]:
    """Return all tables on workload 1, as the command makes them but with fewer runs."""
    tables = [*tables_of(first(), 1), skewed_table(skewed(first()), 1)]
    shortened = [
        replace(
            table,
            seeds=SEEDS,
            setups=tuple(one for one in table.setups if one.name not in LEFT_OUT),
        )
        for table in tables
    ]
    return collect(shortened, run_all(runs_of(shortened), 2, lambda _: None))


@pytest.mark.nightly
def test_every_row_on_workload_1_is_within_tolerance(results: list[TableResult]) -> None:
    found = comparisons(results)
    assert [one.what for one in found if one.within is False] == []
    errors = [abs(one.difference or 0.0) for one in found if one.unit == "%" and one.tolerance]
    assert fmean(errors) < 0.9


def test_the_algorithms_are_run_as_printed_beside_the_variant_without_a_third_branch(
    results: list[TableResult],
) -> None:
    setups = {one.setup.name: one.setup.policy for table in results for one in table.results}
    for number in (1, 2):
        printed, apart = (setups[f"Algorithm {number}{variant}"] for variant in ("", APART))
        assert isinstance(printed, Algorithm1)
        assert isinstance(apart, Algorithm1)
        assert (printed.reassigns, printed.cooldown_s) == (True, 0.0)
        assert (apart.reassigns, apart.cooldown_s) == (False, 10.0)


def test_the_algorithms_as_printed_are_nearer_to_the_published_rows(
    results: list[TableResult],
) -> None:
    def errors(variant: str) -> list[float]:
        return [
            abs(table.by_name[f"{policy}{variant}"].sla - published.sla)
            for table in results
            for (name, policy), published in PUBLISHED.items()
            if name == table.case.name and policy.startswith("Algorithm")
        ]

    assert fmean(errors("")) < 0.75 * fmean(errors(APART))


def test_scale_downs_of_algorithm_2_make_its_peaks(results: list[TableResult]) -> None:
    """With heartbeats of 3 s a partition of a replica that left waits up to that long."""
    by_name = {one.case.name: one.by_name[RIVAL] for one in results if RIVAL in one.by_name}

    assert 1.5 < by_name["w1"].longest_s < 3.5
    assert by_name["w1-heartbeat"].longest_s < 1.0


def test_skew_breaks_the_linear_autoscaler_by_kafkas_range_assignor(
    results: list[TableResult],
) -> None:
    by_name = {one.case.name: one for one in results}
    even, skew = by_name["w1"].by_name["Linear"], by_name["w1-skew"].by_name["Linear"]

    assert even.sla - skew.sla > 9
    assert skew.minutes == pytest.approx(even.minutes, rel=0.01)


def test_our_policy_is_better_in_both_on_every_table(results: list[TableResult]) -> None:
    verdicts = {
        (one.case.name, rival): is_better(one.by_name["binwright"], one.by_name[rival])
        for one in results
        for rival in RIVALS
        if "binwright" in one.by_name and one.case.name != "w1-rebalance-2s"
    }

    assert set(verdicts.values()) == {True}
    assert len(verdicts) == 8


def test_with_rebalances_of_2_s_our_policy_is_as_good_at_the_same_cost(
    results: list[TableResult],
) -> None:
    """An eager group that stands still for four times its SLA can hardly scale at all."""
    found = next(one for one in results if one.case.name == "w1-rebalance-2s").by_name
    ours, theirs = found["binwright"], found[RIVAL]

    assert ours.sla > theirs.sla - 0.1
    assert ours.minutes < theirs.minutes * 1.01
    assert found["binwright, incremental"].minutes < theirs.minutes * 0.9


def test_our_policy_leaves_no_peak_at_a_scale_down(results: list[TableResult]) -> None:
    found = next(one for one in results if one.case.name == "w1").by_name

    assert found["binwright"].longest_s < 0.7


def test_the_papers_factors_are_used() -> None:
    assert (UP, DOWN) == (0.9, 0.4)
