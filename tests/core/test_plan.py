import pytest
from tests.core.packings import owners_of, p, rates_of

from binwright.core.model import BytesPerSecond
from binwright.core.plan import Plan, Rejected, diff, weigh

CAPACITY = BytesPerSecond(100)


def weighed(
    rates: tuple[float, ...],
    current: tuple[int | None, ...],
    target: tuple[int | None, ...],
    *forced_by: str,
) -> Plan | Rejected:
    return weigh(rates_of(*rates), CAPACITY, owners_of(*current), owners_of(*target), forced_by)


def test_a_difference_tells_everything_apart() -> None:
    changes = diff(owners_of(0, 0, 2, 3), owners_of(0, 1, None, 1, 4))

    assert changes.moves == {p(1): (0, 1), p(3): (3, 1)}
    assert changes.first_starts == {p(4): 4}
    assert changes.departures == {p(2): 2}
    assert changes.created == (1, 4)
    assert changes.retired == (2, 3)


@pytest.mark.parametrize("forced_by", [(), ("somebody asked",)])
def test_what_changes_nothing_is_no_plan(forced_by: tuple[str, ...]) -> None:
    """One partition too fast for any consumer forces a plan for ever; it must not spin."""
    assert weighed((150, 20), (0, 1), (0, 1), *forced_by) == Rejected("nothing would change")


def test_a_forced_plan_goes_through_though_it_costs() -> None:
    plan = weighed((60, 60), (0, 0), (0, 1), "consumer 0 carries 120 bytes/s, its limit is 110")

    assert isinstance(plan, Plan)
    assert plan.moves == {p(1): (0, 1)}
    assert (plan.created, plan.retired) == ((1,), ())
    assert plan.target == owners_of(0, 1)
    assert plan.rscore == pytest.approx(0.6)
    assert plan.reasons == (
        "consumer 0 carries 120 bytes/s, its limit is 110",
        "1 consumer -> 2; moves 1 of 2 partitions, 50.0% of the bytes",
    )


def test_a_plan_that_saves_enough_goes_through() -> None:
    """A quarter of the consumers pays for half of the bytes: exactly what moves here."""
    plan = weighed((25, 25, 50, 0), (0, 1, 2, 3), (3, 3, 2, 3))
    just = weighed((25, 25, 25, 25), (0, 1, 2, 3), (0, 2, 3, 3))

    assert isinstance(plan, Plan)
    assert isinstance(just, Plan)
    assert just.retired == (1,)
    assert just.reasons == ("4 consumers -> 3; moves 2 of 4 partitions, 50.0% of the bytes",)


def test_a_plan_that_disturbs_too_much_does_not() -> None:
    assert weighed((25, 25, 26, 24), (0, 1, 2, 3), (0, 2, 3, 3)) == Rejected(
        "4 consumers -> 3; moves 2 of 4 partitions, 51.0% of the bytes; "
        "saving 25.0% of the consumers pays for 50.0% at most"
    )


@pytest.mark.parametrize("rate", [0, 20])
def test_moves_that_save_nothing_are_not_made(rate: float) -> None:
    """Not even those of silent partitions: a move pauses its reader."""
    told = weighed((rate, 0), (0, 1), (1, 0))

    assert isinstance(told, Rejected)
    assert told.reason.startswith("2 consumers; moves 2 of 2 partitions")
    assert told.reason.endswith("; saves no consumer")


def test_a_plan_that_adds_consumers_must_be_forced() -> None:
    assert isinstance(weighed((20, 20), (0, 0), (0, 1)), Rejected)


def test_a_partition_without_a_reader_is_force_enough() -> None:
    plan = weighed((60, 60), (0, None), (0, 1))

    assert isinstance(plan, Plan)
    assert plan.first_starts == {p(1): 1}
    assert plan.rscore == 0
    assert plan.reasons[0] == "1 partition without a reader"


def test_letting_go_of_what_is_gone_disturbs_nobody() -> None:
    plan = weighed((60,), (0, 0, 1), (0,))

    assert isinstance(plan, Plan)
    assert plan.departures == {p(1): 0, p(2): 1}
    assert plan.retired == (1,)
    assert plan.reasons == ("2 consumers -> 1; moves 0 of 1 partition, 0.0% of the bytes",)


def test_reading_nothing_any_more_is_a_plan_too() -> None:
    plan = weighed((), (0, 1), ())

    assert isinstance(plan, Plan)
    assert plan.reasons == ("2 consumers -> 0; moves 0 of 0 partitions, 0.0% of the bytes",)
