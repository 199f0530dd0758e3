"""Goals refuse what makes no sense; moves and reasons can be read."""

import pytest
from tests.balancer.decide.clusters import ids

from binwright.balancer.decide.amounts import BrokerId
from binwright.balancer.decide.plans import Balance, Conflict, FewestBrokers, Move, Plan, Reason
from binwright.protocol.errors import BalanceError
from binwright.protocol.model import TopicPartition

P = TopicPartition("orders", 0)


def test_a_bound_below_the_mean_is_refused() -> None:
    with pytest.raises(BalanceError, match=r"bound must be >= 1, got 0.9"):
        Balance(0.9)


@pytest.mark.parametrize("growth", [0.0, -1.0, float("inf"), float("nan")])
def test_growth_is_a_positive_factor(growth: float) -> None:
    with pytest.raises(BalanceError, match="growth"):
        FewestBrokers(growth)


def test_a_leader_move_changes_only_the_order() -> None:
    move = Move(P, ids(1, 2), ids(2, 1), 0, ())
    assert (move.leader_only, move.added, move.removed) == (True, (), ())


def test_a_data_move_adds_and_removes_brokers() -> None:
    move = Move(P, ids(1, 2), ids(2, 3), 10, ())
    assert (move.leader_only, move.added, move.removed) == (False, ids(3), ids(1))


def test_a_plan_copies_what_its_moves_copy() -> None:
    moves = (Move(P, ids(1), ids(2), 10, ()), Move(P, ids(1), ids(3), 5, ()))
    assert Plan(Balance(), {}, moves, {}, {}).bytes == 15


@pytest.mark.parametrize(
    ("reason", "text"),
    [
        (Reason("replication"), "replication"),
        (Reason("broker down", BrokerId(3)), "broker down: broker 3"),
        (
            Reason("balance", BrokerId(3), "disk", 0.81, 0.632),
            "balance: disk of broker 3 at 81.0 %, limit 63.2 %",
        ),
    ],
)
def test_a_reason_is_written_for_people(reason: Reason, text: str) -> None:
    assert str(reason) == text


def test_a_conflict_is_written_for_people() -> None:
    assert str(Conflict("pin", "orders-0 at broker 1")) == "pin: orders-0 at broker 1"
