"""Groups are ranked by what scaling them saves at as many records in time."""

from collections.abc import Iterable
from dataclasses import replace

import pytest

from binwright.lab.shadow.capacity import Capacity
from binwright.lab.shadow.costs import LATE, LEAST, cheapest, cost_of, saves
from binwright.lab.shadow.past import GroupPast, NotComparable, read_pasts
from binwright.lab.shadow.ranking import (
    ASSIGNED,
    LAG,
    LAG_S,
    SCALED,
    Assumptions,
    Comparison,
    jobs_of,
    ranked,
)
from binwright.lab.simulation.outcome import CountSteps, Outcome
from binwright.lab.simulation.policies.catalogue import AS_IS
from binwright.lab.simulation.scenario import Timing
from binwright.protocol.orders import SimulatedCost
from binwright.runtime.settings.group import Settings

from .builders import busy, recorded_group, steady

ASSUMED = Assumptions(settings=Settings(), timing=Timing(), sla_s=30.0)
GIVEN = Capacity(1_000.0, "given")


def past_of(group: str = "orders", most: float = 3_000, members: int = 4) -> GroupPast:
    (past,) = read_pasts(list(recorded_group(group, busy(500, most), steady(members))), 30.0)
    assert isinstance(past, GroupPast)
    return past


def cost(rule: str, minutes: float, within: float = 1.0) -> SimulatedCost:
    return SimulatedCost(rule=rule, replica_minutes=minutes, within_sla=within)


def compared(past: GroupPast, *costs: SimulatedCost, assumed: Assumptions = ASSUMED) -> Comparison:
    return assumed.compare(past, GIVEN, [cost(AS_IS, 999.0, 0.99), *costs])


PAST = past_of()
OWN_MINUTES = 4 * 3_590 / 60


def test_a_group_that_is_sized_for_its_peak_is_simulated_under_each_rule() -> None:
    costs = ASSUMED.run(PAST, GIVEN)
    own, *rules = costs
    assert [one.rule for one in costs] == [AS_IS, *[LAG] * len(LAG_S), SCALED, ASSIGNED]
    assert [one.change for one in rules[:2]] == ["lagThreshold=1000", "lagThreshold=5000"]
    assert own.within_sla > 0.999
    assert own.replica_minutes == pytest.approx(OWN_MINUTES, rel=0.01)
    found = ASSUMED.compare(PAST, GIVEN, costs)
    assert found.best is not None
    assert 0.3 * OWN_MINUTES < found.best.replica_minutes < 0.7 * OWN_MINUTES


def test_the_members_that_were_recorded_are_what_a_group_costs_as_it_is() -> None:
    assert compared(PAST).own.replica_minutes == pytest.approx(OWN_MINUTES)


@pytest.mark.parametrize(
    ("costs", "target", "rule", "minutes"),
    [
        ([cost(LAG, 90, 0.99), cost(LAG, 80, 0.99), cost(LAG, 10, 0.9)], None, LAG, 80),
        ([cost(LAG, 80, 0.99 - LATE / 2)], None, LAG, 80),
        ([cost(LAG, 80, 0.98)], None, LAG, None),
        ([cost(SCALED, 80, 0.98)], 0.97, SCALED, 80),
        ([cost(SCALED, 80, 0.98)], 0.995, SCALED, None),
    ],
)
def test_a_rule_counts_if_it_reads_as_much_in_time(
    costs: list[SimulatedCost], target: float | None, rule: str, minutes: float | None
) -> None:
    found = compared(PAST, *costs, assumed=replace(ASSUMED, target=target)).rules[rule]
    assert (found and found.replica_minutes) == minutes


@pytest.mark.parametrize(
    ("costs", "saved"),
    [
        ([cost(SCALED, 100), cost(ASSIGNED, 90)], OWN_MINUTES - 90),
        ([cost(SCALED, 100)], OWN_MINUTES - 100),
        ([cost(ASSIGNED, 100), cost(LAG, 1)], OWN_MINUTES - 100),
        ([cost(SCALED, 1, 0.5)], 0.0),
        ([cost(SCALED, OWN_MINUTES * (1 - LEAST / 2))], 0.0),
        ([cost(SCALED, 900)], 0.0),
        ([], 0.0),
    ],
)
def test_what_is_saved_is_what_the_better_form_of_a_scaled_group_does(
    costs: list[SimulatedCost], saved: float
) -> None:
    assert compared(PAST, *costs).saved == pytest.approx(saved)


def test_groups_that_save_most_in_the_same_time_come_first() -> None:
    def one(group: str, minutes: float, hours: float = 1.0) -> Comparison:
        members = CountSteps((0.0,), (4,), hours * 3_590)
        past = replace(PAST, group=group, members=members)
        return compared(past, cost(SCALED, minutes))

    every = [one("b", 200), one("a", 200), one("long", 900, hours=4), one("most", 100)]
    assert [each.past.group for each in ranked(every)] == ["most", "a", "b", "long"]
    assert ranked([]) == []


def names(found: Iterable[NotComparable]) -> dict[str, str]:
    return {one.group: one.reason for one in found}


def test_groups_with_nothing_to_compare_are_named() -> None:
    idle = replace(PAST, group="idle", capacity=None)
    single = replace(PAST, group="single", members=CountSteps((0.0, 60.0), (0, 1), 3_590.0))
    away = NotComparable("away", "no member of it was seen")
    jobs, others = jobs_of([idle, away, PAST, single], ASSUMED)
    assert [(job.past.group, job.capacity.basis) for job in jobs] == [("orders", "seen")]
    assert names(others) == {
        "idle": "it has read nothing",
        "away": "no member of it was seen",
        "single": "it never had more than one member",
    }


def test_a_capacity_that_is_given_counts() -> None:
    assumed = replace(ASSUMED, capacities={"orders": 700.0})
    assert assumed.capacity(PAST) == Capacity(700.0, "given")
    assert assumed.capacity(replace(PAST, group="other")) == PAST.capacity
    assumed = replace(ASSUMED, capacities={"orders": 700.0, "": 50.0})
    assert assumed.capacity(replace(PAST, group="other", capacity=None)) == Capacity(50.0, "given")
    assert assumed.capacity(PAST) == Capacity(700.0, "given")


def test_a_threshold_that_is_in_use_is_the_one_that_is_simulated() -> None:
    assumed = replace(ASSUMED, thresholds={"orders": 250.0})
    assert assumed.policies(PAST, GIVEN) == [AS_IS, "lag:250", SCALED, ASSIGNED]


def test_a_job_simulates_one_group() -> None:
    (job,), _ = jobs_of([past_of(members=2)], ASSUMED)
    assert job.run()[0].rule == AS_IS


def test_a_cost_is_named_by_its_rule_and_what_was_changed() -> None:
    steps = CountSteps((0.0,), (2,), 60.0)

    def named(policy: str) -> tuple[str, str]:
        found = cost_of(Outcome(policy=policy, running=steps, ready=steps), 5.0)
        assert (found.replica_minutes, found.within_sla) == (2.0, 1.0)
        return found.rule, found.change

    assert named("lag:250") == ("lag", "lagThreshold=250")
    assert named("binwright packing=sticky:4") == ("binwright", "packing=sticky:4")
    assert named("peak") == ("peak", "")


def test_of_equal_shares_the_cheapest_counts() -> None:
    assert cheapest([], 0.0) is None
    assert saves(cost("a", 994), cost("b", 1_000))
    assert not saves(cost("a", 996), cost("b", 1_000))
