"""A cluster as arrays, and what a solver returns: brokers and partitions are numbers.

Loads are in units of their means.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from binwright.balancer.decide.loads import LoadLimits, replica_amounts
from binwright.balancer.decide.model import (
    Amounts,
    BrokerId,
    Cluster,
    Partition,
    Placement,
    Topic,
    may_hold,
    most_in_a_rack,
    racks,
)
from binwright.protocol.model import TopicPartition

Vector = tuple[float, float, float, float]
"""One number for each resource; 1 is the mean load of a broker."""


@dataclass(frozen=True, slots=True)
class PlacementProblem:
    """What the searches know; partition p and broker b are places in these sequences.

    Attributes:
        names: Partitions, sorted.
        brokers: Sorted ids.
        limits: What each broker may carry.
        leads: What each partition's leader needs.
        follows: What each of its followers needs.
        sizes: Bytes that a replica copies when it moves.
        homes: Brokers of each partition today, the preferred leader first.
        counts: Replicas that each is to have.
        fixed: Whether a partition stays as it is.
        pins: Brokers that must hold a replica.
        allowed: Whether each broker may hold replicas of it; one sequence for each topic.
        racks: Of each broker.
        most: Replicas of a partition that a rack may hold.
        near: Brokers in the racks of a partition's readers; empty: not known.
        groups: The anti-colocation group, -1: none.
        topics: Of each partition.
    """

    names: Sequence[TopicPartition]
    brokers: Sequence[BrokerId]
    limits: Sequence[Vector]
    leads: Sequence[Vector]
    follows: Sequence[Vector]
    sizes: Sequence[int]
    homes: Sequence[tuple[int, ...]]
    counts: Sequence[int]
    fixed: Sequence[bool]
    pins: Sequence[frozenset[int]]
    allowed: Sequence[Sequence[bool]]
    racks: Sequence[int]
    most: Sequence[int]
    near: Sequence[frozenset[int]]
    groups: Sequence[int]
    topics: Sequence[int]

    def placement(self, at: Sequence[Sequence[int]]) -> Placement:
        """Return replicas by place as a placement; followers alone never change their order."""
        return {
            name: tuple(self.brokers[b] for b in _as_today(replicas, home))
            for name, replicas, home in zip(self.names, at, self.homes, strict=True)
        }


def _as_today(replicas: Sequence[int], home: tuple[int, ...]) -> Sequence[int]:
    same_leader = tuple(replicas[:1]) == home[:1]
    return home if same_leader and set(replicas) == set(home) else replicas


def compiled(cluster: Cluster, limits: LoadLimits) -> PlacementProblem:
    """Return a cluster as arrays, with limits in each resource's own unit."""
    brokers = sorted(cluster.brokers, key=lambda each: each.id)
    place = {broker.id: b for b, broker in enumerate(brokers)}
    partitions = sorted(cluster.partitions, key=lambda each: each.id)
    counts = [cluster.planned_replicas(each) for each in partitions]
    amounts = [replica_amounts(cluster, p, n) for p, n in zip(partitions, counts, strict=True)]
    units = _units(amounts, counts, sum(b.usable for b in brokers))
    rack_of = racks(cluster)
    rack_ids = {rack: i for i, rack in enumerate(sorted(set(rack_of.values())))}
    topic_ids = {name: i for i, name in enumerate(sorted(cluster.topics))}
    groups = sorted({t.group for t in cluster.topics.values() if t.group is not None})
    group_ids: Mapping[str | None, int] = {None: -1} | {g: i for i, g in enumerate(groups)}
    allowed = {n: [may_hold(b, t) for b in brokers] for n, t in cluster.topics.items()}
    most = {name: most_in_a_rack(cluster, topic) for name, topic in cluster.topics.items()}
    near = {
        name: frozenset(b for b, each in enumerate(brokers) if each.rack in topic.reader_racks)
        for name, topic in cluster.topics.items()
    }
    topics = [cluster.topics[each.id.topic] for each in partitions]
    return PlacementProblem(
        names=[each.id for each in partitions],
        brokers=[broker.id for broker in brokers],
        limits=[_scaled(limits[broker.id], units) for broker in brokers],
        leads=[_scaled(leader, units) for leader, _ in amounts],
        follows=[_scaled(follower, units) for _, follower in amounts],
        sizes=[each.size_bytes for each in partitions],
        homes=[tuple(place[b] for b in each.replicas) for each in partitions],
        counts=counts,
        fixed=[topic.excluded for topic in topics],
        pins=[_pins(each, topic, place) for each, topic in zip(partitions, topics, strict=True)],
        allowed=[allowed[topic.name] for topic in topics],
        racks=[rack_ids[rack_of[broker.id]] for broker in brokers],
        most=[most[topic.name] for topic in topics],
        near=[near[topic.name] for topic in topics],
        groups=[group_ids[topic.group] for topic in topics],
        topics=[topic_ids[topic.name] for topic in topics],
    )


def _pins(partition: Partition, topic: Topic, place: Mapping[BrokerId, int]) -> frozenset[int]:
    """Return where a replica must be; what is fixed needs no pins."""
    return frozenset() if topic.excluded else frozenset(place[b] for b in partition.pinned)


def _units(
    amounts: Sequence[tuple[Amounts, Amounts]], counts: Sequence[int], usable: int
) -> Amounts:
    """Return the mean load of a broker; 1 where there is no load."""
    sums = [0.0] * 4
    for (leader, follower), count in zip(amounts, counts, strict=True):
        for place in range(4):
            sums[place] += leader[place] + (count - 1) * follower[place]
    return Amounts(*(each / max(1, usable) or 1.0 for each in sums))


def _scaled(amounts: Amounts, units: Amounts) -> Vector:
    d, i, o, c = (amount / unit for amount, unit in zip(amounts, units, strict=True))
    return d, i, o, c


@dataclass(frozen=True, slots=True)
class Solution:
    """The best placement that a solver found.

    Attributes:
        at: Brokers of each partition by place, the leader first; fewer than asked where no broker
            was found for a replica.
        feasible: Whether it satisfies every constraint of the problem.
        proved: Whether nothing better exists; without `feasible`: whether nothing feasible does.
    """

    at: Sequence[Sequence[int]]
    feasible: bool
    proved: bool = False


class Solver(Protocol):
    """Solves a problem: exactly, or not."""

    def place(self, problem: PlacementProblem) -> Solution:
        """Return a placement within the limits that copies few bytes."""

    def fewest(self, problem: PlacementProblem) -> Solution:
        """Return a placement on few brokers that copies few bytes."""
