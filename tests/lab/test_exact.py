"""The integer program, against sticky and against what anybody can see."""

from random import Random

import pytest
from structlog.testing import capture_logs
from tests.core.packings import owners_of, rates_of

from binwright.core.errors import PackingError
from binwright.core.model import BytesPerSecond, Slot, TopicPartition
from binwright.core.packing.capacity import PerSlot
from binwright.core.packing.sticky.policy import Sticky
from binwright.lab.exact import Exact, objective
from binwright.lab.packings import packing

CAPACITY = BytesPerSecond(100)


def test_it_finds_what_repair_alone_would_not() -> None:
    """Six of 34 and 32 in three consumers fit two, as 34 + 34 + 32 and 32 + 32 + 34."""
    rates, current = rates_of(34, 32, 34, 32, 34, 32), owners_of(0, 0, 1, 1, 2, 2)
    target = Exact(10.0)(rates, CAPACITY, current, change=0.0)

    assert len(set(target.values())) == 2
    assert sum(float(rates[q]) for q in rates if target[q] != current[q]) == 66


def test_nothing_moves_without_need() -> None:
    rates, current = rates_of(60, 30, 70), owners_of(3, 3, 1)

    assert Exact()(rates, CAPACITY, current) == current


def test_it_is_never_worse_than_sticky_and_sticky_is_near() -> None:
    random = Random(3)
    ours = best = 0.0
    rates, current = (
        rates_of(*[random.randint(0, 100) for _ in range(12)]),
        dict[TopicPartition, Slot](),
    )
    for _ in range(8):
        rates = {
            q: BytesPerSecond(min(100, max(0, r + random.randint(-15, 15))))
            for q, r in rates.items()
        }
        near = Sticky()(rates, CAPACITY, current, change=75.0)
        exact = Exact()(rates, CAPACITY, current, change=75.0)
        costs = Sticky().costs(rates, PerSlot(CAPACITY), 75.0)
        loads = [sum(rates[q] for q in exact if exact[q] == s) for s in set(exact.values())]
        assert max(loads) <= 100
        ours += objective(rates, CAPACITY, current, near, costs)
        best += objective(rates, CAPACITY, current, exact, costs)
        current = near
    assert best <= ours <= 1.02 * best


def test_what_sits_alone_or_carries_nothing_is_sticky_s_business() -> None:
    rates, current = rates_of(150, 0, 60, 40, 0), owners_of(0, 0, 1, 2, 2)
    target = Exact()(rates, CAPACITY, current, change=0.0)

    assert target == owners_of(0, 1, 1, 1, 1)
    assert Exact()(rates_of(0, 0), CAPACITY, owners_of(2, 2)) == owners_of(2, 2)


def test_it_says_so_when_sticky_answers_instead() -> None:
    many = rates_of(*[50] * 65)
    with capture_logs() as said:
        assert Exact()(many, CAPACITY, {}) == Sticky()(many, CAPACITY, {})
    assert said[0]["event"] == "packing.approximate"
    assert said[0]["reason"] == "more than 64 partitions"

    hard = rates_of(*[20 + 7 * n % 31 for n in range(60)])
    with capture_logs() as said:
        assert Exact(limit_s=1e-3)(hard, CAPACITY, {}) == Sticky()(hard, CAPACITY, {})
    assert said[0]["reason"] == "no proof within 0.001 s"


def test_it_is_known_by_name() -> None:
    assert packing("exact") == Exact()
    assert packing("exact:0.4") == Exact(0.4)
    assert packing("sticky:0.4") == Sticky(0.4)
    with pytest.raises(PackingError, match=r"'exakt'; there are: sticky, .*, kd_N, exact"):
        packing("exakt")
    with pytest.raises(PackingError, match="price must be"):
        packing("exact:0")
