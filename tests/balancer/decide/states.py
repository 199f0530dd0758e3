"""Small clusters for tests of this directory."""

from collections.abc import Iterable, Mapping

from binwright.balancer.ports import ClusterState, PartitionState, Reassignment, Replicas
from binwright.protocol.model import TopicPartition

P0, P1, P2, P3 = (TopicPartition("orders", n) for n in range(4))


def placed(*replicas: int, leader: int | None = None, lost: Iterable[int] = ()) -> PartitionState:
    """Return a partition that is on these brokers and led by the first, unless said otherwise."""
    in_sync = frozenset(replicas) - {*lost}
    return PartitionState(replicas[0] if leader is None else leader, replicas, in_sync)


def cluster(
    partitions: Mapping[TopicPartition, PartitionState],
    *,
    brokers: int = 4,
    under_way: Mapping[TopicPartition, Reassignment] | None = None,
) -> ClusterState:
    return ClusterState(dict.fromkeys(range(1, brokers + 1)), partitions, under_way or {})


def moving(before: Replicas, after: Replicas) -> tuple[PartitionState, Reassignment]:
    """Return a partition that Kafka copies, and the reassignment."""
    adding = tuple(broker for broker in after if broker not in before)
    removing = tuple(broker for broker in before if broker not in after)
    every = (*after, *removing)
    return PartitionState(before[0], every, frozenset(before)), Reassignment(
        every, adding, removing
    )
