"""What a placement breaks, and what no placement can satisfy."""

from tests.balancer.decide.clusters import broker, cluster, ids, partition

from binwright.balancer.decide.constraints import Constraint, Violation, contradictions, violations
from binwright.balancer.decide.model import Cluster, Topic, current
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


def conflicts(found: Cluster) -> list[str]:
    return [str(conflict) for conflict in contradictions(found)]


def test_a_cluster_without_contradictions_has_none() -> None:
    assert conflicts(cluster([broker(1), broker(2)], [partition("orders-0", [1, 2])])) == []


def test_more_replicas_than_brokers() -> None:
    found = cluster([broker(1)], [partition("orders-0", [1])], [Topic("orders", 2)])
    assert conflicts(found) == ["replication: topic orders asks for 2, 1 brokers may hold it"]


def test_no_usable_broker_at_all() -> None:
    found = cluster([broker(1, state="down")], [partition("orders-0", [1])])
    assert conflicts(found)[0] == "replication: topic orders asks for 1, 0 brokers may hold it"


def test_an_excluded_topic_on_a_broker_to_be_emptied() -> None:
    topic = Topic("orders", 1, excluded=True)
    found = cluster(
        [broker(1, state="down")], [partition("orders-0", [1], size=0, rate=0)], [topic]
    )
    assert conflicts(found) == ["exclusion: orders-0 is excluded and stays, broker 1 is down"]


def test_an_excluded_topic_on_a_broker_that_excludes_it() -> None:
    topic = Topic("orders", 1, excluded=True, excluded_brokers=frozenset(ids(1)))
    found = cluster([broker(1), broker(2)], [partition("orders-0", [1])], [topic])
    assert conflicts(found) == [
        "exclusion: orders-0 is excluded and stays, broker 1 is one that may not hold it"
    ]


def test_a_pin_to_a_broker_to_be_emptied() -> None:
    brokers = [broker(1, state="draining"), broker(2)]
    found = cluster(brokers, [partition("orders-0", [1], pinned=[1])])
    assert conflicts(found) == ["pin: orders-0 at broker 1, which is draining"]


def test_a_pin_of_an_excluded_topic_that_is_elsewhere() -> None:
    topic = Topic("orders", 1, excluded=True)
    found = cluster([broker(1), broker(2)], [partition("orders-0", [1], pinned=[2])], [topic])
    assert conflicts(found) == ["pin: orders-0 is excluded and stays, it is not at [2]"]
    held = cluster([broker(1), broker(2)], [partition("orders-0", [1], pinned=[1])], [topic])
    assert conflicts(held) == []


def test_more_pins_than_replicas() -> None:
    found = cluster([broker(1), broker(2)], [partition("orders-0", [1], pinned=[1, 2])])
    assert conflicts(found)[0] == "pin: orders-0 has 2 pins, 1 replicas"


def test_pins_in_one_rack() -> None:
    brokers = [broker(1, rack="a"), broker(2, rack="a"), broker(3, rack="b")]
    found = cluster(brokers, [partition("orders-0", [1, 3], pinned=[1, 2])])
    assert conflicts(found) == ["rack spread: orders-0 has more than 1 pins in one rack"]


def test_a_group_with_more_topics_than_brokers() -> None:
    topics = [Topic("orders", 1, group="g"), Topic("bills", 1, group="g")]
    partitions = [partition("orders-0", [1]), partition("bills-0", [1])]
    assert conflicts(cluster([broker(1)], partitions, topics)) == [
        "anti-colocation: topics of group g need 2 brokers, 1 may hold replicas"
    ]


def test_topics_of_a_group_that_cannot_leave_one_broker() -> None:
    topics = [Topic("orders", 1, group="g", excluded=True), Topic("bills", 1, group="g")]
    partitions = [partition("orders-0", [1]), partition("bills-0", [1], pinned=[1])]
    assert conflicts(cluster([broker(1), broker(2)], partitions, topics)) == [
        "anti-colocation: bills, orders cannot leave broker 1"
    ]


def test_a_replica_that_no_broker_has_room_for() -> None:
    found = cluster([broker(1, disk=50.0), broker(2, disk=60.0)], [partition("orders-0", [1])])
    assert "capacity: disk of orders-0: 100, enough room on 0 empty brokers" in conflicts(found)


def test_replicas_that_too_few_brokers_have_room_for() -> None:
    found = cluster([broker(1), broker(2, disk=60.0)], [partition("orders-0", [1, 2])])
    assert conflicts(found) == ["capacity: disk of orders-0: 100, enough room on 1 empty brokers"]


def test_a_large_replica_that_one_broker_has_room_for_is_no_contradiction() -> None:
    found = cluster([broker(1), broker(2, disk=60.0)], [partition("orders-0", [2])])
    assert conflicts(found) == []


def test_more_load_than_all_brokers_have_room_for() -> None:
    partitions = [partition(f"orders-{n}", [1], size=60) for n in range(3)]
    found = cluster([broker(1, disk=100.0), broker(2, disk=80.0)], partitions, headroom=0.2)
    assert conflicts(found) == ["capacity: disk: 180 needed, 144 in all brokers less the headroom"]


def test_many_alike_are_counted() -> None:
    partitions = [partition(f"orders-{n}", [1], size=0, rate=0) for n in range(9)]
    topic = Topic("orders", 1, excluded=True)
    found = conflicts(cluster([broker(1, state="down")], partitions, [topic]))
    assert len(found) == 6
    assert found[-1] == "exclusion: and 4 more like these"


def test_a_topic_of_a_group_that_is_alone_at_its_broker_may_be_pinned() -> None:
    topics = [Topic("orders", 1, group="g"), Topic("bills", 1, group="g")]
    partitions = [partition("orders-0", [1], pinned=[1]), partition("bills-0", [2])]
    assert conflicts(cluster([broker(1), broker(2)], partitions, topics)) == []
