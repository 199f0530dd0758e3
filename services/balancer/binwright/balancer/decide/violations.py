"""Every hard constraint that a placement breaks: the judge of plans, apart from the search."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from binwright.balancer.decide.amounts import RESOURCES, BrokerId, Resource
from binwright.balancer.decide.bounds import Limits, exceeds, hard_limits
from binwright.balancer.decide.cluster import Broker, Cluster, Partition, Placement
from binwright.balancer.decide.loads import broker_loads
from binwright.balancer.decide.plans import Constraint
from binwright.balancer.decide.racks import most_in_a_rack, racks
from binwright.protocol.model import TopicPartition


@dataclass(frozen=True, slots=True)
class Violation:
    """One constraint that a placement breaks at one place.

    Attributes:
        constraint: Which.
        broker: Where; None: it names no broker.
        partition: Which; None: it is about the broker as a whole.
        resource: Of capacity and balance.
        load: Of that resource.
        limit: What the broker may carry of it.
    """

    constraint: Constraint
    broker: BrokerId | None = None
    partition: TopicPartition | None = None
    resource: Resource | None = None
    load: float = 0.0
    limit: float = 0.0


def violations(cluster: Cluster, placement: Placement) -> tuple[Violation, ...]:
    """Return every hard constraint that a placement breaks: by partition, then by broker."""
    return (
        *_of_partitions(cluster, placement),
        *_of_groups(cluster, placement),
        *overloads(cluster, placement, hard_limits(cluster), "capacity"),
    )


def overloads(
    cluster: Cluster, placement: Placement, limits: Limits, constraint: Constraint
) -> Iterator[Violation]:
    """Yield where a broker carries more than a limit, by broker, then resource."""
    for broker, load in broker_loads(cluster, placement).items():
        for resource, amount, limit in zip(RESOURCES, load.amounts, limits[broker], strict=True):
            if exceeds(amount, limit):
                yield Violation(constraint, broker, None, resource, amount, limit)


def _of_partitions(cluster: Cluster, placement: Placement) -> Iterator[Violation]:
    brokers = {broker.id: broker for broker in cluster.brokers}
    rack, most = racks(cluster), {n: most_in_a_rack(cluster, t) for n, t in cluster.topics.items()}
    for partition in sorted(cluster.partitions, key=lambda each: each.id):
        replicas, name = placement[partition.id], partition.id
        if len(set(replicas)) < len(replicas):
            yield Violation("distinct brokers", None, name)
        if len(replicas) != cluster.planned_replicas(partition):
            yield Violation("replication", None, name)
        for broker in replicas:
            yield from _of_replica(cluster, partition, brokers[broker])
        for broker in sorted(partition.pinned - set(replicas)):
            yield Violation("pin", broker, name)
        excluded = cluster.topics[name.topic].excluded
        if excluded and replicas != partition.replicas:
            yield Violation("exclusion", None, name)
        held = Counter(rack[broker] for broker in replicas)
        if not excluded and max(held.values(), default=0) > most[name.topic]:
            yield Violation("rack spread", None, name)


def _of_replica(cluster: Cluster, partition: Partition, broker: Broker) -> Iterator[Violation]:
    if broker.state == "down":
        yield Violation("broker down", broker.id, partition.id)
    if broker.state == "draining":
        yield Violation("broker draining", broker.id, partition.id)
    if broker.id in cluster.topics[partition.id.topic].excluded_brokers:
        yield Violation("exclusion", broker.id, partition.id)


def group_topics(
    cluster: Cluster, placement: Placement
) -> Mapping[tuple[str, BrokerId], tuple[str, ...]]:
    """Return, for each anti-colocation group and broker, the topics of the group that are there."""
    found: dict[tuple[str, BrokerId], set[str]] = defaultdict(set)
    for name, replicas in placement.items():
        group = cluster.topics[name.topic].group
        for broker in replicas if group is not None else ():
            found[str(group), broker].add(name.topic)
    return {place: tuple(sorted(found[place])) for place in sorted(found)}


def _of_groups(cluster: Cluster, placement: Placement) -> Iterator[Violation]:
    for (_, broker), topics in group_topics(cluster, placement).items():
        if len(topics) > 1:
            yield Violation("anti-colocation", broker)
