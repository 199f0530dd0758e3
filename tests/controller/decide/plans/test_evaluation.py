import pytest
from tests.packing.packings import owners_of, p, rates_of

from binwright.controller.decide.plans.evaluation import Plan, Rejected, diff, evaluate
from binwright.protocol.model import BytesPerSecond

CAPACITY = BytesPerSecond(100)


def evaluated(
    rates: tuple[float, ...],
    current: tuple[int | None, ...],
    target: tuple[int | None, ...],
    *triggers: str,
) -> Plan | Rejected:
    return evaluate(rates_of(*rates), CAPACITY, owners_of(*current), owners_of(*target), triggers)


def test_a_difference_distinguishes_all_changes() -> None:
    changes = diff(owners_of(0, 0, 2, 3), owners_of(0, 1, None, 1, 4))

    assert changes.moves == {p(1): (0, 1), p(3): (3, 1)}
    assert changes.first_starts == {p(4): 4}
    assert changes.departures == {p(2): 2}
    assert changes.created == (1, 4)
    assert changes.retired == (2, 3)


@pytest.mark.parametrize("triggers", [(), ("an operator asked",)])
def test_a_target_that_changes_nothing_is_rejected(triggers: tuple[str, ...]) -> None:
    """A partition too fast for any consumer triggers a plan forever; it must not loop."""
    assert evaluated((150, 20), (0, 1), (0, 1), *triggers) == Rejected("nothing would change")


def test_a_triggered_plan_is_accepted_whatever_it_costs() -> None:
    plan = evaluated((60, 60), (0, 0), (0, 1), "consumer 0 carries 120 bytes/s, its limit is 110")

    assert isinstance(plan, Plan)
    assert plan.moves == {p(1): (0, 1)}
    assert (plan.created, plan.retired) == ((1,), ())
    assert plan.target == owners_of(0, 1)
    assert plan.rscore == pytest.approx(0.6)
    assert plan.reasons == (
        "consumer 0 carries 120 bytes/s, its limit is 110",
        "1 consumer -> 2; moves 1 of 2 partitions, 50.0% of the bytes",
    )


def test_a_plan_that_saves_enough_is_accepted() -> None:
    """A quarter of the consumers pays for half of the bytes: exactly what moves here."""
    plan = evaluated((25, 25, 50, 0), (0, 1, 2, 3), (3, 3, 2, 3))
    at_bound = evaluated((25, 25, 25, 25), (0, 1, 2, 3), (0, 2, 3, 3))

    assert isinstance(plan, Plan)
    assert isinstance(at_bound, Plan)
    assert at_bound.retired == (1,)
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
    assert plan.first_starts == {p(1): 1}
    assert plan.rscore == 0
    assert plan.reasons[0] == "1 partition without a reader"


def test_stopping_gone_partitions_moves_no_bytes() -> None:
    plan = evaluated((60,), (0, 0, 1), (0,))

    assert isinstance(plan, Plan)
    assert plan.departures == {p(1): 0, p(2): 1}
    assert plan.retired == (1,)
    assert plan.reasons == ("2 consumers -> 1; moves 0 of 1 partition, 0.0% of the bytes",)


def test_an_empty_target_is_a_plan() -> None:
    plan = evaluated((), (0, 1), ())

    assert isinstance(plan, Plan)
    assert plan.reasons == ("2 consumers -> 0; moves 0 of 0 partitions, 0.0% of the bytes",)
