"""Goals, plans, and why each move is made."""

import pytest
from tests.balancer.decide.clusters import broker, cluster, ids, partition

from binwright.balancer.decide.constraints import UnmetConstraint
from binwright.balancer.decide.loads import LoadLimits, balance_limits, hard_limits
from binwright.balancer.decide.model import BrokerId, BrokerState, Cluster, Topic, current
from binwright.balancer.decide.plans import (
    Balance,
    FewestBrokers,
    PlacementPlan,
    Reason,
    ReplicaMove,
    moves,
)
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
    move = ReplicaMove(P, ids(1, 2), ids(2, 1), 0, ())
    assert (move.leader_only, move.added, move.removed) == (True, (), ())


def test_a_data_move_adds_and_removes_brokers() -> None:
    move = ReplicaMove(P, ids(1, 2), ids(2, 3), 10, ())
    assert (move.leader_only, move.added, move.removed) == (False, ids(3), ids(1))


def test_a_plan_copies_what_its_moves_copy() -> None:
    moves = (ReplicaMove(P, ids(1), ids(2), 10, ()), ReplicaMove(P, ids(1), ids(3), 5, ()))
    assert PlacementPlan(Balance(), {}, moves, {}, {}).bytes == 15


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
    assert str(UnmetConstraint("pin", "orders-0 at broker 1")) == "pin: orders-0 at broker 1"


ONE, TWO, THREE = ids(1, 2, 3)


def moved(
    found: Cluster, *replicas: int, limits: LoadLimits | None = None, closed: int = 0
) -> ReplicaMove:
    """Return the move of `orders-0` to these brokers."""
    within = hard_limits(found) if limits is None else limits
    placement = {**current(found), P: ids(*replicas)}
    (move,) = moves(found, placement, within, frozenset(ids(closed)))
    return move


def reasons(found: Cluster, *replicas: int, closed: int = 0) -> list[str]:
    return [str(reason) for reason in moved(found, *replicas, closed=closed).reasons]


@pytest.mark.parametrize(
    ("state", "reason"),
    [("down", "broker down: broker 1"), ("draining", "broker draining: broker 1")],
)
def test_a_broker_that_is_to_be_empty_forces_its_replicas_away(
    state: BrokerState, reason: str
) -> None:
    found = cluster([broker(1, state=state), broker(2)], [partition("orders-0", [1])])
    assert reasons(found, 2) == [reason]


def test_a_closed_broker_forces_its_replicas_away() -> None:
    found = cluster([broker(1), broker(2)], [partition("orders-0", [1])])
    assert reasons(found, 2, closed=1) == ["broker closed: broker 1"]


def test_an_excluded_broker_is_named() -> None:
    topic = Topic("orders", 1, excluded_brokers=frozenset(ids(1)))
    found = cluster([broker(1), broker(2)], [partition("orders-0", [1])], [topic])
    assert reasons(found, 2) == ["exclusion: broker 1"]


def test_a_group_is_named_where_its_topics_share_a_broker() -> None:
    topics = [Topic("orders", 1, group="g"), Topic("bills", 1, group="g")]
    partitions = [partition("orders-0", [1]), partition("bills-0", [1])]
    found = cluster([broker(1), broker(2)], partitions, topics)
    assert reasons(found, 2) == ["anti-colocation: broker 1"]


def test_a_rack_with_too_many_replicas_is_named_by_the_broker() -> None:
    brokers = [broker(1, rack="a"), broker(2, rack="a"), broker(3, rack="b")]
    assert reasons(cluster(brokers, [partition("orders-0", [1, 2])]), 1, 3) == [
        "rack spread: broker 2"
    ]


def test_replication_adds_and_removes_replicas() -> None:
    brokers = [broker(1), broker(2)]
    fewer = cluster(brokers, [partition("orders-0", [1, 2])], [Topic("orders", 1)])
    assert reasons(fewer, 1) == ["replication: broker 2"]
    more = cluster(brokers, [partition("orders-0", [1], size=7)], [Topic("orders", 2)])
    move = moved(more, 1, 2)
    assert (move.bytes, [str(reason) for reason in move.reasons]) == (7, ["replication"])


def test_a_pin_brings_a_replica() -> None:
    found = cluster([broker(1), broker(2)], [partition("orders-0", [1], pinned=[2])])
    assert "pin: broker 2" in reasons(found, 2)


def test_a_full_disk_is_a_matter_of_capacity() -> None:
    found = cluster([broker(1, disk=100.0), broker(2)], [partition("orders-0", [1], size=110)])
    assert reasons(found, 2) == ["capacity: disk of broker 1 at 110.0 %, limit 100.0 %"]


def test_an_uneven_disk_is_a_matter_of_balance() -> None:
    partitions = [partition(f"orders-{n}", [1], size=1) for n in range(200)]
    found = cluster([broker(1), broker(2)], partitions)
    move = moved(found, 2, limits=balance_limits(found, 1.05))
    assert [str(reason) for reason in move.reasons] == [
        "balance: disk of broker 1 at 20.0 %, limit 10.5 %"
    ]


def test_a_replica_that_leaves_for_another_makes_room() -> None:
    found = cluster(
        [broker(1, disk=100.0), broker(2), broker(3, state="down")],
        [partition("orders-0", [1], size=60), partition("orders-1", [3], size=80)],
    )
    placement = {P: ids(2), TopicPartition("orders", 1): ids(1)}
    first, second = moves(found, placement, hard_limits(found))
    assert [str(one) for one in first.reasons] == [
        "makes room: disk of broker 1 at 140.0 %, limit 100.0 %"
    ]
    assert second.reasons == (Reason("broker down", THREE),)


def test_a_move_that_nothing_forces_is_still_explained_by_its_broker() -> None:
    found = cluster([broker(1), broker(2)], [partition("orders-0", [1])])
    assert moved(found, 2).reasons == (Reason("makes room", ONE),)


def test_a_leader_move_names_the_network_of_the_leader_of_before() -> None:
    partitions = [
        partition("orders-0", [1, 2], rate=10.0),
        partition("orders-1", [1, 2], rate=95.0),
    ]
    found = cluster([broker(1, network=105.0), broker(2, network=105.0)], partitions)
    assert reasons(found, 2, 1) == ["makes room: broker 1"]
    full = cluster([broker(1, network=104.0), broker(2, network=200.0)], partitions)
    assert reasons(full, 2, 1) == ["capacity: network out of broker 1 at 101.0 %, limit 100.0 %"]


def test_leader_moves_come_first_then_partitions_in_order() -> None:
    partitions = [partition(f"orders-{n}", [1, 2]) for n in range(3)]
    found = cluster([broker(1), broker(2), broker(3)], partitions)
    placement = {
        TopicPartition("orders", 0): ids(3, 2),
        TopicPartition("orders", 1): ids(1, 2),
        TopicPartition("orders", 2): ids(2, 1),
    }
    found_moves = moves(found, placement, hard_limits(found))
    assert [str(move.partition) for move in found_moves] == ["orders-2", "orders-0"]
