"""From what Kafka reports to the model that plans are made for."""

from collections.abc import Mapping
from dataclasses import replace
from math import inf

import pytest

from binwright.balancer.cluster_model import (
    Snapshot,
    WhatIf,
    check_directories,
    cluster_model,
    known_limits,
)
from binwright.balancer.decide.forecast import forecast
from binwright.balancer.decide.model import BrokerId, Cluster
from binwright.balancer.description import BrokerCapacity, ClusterDescription, DescribedTopic
from binwright.balancer.ports import (
    ClusterState,
    ConfigResource,
    Disk,
    PartitionState,
    Reassignment,
)
from binwright.protocol.errors import PlacementError
from binwright.protocol.model import BytesPerSecond, TopicPartition

P0, P1 = TopicPartition("orders", 0), TopicPartition("orders", 1)
PROBE = TopicPartition("binwright.probe", 0)


def placed(*replicas: int) -> PartitionState:
    return PartitionState(replicas[0], replicas, frozenset(replicas))


def snapshot(**config: str) -> Snapshot:
    """Return brokers 1 to 3 of racks, 3 without replicas, and 4 that is down."""
    state = ClusterState(
        racks={1: "a", 2: "b", 3: None},
        partitions={P0: placed(1, 2), P1: placed(2, 4), PROBE: placed(1, 2)},
    )
    disks = {b: Disk(1_000, 500, {P0: 100, P1: 40}) for b in (1, 2, 3)}
    configs = {
        ConfigResource("topic", "orders"): {k.replace("_", "."): v for k, v in config.items()}
    }
    return Snapshot(state, disks, configs, {P0: BytesPerSecond(10), P1: BytesPerSecond(5)})


def model(
    wanted: ClusterDescription | None = None, config: Mapping[str, str] | None = None
) -> Cluster:
    return cluster_model(snapshot(**(config or {})), wanted or ClusterDescription())


def test_brokers_have_racks_and_states() -> None:
    found = [(each.id, each.rack, each.state) for each in model().brokers]
    assert found == [(1, "a", "up"), (2, "b", "up"), (3, None, "new"), (4, None, "down")]


def test_partitions_have_the_size_at_their_leader_and_their_rate() -> None:
    found = [
        (each.id, float(each.rate), each.size_bytes, [*map(int, each.replicas)])
        for each in model().partitions
    ]
    assert found == [(P0, 10, 100, [1, 2]), (P1, 5, 40, [2, 4])]


def test_a_broker_that_lost_a_directory_is_named_unless_it_is_drained() -> None:
    seen = snapshot()
    check_directories(seen)
    dead = Disk(1_000, 500, {P0: 100}, dead=("/data/b",))
    lost = replace(seen, disks={**seen.disks, 2: dead})
    with pytest.raises(PlacementError, match=r"/data/b of broker 2 is dead: it held .*orders-1"):
        check_directories(lost)
    check_directories(lost, [2])


def test_the_topic_of_the_probe_is_left_out() -> None:
    assert list(model().topics) == ["orders"]


def test_a_partition_under_way_counts_where_it_will_be() -> None:
    seen = snapshot()
    moving = Reassignment((3, 2, 1), (3,), (1,))
    state = ClusterState(seen.state.racks, seen.state.partitions, {P0: moving})
    found = cluster_model(
        Snapshot(state, seen.disks, seen.configs, seen.rates), ClusterDescription()
    )
    assert found.partitions[0].replicas == (3, 2)


@pytest.mark.parametrize(
    ("config", "kept"),
    [
        ({"retention_ms": "60000", "retention_bytes": "-1"}, (60.0, None)),
        ({"retention_ms": "-1", "retention_bytes": "5000"}, (None, 5000)),
        ({"retention_ms": "60000", "cleanup_policy": "compact"}, (None, None)),
        ({"retention_ms": "60000", "cleanup_policy": "compact,delete"}, (60.0, None)),
        ({}, (None, None)),
    ],
)
def test_retention_is_that_of_the_topic(
    config: dict[str, str], kept: tuple[float | None, int | None]
) -> None:
    topic = model(None, config).topics["orders"]
    assert (topic.retention_s, topic.retention_bytes) == kept


@pytest.mark.parametrize("policy", ["compact", "compact,delete", "delete"])
def test_a_compacted_topic_at_a_steady_load_fills_no_disk(policy: str) -> None:
    """Of topics without a limit only one that is not compacted keeps all that is written to it."""
    found = model(None, {"cleanup_policy": policy, "retention_ms": "-1"})
    full = [each for each in forecast(found, {}, 30.0) if each.broker != 4]  # that is down
    assert bool(full) == (policy == "delete")


def test_a_capacity_that_is_described_counts_before_what_kafka_reports() -> None:
    wanted = ClusterDescription(
        capacity=BrokerCapacity(network_in_bytes_per_s=7.0),
        brokers={2: BrokerCapacity(disk_bytes=9_000.0)},
    )
    capacities = {int(each.id): each.capacity for each in model(wanted).brokers}
    assert (capacities[1].disk, capacities[1].network_in) == (1_000, 7)
    assert (capacities[2].disk, capacities[2].network_in) == (9_000, 7)


def test_a_network_that_is_not_described_has_room_for_the_load_of_all() -> None:
    """Two replicas of each partition come in; out go one to a follower and one to a reader."""
    capacity = model().brokers[0].capacity
    assert (capacity.network_in, capacity.network_out, capacity.cpu) == (60.0, 60.0, inf)


def test_readers_count_as_network_out() -> None:
    wanted = ClusterDescription(topics={"orders": DescribedTopic(readers=3)})
    assert [float(each.read) for each in model(wanted).partitions] == [30, 15]


def test_what_is_wanted_of_topics_and_partitions_is_taken_over() -> None:
    wanted = ClusterDescription(
        topics={
            "orders": DescribedTopic(
                group="g",
                excluded=True,
                excluded_brokers=(3,),
                rack_spread=False,
                replication=3,
                reader_racks=("a",),
            )
        },
        pinned={"orders-0": (2,)},
    )
    found = model(wanted)
    topic = found.topics["orders"]
    assert (topic.group, topic.excluded, {*topic.excluded_brokers}) == ("g", True, {BrokerId(3)})
    assert (topic.rack_spread, topic.replication) == (False, 3)
    assert topic.reader_racks == {"a"}
    assert found.partitions[0].pinned == {2}


def test_changes_drain_add_grow_and_keep_longer() -> None:
    changes = WhatIf(drained=(1,), added=("c", None), growth=2.0, retention_s={"orders": 9.0})
    found = cluster_model(snapshot(), ClusterDescription(), changes)
    states = [(each.id, each.rack, each.state) for each in found.brokers]
    assert states[0] == (1, "a", "draining")
    assert states[-2:] == [(5, "c", "new"), (6, None, "new")]
    assert float(found.partitions[0].rate) == 20
    assert found.topics["orders"].retention_s == 9.0


def test_names_that_do_not_exist_are_refused_together() -> None:
    wanted = ClusterDescription(topics={"bills": DescribedTopic()}, pinned={"orders-9": (1,)})
    with pytest.raises(PlacementError) as refused:
        cluster_model(snapshot(), wanted, WhatIf(drained=(7,)))
    assert str(refused.value) == (
        "the cluster has no broker 7, no topic bills, no partition orders-9"
    )


def test_a_limit_is_known_where_kafka_or_a_person_gives_the_capacity() -> None:
    wanted = ClusterDescription(
        headroom=0.5, brokers={2: BrokerCapacity(network_in_bytes_per_s=60)}
    )
    limits = known_limits(model(wanted), snapshot(), wanted)
    assert limits[BrokerId(1)] == (500, inf, inf, inf)
    assert limits[BrokerId(2)] == (500, 30, inf, inf)
