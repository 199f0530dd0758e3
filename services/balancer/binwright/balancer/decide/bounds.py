"""What a goal lets each broker carry: the capacity less the headroom, and the balance."""

from collections.abc import Iterator, Mapping, Sequence
from math import inf

from binwright.balancer.decide.amounts import NOTHING, Amounts, BrokerId
from binwright.balancer.decide.cluster import Broker, Cluster
from binwright.balancer.decide.loads import replica_amounts

TOLERANCE = 1e-6
"""A load is within a limit up to this share above it: sums of floats in another order differ."""

Limits = Mapping[BrokerId, Amounts]


def exceeds(load: float, limit: float) -> bool:
    """Return whether a load is above a limit by more than the tolerance."""
    return load > limit * (1 + TOLERANCE) + TOLERANCE


def hard_limits(cluster: Cluster) -> dict[BrokerId, Amounts]:
    """Return what each broker may carry at most: nothing where replicas may not be placed."""
    return {broker.id: cluster.room(broker) for broker in cluster.brokers}


def balance_limits(cluster: Cluster, bound: float, relaxed: float = 1.0) -> dict[BrokerId, Amounts]:
    """Return what each broker may carry in a balanced placement; never above the hard limits.

    For each resource, with the mean use (the load of all over the capacity of all usable brokers):
    `bound` x the mean x the broker's capacity. Where replicas are too large for that: the mean,
    taken without the replicas that are larger than it, plus the largest of the others, and at
    least the largest of all. What may not move away from a broker counts as within its limit.

    Args:
        cluster: Whose loads and capacities count.
        bound: Largest use in units of the mean, >= 1; `inf`: the hard limits alone.
        relaxed: Factor on all balance limits, >= 1.
    """
    hard = hard_limits(cluster)
    usable = sorted((b for b in cluster.brokers if b.usable), key=lambda b: b.id)
    if inf in {bound, relaxed} or not usable:
        return hard
    columns = [
        _even(loads, [b.capacity[place] for b in usable], bound)
        for place, loads in enumerate(_replica_loads(cluster))
    ]
    stuck = _immovable(cluster)
    return hard | {
        broker.id: _within(broker, row, stuck, hard, relaxed)
        for broker, row in zip(usable, zip(*columns, strict=True), strict=True)
    }


def even_limits(cluster: Cluster, bound: float) -> dict[BrokerId, Amounts]:
    """Return `bound` x the mean use of each resource as loads, however large replicas are.

    What leaders need can be this even where replicas cannot: leader moves copy nothing.
    """
    hard = hard_limits(cluster)
    usable = [broker for broker in cluster.brokers if broker.usable]
    columns = [
        _mean_limits(sum(loads), [b.capacity[place] for b in usable], bound)
        for place, loads in enumerate(_replica_loads(cluster))
    ]
    rows = zip(*columns, strict=True)
    return hard | {b.id: Amounts(*row) for b, row in zip(usable, rows, strict=True)}


def _mean_limits(total: float, capacities: Sequence[float], bound: float) -> list[float]:
    room = sum(capacities)
    return [bound * total / room * c if 0 < room < inf else inf for c in capacities]


def _within(
    broker: Broker,
    even: Sequence[float],
    stuck: Mapping[BrokerId, Amounts],
    hard: Limits,
    relaxed: float,
) -> Amounts:
    """Return the balance limits of one broker, at least what is stuck, at most the hard ones."""
    least = stuck.get(broker.id, NOTHING)
    rows = zip(even, least, hard[broker.id], strict=True)
    return Amounts(*(min(most, max(each * relaxed, there)) for each, there, most in rows))


def _replica_loads(cluster: Cluster) -> Iterator[list[float]]:
    """Yield, for each resource, the load of every replica that the topics ask for."""
    pairs = []
    for partition in cluster.partitions:
        count = cluster.planned_replicas(partition)
        pairs.append((count - 1, *replica_amounts(cluster, partition, count)))
    for place in range(len(NOTHING)):
        leaders = [leader[place] for _, leader, _ in pairs]
        yield leaders + [f[place] for count, _, f in pairs for _ in range(count)]


def _even(loads: Sequence[float], capacities: Sequence[float], bound: float) -> list[float]:
    """Return the limits of one resource for brokers of these capacities."""
    room, total = sum(capacities), sum(loads)
    if not 0 < room < inf:
        return [inf] * len(capacities)
    mean, largest = total / room, max(loads, default=0.0)
    ordinary, biggest = _without_outliers(sorted(loads, reverse=True), len(capacities))
    share = ordinary * len(capacities) / room  # of capacity, where brokers differ
    return [max(bound * mean * c, share * c + biggest, largest) for c in capacities]


def _without_outliers(loads: Sequence[float], brokers: int) -> tuple[float, float]:
    """Return the mean load of a broker and the largest replica, without those above the mean.

    A replica that is larger than the mean has a broker for itself.

    Args:
        loads: Of replicas, the largest first.
        brokers: How many there are.
    """
    rest = sum(loads)
    for load in loads:
        if load <= rest / brokers or brokers == 1:
            return rest / brokers, load
        rest, brokers = rest - load, brokers - 1
    return 0.0, 0.0


def _immovable(cluster: Cluster) -> dict[BrokerId, Amounts]:
    """Return the load that brokers keep in every plan: of excluded topics and of pins."""
    found: dict[BrokerId, Amounts] = {}
    for partition in cluster.partitions:
        topic = cluster.topics[partition.id.topic]
        if not topic.excluded and not partition.pinned:
            continue
        count = cluster.planned_replicas(partition)
        leader, follower = replica_amounts(cluster, partition, count)
        if topic.excluded:
            kept = dict.fromkeys(partition.replicas, follower) | {partition.replicas[0]: leader}
        else:
            kept = dict.fromkeys(sorted(partition.pinned), follower)
        for broker, amounts in kept.items():
            found[broker] = found.get(broker, NOTHING).plus(amounts)
    return found
