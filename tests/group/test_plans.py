"""What becomes of a packing: a plan that is worth its moves, or the reason of its rejection."""

from dataclasses import replace

import pytest
from tests.builders import group, owned
from tests.controller.decide.driver import (
    CONFIG,
    A,
    B,
    ControllerDriver,
    P,
    Q,
    leading,
    sent_commands,
)
from tests.packing.packings import owners_of, p, rates_of

from binwright.controller.decide.events import Reconcile
from binwright.group.plans import Plan, Rejected, difference, evaluate
from binwright.protocol.commands import StartReading
from binwright.protocol.model import BytesPerSecond, PerSlot, Slot


def evaluated(
    rates: tuple[float, ...],
    current: tuple[int | None, ...],
    target: tuple[int | None, ...],
    *triggers: str,
) -> Plan | Rejected:
    owners = {partition: owned(slot, 1) for partition, slot in owners_of(*current).items()}
    known = group({}, owners, rates=rates_of(*rates))
    return evaluate(known, owners_of(*target), triggers)


def test_a_difference_distinguishes_all_changes() -> None:
    changes = difference(owners_of(0, 0, 2, 3), owners_of(0, 1, None, 1, 4))

    assert changes.moves == {p(1): (0, 1), p(3): (3, 1)}
    assert changes.first_starts == {p(4): 4}
    assert changes.departures == {p(2): 2}


@pytest.mark.parametrize("triggers", [(), ("an operator asked",)])
def test_a_target_that_changes_nothing_is_rejected(triggers: tuple[str, ...]) -> None:
    """A partition too fast for any consumer triggers a plan forever; it must not loop."""
    assert evaluated((150, 20), (0, 1), (0, 1), *triggers) == Rejected("nothing would change")


def test_a_triggered_plan_is_accepted_whatever_it_costs() -> None:
    plan = evaluated((60, 60), (0, 0), (0, 1), "consumer 0 carries 109.1% of its limit")

    assert isinstance(plan, Plan)
    assert plan.changes.moves == {p(1): (0, 1)}
    assert plan.target == owners_of(0, 1)
    assert plan.rscore == pytest.approx(0.6)
    assert plan.reasons == (
        "consumer 0 carries 109.1% of its limit",
        "1 consumer -> 2; moves 1 of 2 partitions, 50.0% of the bytes",
    )


def test_a_plan_that_saves_enough_is_accepted() -> None:
    """A quarter of the consumers pays for half of the bytes: exactly what moves here."""
    plan = evaluated((25, 25, 50, 0), (0, 1, 2, 3), (3, 3, 2, 3))
    at_bound = evaluated((25, 25, 25, 25), (0, 1, 2, 3), (0, 2, 3, 3))

    assert isinstance(plan, Plan)
    assert isinstance(at_bound, Plan)
    assert set(at_bound.target.values()) == {0, 2, 3}
    assert at_bound.reasons == ("4 consumers -> 3; moves 2 of 4 partitions, 50.0% of the bytes",)


def test_a_plan_that_moves_too_much_is_rejected() -> None:
    assert evaluated((25, 25, 26, 24), (0, 1, 2, 3), (0, 2, 3, 3)) == Rejected(
        "4 consumers -> 3; moves 2 of 4 partitions, 51.0% of the bytes; "
        "saving 25.0% of the consumers pays for 50.0% at most"
    )


@pytest.mark.parametrize("rate", [0, 20])
def test_moves_that_save_no_consumer_are_rejected(rate: float) -> None:
    """Not even moves of partitions without load: a move pauses its reader."""
    rejected = evaluated((rate, 0), (0, 1), (1, 0))

    assert isinstance(rejected, Rejected)
    assert rejected.reason.startswith("2 consumers; moves 2 of 2 partitions")
    assert rejected.reason.endswith("; saves no consumer")


def test_a_plan_that_adds_consumers_must_be_triggered() -> None:
    assert isinstance(evaluated((20, 20), (0, 0), (0, 1)), Rejected)


def test_a_partition_without_a_reader_triggers_a_plan() -> None:
    plan = evaluated((60, 60), (0, None), (0, 1))

    assert isinstance(plan, Plan)
    assert plan.changes.first_starts == {p(1): 1}
    assert plan.rscore == 0
    assert plan.reasons[0] == "1 partition without a reader"


def test_stopping_gone_partitions_moves_no_bytes() -> None:
    plan = evaluated((60,), (0, 0, 1), (0,))

    assert isinstance(plan, Plan)
    assert plan.changes.departures == {p(1): 0, p(2): 1}
    assert plan.reasons == ("2 consumers -> 1; nothing moves",)


def test_an_empty_target_is_a_plan() -> None:
    plan = evaluated((), (0, 1), ())

    assert isinstance(plan, Plan)
    assert plan.reasons == ("2 consumers -> 0; nothing moves",)


C = Slot(2)
RATES = {P: 90.0, Q: 90.0}


def half_assigned() -> ControllerDriver:
    """Return a leader where A reads P, C has restarted, and Q has no reader."""
    driver = ControllerDriver()
    for slot in (A, C):
        driver.hello(slot)
    driver.claim()
    driver.report(A, reading=[P])
    driver.report(C)
    driver.measure(dict(RATES))
    return driver


def test_a_restarted_consumer_gets_what_a_new_one_would() -> None:
    driver = half_assigned()
    actions = driver.pack({P: A, Q: B})
    (start,) = sent_commands(actions, StartReading)
    assert start.offsets.keys() == {Q}
    assert Reconcile(frozenset({A, C})) in actions


def test_ready_consumers_are_reused_first() -> None:
    driver = leading(RATES, B)
    driver.hello(A)
    assert Reconcile(frozenset({B})) in driver.pack({P: C, Q: C})


def test_a_draining_consumer_is_not_reused() -> None:
    driver = half_assigned()
    driver.report(C, leaving=True)
    assert Reconcile(frozenset({A, B})) in driver.pack({P: A, Q: B})


def test_a_consumer_with_a_lower_limit_is_not_reused() -> None:
    driver = half_assigned()
    config = replace(CONFIG, limits=PerSlot(CONFIG.limits.default, {C: BytesPerSecond(60.0)}))
    driver.state = replace(driver.state, group=replace(driver.group, config=config))
    assert Reconcile(frozenset({A, B})) in driver.pack({P: A, Q: B})


def test_a_new_consumer_starts_when_none_is_idle() -> None:
    driver = leading(RATES, A)
    assert Reconcile(frozenset({A, B})) in driver.pack({P: A, Q: B})
