"""The judge names every hard constraint that a placement breaks."""

from tests.balancer.decide.clusters import broker, cluster, ids, partition

from binwright.balancer.decide.cluster import Cluster, Topic, current
from binwright.balancer.decide.plans import Constraint
from binwright.balancer.decide.violations import Violation, violations
from binwright.protocol.model import TopicPartition

P = TopicPartition("orders", 0)


def broken(found: Cluster, *replicas: int) -> list[Constraint]:
    """Return what breaks if partition `orders-0` is at these brokers."""
    placement = {**current(found), P: ids(*replicas)}
    return [violation.constraint for violation in violations(found, placement)]


def test_a_placement_that_breaks_nothing_has_no_violations() -> None:
    found = cluster([broker(1), broker(2)], [partition("orders-0", [1, 2])])
    assert violations(found, current(found)) == ()


def test_replicas_are_as_many_as_asked_for_and_on_different_brokers() -> None:
    found = cluster([broker(1), broker(2)], [partition("orders-0", [1, 2])])
    assert broken(found, 1) == ["replication"]
    assert broken(found, 1, 1) == ["distinct brokers", "rack spread"]


def test_brokers_that_are_down_draining_or_excluded_hold_nothing() -> None:
    found = cluster(
        [broker(1), broker(2, state="down"), broker(3, state="draining"), broker(4)],
        [partition("orders-0", [1], size=0, rate=0.0)],
        [Topic("orders", 1, excluded_brokers=frozenset(ids(4)))],
    )
    assert broken(found, 2) == ["broker down"]
    assert broken(found, 3) == ["broker draining"]
    assert broken(found, 4) == ["exclusion"]


def test_a_pinned_broker_holds_a_replica() -> None:
    found = cluster([broker(1), broker(2)], [partition("orders-0", [1], pinned=[1])])
    assert broken(found, 2) == ["pin"]


def test_an_excluded_topic_stays_even_its_order() -> None:
    topic = Topic("orders", 2, excluded=True)
    found = cluster([broker(1), broker(2)], [partition("orders-0", [1, 2])], [topic])
    assert broken(found, 2, 1) == ["exclusion"]


def test_racks_hold_no_more_than_they_must_except_of_excluded_topics() -> None:
    brokers = [broker(1, rack="a"), broker(2, rack="a"), broker(3, rack="b")]
    found = cluster(brokers, [partition("orders-0", [1, 3])])
    assert broken(found, 1, 2) == ["rack spread"]
    topic = Topic("orders", 2, excluded=True)
    stuck = cluster(brokers, [partition("orders-0", [1, 2])], [topic])
    assert violations(stuck, current(stuck)) == ()


def test_topics_of_a_group_share_no_broker() -> None:
    topics = [Topic("orders", 1, group="g"), Topic("bills", 1, group="g")]
    partitions = [partition("orders-0", [1]), partition("bills-0", [2])]
    found = cluster([broker(1), broker(2)], partitions, topics)
    assert broken(found, 1) == []
    assert broken(found, 2) == ["anti-colocation"]


def test_a_load_above_the_room_is_named_with_both() -> None:
    found = cluster([broker(1, disk=100.0)], [partition("orders-0", [1], size=90)], headroom=0.2)
    assert violations(found, current(found)) == (
        Violation("capacity", ids(1)[0], None, "disk", 90.0, 80.0),
    )
