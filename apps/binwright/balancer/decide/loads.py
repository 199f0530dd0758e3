"""What each broker carries under a placement, how uneven that is, and what it may carry."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf

from binwright.balancer.decide.model import (
    NOTHING,
    RESOURCES,
    Amounts,
    Broker,
    BrokerId,
    Cluster,
    Partition,
    Placement,
    Resource,
    current,
)

TOLERANCE = 1e-6
"""A load is within a limit up to this share above it: sums of floats in another order differ."""
LoadLimits = Mapping[BrokerId, Amounts]


@dataclass(frozen=True, slots=True)
class BrokerLoad:
    """The load of one broker, by where it comes from.

    Attributes:
        replicas: How many it holds.
        leaders: How many of them are preferred leaders.
        disk: Bytes that they need.
        written: Bytes/s that producers write to leaders here.
        replicated_in: Bytes/s that followers here fetch.
        replicated_out: Bytes/s that followers elsewhere fetch from leaders here.
        read: Bytes/s that consumers fetch from leaders here.
        cpu: Cores.
    """

    replicas: int = 0
    leaders: int = 0
    disk: float = 0.0
    written: float = 0.0
    replicated_in: float = 0.0
    replicated_out: float = 0.0
    read: float = 0.0
    cpu: float = 0.0

    @property
    def amounts(self) -> Amounts:
        """Return the load by resource."""
        into, out = self.written + self.replicated_in, self.replicated_out + self.read
        return Amounts(self.disk, into, out, self.cpu)


def replica_amounts(
    cluster: Cluster, partition: Partition, replicas: int
) -> tuple[Amounts, Amounts]:
    """Return what the leader and what each follower of a partition needs.

    Args:
        cluster: Names the partition's topic, and what bytes cost.
        partition: Which.
        replicas: How many it has; followers fetch from the leader.
    """
    disk = partition.disk_bytes(cluster.topics[partition.id.topic])
    out = partition.rate * (replicas - 1) + partition.read
    follower = cluster.cpu.per_byte_in * partition.rate
    leader = follower + cluster.cpu.per_byte_out * out
    return Amounts(disk, partition.rate, out, leader), Amounts(disk, partition.rate, 0.0, follower)


def broker_loads(cluster: Cluster, placement: Placement) -> dict[BrokerId, BrokerLoad]:
    """Return the load of each broker, in the order of their ids, idle ones too."""
    sums = {broker.id: [0.0] * 8 for broker in cluster.brokers}
    for partition in cluster.partitions:
        replicas = placement[partition.id]
        leader, follower = replica_amounts(cluster, partition, len(replicas))
        fetched = partition.rate * (len(replicas) - 1)
        parts = (1, 1, leader.disk, partition.rate, 0.0, fetched, partition.read, leader.cpu)
        _add(sums[replicas[0]], parts)
        for broker in replicas[1:]:
            _add(sums[broker], (1, 0, leader.disk, 0.0, partition.rate, 0.0, 0.0, follower.cpu))
    return {broker: _load(each) for broker, each in sorted(sums.items())}


def _add(sums: list[float], parts: tuple[float, ...]) -> None:
    for place, part in enumerate(parts):
        sums[place] += part


def _load(sums: list[float]) -> BrokerLoad:
    return BrokerLoad(int(sums[0]), int(sums[1]), *sums[2:])


def use(cluster: Cluster, loads: Mapping[BrokerId, BrokerLoad]) -> dict[BrokerId, Amounts]:
    """Return loads as shares of each broker's capacity; 0 where the capacity is unlimited.

    A load on a broker without any capacity (one that is down may be described so) is `inf`.
    """
    capacities = {broker.id: broker.capacity for broker in cluster.brokers}
    return {
        broker: Amounts(*map(_share, load.amounts, capacities[broker]))
        for broker, load in loads.items()
    }


def _share(load: float, capacity: float) -> float:
    if capacity:
        return load / capacity
    return inf if load else 0.0


@dataclass(frozen=True, slots=True)
class Imbalance:
    """How uneven a resource is over the brokers that may hold replicas.

    Attributes:
        resource: Which.
        broker: The one with the largest use, of several the lowest id.
        largest: Its use, a share of its capacity.
        mean: The load of all over the capacity of all.
        load: The mean load of a broker, in the resource's own unit.
    """

    resource: Resource
    broker: BrokerId
    largest: float
    mean: float
    load: float

    @property
    def factor(self) -> float:
        """Return the largest use in units of the mean: 1 is even; 1 without any load."""
        return self.largest / self.mean if self.mean else 1.0


def imbalance(cluster: Cluster, placement: Placement | None = None) -> tuple[Imbalance, ...]:
    """Return how uneven each resource with a capacity is; today's placement by default."""
    loads = broker_loads(cluster, current(cluster) if placement is None else placement)
    return tuple(_imbalances(cluster, loads))


def _imbalances(cluster: Cluster, loads: Mapping[BrokerId, BrokerLoad]) -> Iterator[Imbalance]:
    for place, resource in enumerate(RESOURCES):
        rooms = {b.id: b.capacity[place] for b in cluster.brokers if b.usable}
        shares = {b: _share(loads[b].amounts[place], room) for b, room in sorted(rooms.items())}
        total = sum(rooms.values())
        if shares and 0 < total < inf:
            load = sum(loads[b].amounts[place] for b in rooms)
            broker = max(shares, key=shares.__getitem__)
            yield Imbalance(resource, broker, shares[broker], load / total, load / len(rooms))


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
    hard: LoadLimits,
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
    loads: dict[BrokerId, Amounts] = {}
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
            loads[broker] = loads.get(broker, NOTHING).plus(amounts)
    return loads
