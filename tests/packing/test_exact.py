"""The integer program, compared with sticky and with cases solved by hand."""

from random import Random

from structlog.testing import capture_logs
from tests.packing.packings import owners_of, rates_of

from binwright.packing.exact import Exact, objective
from binwright.packing.inputs import Load
from binwright.packing.sticky.policy import Sticky
from binwright.protocol.model import BytesPerSecond, Slot, TopicPartition

CAPACITY = BytesPerSecond(100)


def test_it_finds_an_assignment_that_repair_alone_does_not() -> None:
    """Six of 34 and 32 in three consumers fit two, as 34 + 34 + 32 and 32 + 32 + 34."""
    rates, current = rates_of(34, 32, 34, 32, 34, 32), owners_of(0, 0, 1, 1, 2, 2)
    target = Exact(10.0)(Load(rates, CAPACITY, current, variance=0.0))

    assert len(set(target.values())) == 2
    assert sum(float(rates[q]) for q in rates if target[q] != current[q]) == 66


def test_nothing_moves_when_the_current_assignment_is_best() -> None:
    rates, current = rates_of(60, 30, 70), owners_of(3, 3, 1)

    assert Exact()(Load(rates, CAPACITY, current)) == current


def test_it_costs_at_most_what_sticky_costs_and_sticky_at_most_two_per_cent_more() -> None:
    random = Random(3)
    approximate = best = 0.0
    rates, current = (
        rates_of(*[random.randint(0, 100) for _ in range(12)]),
        dict[TopicPartition, Slot](),
    )
    for _ in range(8):
        rates = {
            q: BytesPerSecond(min(100, max(0, r + random.randint(-15, 15))))
            for q, r in rates.items()
        }
        load = Load(rates, CAPACITY, current, variance=75.0)
        near, exact, costs = Sticky()(load), Exact()(load), Sticky().costs(load)
        loads = [sum(rates[q] for q in exact if exact[q] == s) for s in set(exact.values())]
        assert max(loads) <= 100
        approximate += objective(load, near, costs)
        best += objective(load, exact, costs)
        current = near
    assert best <= approximate <= 1.02 * best


def test_partitions_alone_above_capacity_or_without_a_load_are_left_to_sticky() -> None:
    rates, current = rates_of(150, 0, 60, 40, 0), owners_of(0, 0, 1, 2, 2)
    target = Exact()(Load(rates, CAPACITY, current, variance=0.0))

    assert target == owners_of(0, 1, 1, 1, 1)
    assert Exact()(Load(rates_of(0, 0), CAPACITY, owners_of(2, 2))) == owners_of(2, 2)


def test_a_fallback_to_sticky_is_logged_with_its_reason() -> None:
    many = rates_of(*[50] * 65)
    with capture_logs() as logs:
        assert Exact()(Load(many, CAPACITY, {})) == Sticky()(Load(many, CAPACITY, {}))
    assert logs[0]["event"] == "packing.approximated"
    assert logs[0]["reason"] == "more than 64 partitions"

    hard = rates_of(*[20 + 7 * n % 31 for n in range(60)])
    with capture_logs() as logs:
        assert Exact(limit_s=1e-3)(Load(hard, CAPACITY, {})) == Sticky()(Load(hard, CAPACITY, {}))
    assert logs[0]["reason"] == "no proof within 0.001 s"


def test_an_assignment_that_is_better_only_by_the_error_of_the_tangents_is_not_taken() -> None:
    rates, current = rates_of(23, 17, 3, 9, 45, 45), owners_of(2, 2, 2, 3, 1, 0)
    load = Load(rates, CAPACITY, current, variance=25.0)
    assert Exact(1.0)(load) == Sticky(1.0)(load)
