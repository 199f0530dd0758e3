"""Moves from one placement to another, each with the constraints that force it."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from binwright.balancer.decide.amounts import RESOURCES, Amounts, BrokerId
from binwright.balancer.decide.bounds import Limits, exceeds
from binwright.balancer.decide.cluster import Broker, Cluster, Partition, Placement, current
from binwright.balancer.decide.loads import BrokerLoad, broker_loads, replica_amounts
from binwright.balancer.decide.plans import Constraint, Move, Reason
from binwright.balancer.decide.racks import Rack, most_in_a_rack, racks
from binwright.balancer.decide.violations import group_topics


def moves(
    cluster: Cluster,
    placement: Placement,
    limits: Limits,
    closed: frozenset[BrokerId] = frozenset(),
) -> tuple[Move, ...]:
    """Return the moves from today's placement, leader moves first, then by partition.

    Args:
        cluster: With the placement of today.
        placement: The one to reach.
        limits: What each broker may carry: they explain why something moves.
        closed: Brokers that are to be empty.
    """
    view = _View.of(cluster, placement, limits, closed)
    changed = [each for each in cluster.partitions if placement[each.id] != each.replicas]
    found = [_move(view, each, placement[each.id]) for each in changed]
    return tuple(sorted(found, key=lambda move: (not move.leader_only, move.partition)))


@dataclass(frozen=True, slots=True)
class _View:
    """What reasons are read from: both loads, limits, racks, groups."""

    cluster: Cluster
    brokers: Mapping[BrokerId, Broker]
    racks: Mapping[BrokerId, Rack]
    most: Mapping[str, int]  # replicas of a partition in one rack, by topic
    groups: Mapping[tuple[str, BrokerId], tuple[str, ...]]  # topics, before
    before: Mapping[BrokerId, BrokerLoad]
    after: Mapping[BrokerId, BrokerLoad]
    limits: Limits
    closed: frozenset[BrokerId]

    @classmethod
    def of(
        cls, cluster: Cluster, placement: Placement, limits: Limits, closed: frozenset[BrokerId]
    ) -> "_View":
        """Compute it from a cluster and the placement to reach."""
        today = current(cluster)
        return cls(
            cluster,
            {broker.id: broker for broker in cluster.brokers},
            racks(cluster),
            {name: most_in_a_rack(cluster, topic) for name, topic in cluster.topics.items()},
            group_topics(cluster, today),
            broker_loads(cluster, today),
            broker_loads(cluster, placement),
            limits,
            closed,
        )


def _move(view: _View, partition: Partition, after: tuple[BrokerId, ...]) -> Move:
    added = len(set(after) - set(partition.replicas))
    reasons = dict.fromkeys(_reasons(view, partition, after))
    copied = partition.size_bytes * added
    return Move(partition.id, partition.replicas, after, copied, tuple(reasons))


def _reasons(view: _View, partition: Partition, after: tuple[BrokerId, ...]) -> Iterator[Reason]:
    """Yield why each broker gives a replica up, then why one is added, then why another leads."""
    before = partition.replicas
    removed = [broker for broker in before if broker not in after]
    for broker in removed:
        yield from _why_removed(view, partition, broker)
    for broker in after:
        if broker in partition.pinned and broker not in before:
            yield Reason("pin", broker)
    if len(after) > len(before):
        yield Reason("replication")
    if after[0] != before[0] and before[0] not in removed:
        yield from _why_not_led(view, partition, before[0])


def _why_removed(view: _View, partition: Partition, broker: BrokerId) -> Iterator[Reason]:
    """Yield the constraints that force a replica away; `makes room` where none is broken today."""
    found = [*_named(view, partition, broker)]
    leads = partition.replicas[0] == broker
    leader, follower = replica_amounts(view.cluster, partition, len(partition.replicas))
    needs = leader if leads else follower
    found += _overloads(view, broker, needs)
    yield from found or _makes_room(view, broker, needs)


def _named(view: _View, partition: Partition, broker: BrokerId) -> Iterator[Reason]:
    """Yield the constraints about brokers, racks and topics that a replica breaks today."""
    topic, replicas = view.cluster.topics[partition.id.topic], partition.replicas
    match view.brokers[broker].state:
        case "down":
            yield Reason("broker down", broker)
        case "draining":
            yield Reason("broker draining", broker)
        case _ if broker in view.closed:
            yield Reason("broker closed", broker)
        case _:
            pass
    if broker in topic.excluded_brokers:
        yield Reason("exclusion", broker)
    if topic.group is not None and len(view.groups[topic.group, broker]) > 1:
        yield Reason("anti-colocation", broker)
    if len(replicas) > topic.replication:
        yield Reason("replication", broker)
    if Counter(map(view.racks.__getitem__, replicas))[view.racks[broker]] > view.most[topic.name]:
        yield Reason("rack spread", broker)


def _overloads(view: _View, broker: BrokerId, needs: Amounts) -> Iterator[Reason]:
    """Yield the resources of a broker that are above a limit today and that a replica uses."""
    where = view.brokers[broker]
    if not where.usable or broker in view.closed:
        return
    room, load = view.cluster.room(where), view.before[broker].amounts
    for place, resource in enumerate(RESOURCES):
        limit = view.limits[broker][place]
        if needs[place] > 0 and exceeds(load[place], limit):
            of, is_hard = where.capacity[place], exceeds(load[place], room[place])
            broken: Constraint = "capacity" if is_hard else "balance"
            yield Reason(broken, broker, resource, load[place] / of, limit / of)


def _makes_room(view: _View, broker: BrokerId, needs: Amounts) -> Iterator[Reason]:
    """Yield the resources of a broker that would be above a limit if the replica had stayed."""
    load, capacity = view.after[broker].amounts, view.brokers[broker].capacity
    found = False
    for place, resource in enumerate(RESOURCES):
        limit, stayed = view.limits[broker][place], load[place] + needs[place]
        if needs[place] > 0 and exceeds(stayed, limit):
            found = True
            of = capacity[place]
            yield Reason("makes room", broker, resource, stayed / of, limit / of)
    if not found:
        yield Reason("makes room", broker)


def _why_not_led(view: _View, partition: Partition, broker: BrokerId) -> Iterator[Reason]:
    """Yield why a broker that keeps its replica no longer leads."""
    leader, follower = replica_amounts(view.cluster, partition, len(partition.replicas))
    more = Amounts(*(a - b for a, b in zip(leader, follower, strict=True)))
    found = [*_overloads(view, broker, more)]
    yield from found or _makes_room(view, broker, more)
