"""What each broker carries under a placement, and how uneven that is."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import inf

from binwright.balancer.decide.amounts import RESOURCES, Amounts, BrokerId, Resource
from binwright.balancer.decide.cluster import Cluster, Partition, Placement, current


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
