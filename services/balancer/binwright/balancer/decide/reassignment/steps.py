"""What one partition still needs until it is placed as planned."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from binwright.balancer.ports import ClusterState, PartitionState, Reassignment, Replicas
from binwright.protocol.model import TopicPartition

Targets = Mapping[TopicPartition, Replicas]
"""The replicas of each partition of a plan, in the order in which they are to move."""

Step = Literal[
    "done",
    "elect",  # placed, but its first replica does not lead
    "order",  # on the right brokers, in another order
    "copy",  # a broker lacks it, or one too many has it
    "copying",  # Kafka is at it
    "foreign",  # Kafka moves it to other brokers than planned
]


@dataclass(frozen=True, slots=True)
class Copy:
    """One partition that is copied to other brokers."""

    partition: TopicPartition
    sources: Replicas  # brokers that have it
    added: Replicas  # brokers that copy it


def next_step(
    target: Replicas, state: PartitionState, reassignment: Reassignment | None = None
) -> Step:
    """Return what a partition needs next."""
    if reassignment is not None:
        return "copying" if reassignment.target == target else "foreign"
    if set(state.replicas) != set(target):
        return "copy"
    if state.replicas != target:
        return "order"
    return "done" if state.leader == target[0] else "elect"


def next_steps(targets: Targets, cluster: ClusterState) -> dict[TopicPartition, Step]:
    """Return what each partition of a plan needs next; one that is gone needs nothing."""
    return {
        partition: next_step(
            target, cluster.partitions[partition], cluster.reassignments.get(partition)
        )
        for partition, target in targets.items()
        if partition in cluster.partitions
    }


def copy_of(partition: TopicPartition, target: Replicas, cluster: ClusterState) -> Copy:
    """Return which brokers copy a partition, and which have it: also while it is under way."""
    under_way = cluster.reassignments.get(partition)
    now = cluster.partitions[partition].replicas
    adding = under_way.adding if under_way else ()
    sources = tuple(broker for broker in now if broker not in adding)
    return Copy(partition, sources, tuple(b for b in target if b not in sources))
