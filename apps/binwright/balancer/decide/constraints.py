"""The hard constraints: what a placement breaks, and what no placement can satisfy.

The judge of plans, apart from the search.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from binwright.balancer.decide.loads import (
    LoadLimits,
    broker_loads,
    exceeds,
    hard_limits,
    replica_amounts,
)
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
    Topic,
    may_hold,
    most_in_a_rack,
    racks,
)
from binwright.protocol.model import TopicPartition

Constraint = Literal[
    "replication",  # as many replicas as the topic asks for
    "distinct brokers",  # replicas of a partition are on different brokers
    "broker down",  # holds nothing
    "broker draining",  # holds nothing
    "broker closed",  # the goal is fewest brokers, and this one is not needed
    "pin",  # a pinned broker holds a replica
    "exclusion",  # an excluded topic stays, an excluded broker holds none of it
    "rack spread",
    "anti-colocation",
    "capacity",  # of a resource, less the headroom
    "balance",  # use of a resource above the bound over its mean
    "near readers",  # led where its consumers run
    "makes room",  # moved so that another replica fits
]


SHOWN = 5
"""Partitions that are named for one kind of contradiction; the others are counted."""


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
    cluster: Cluster, placement: Placement, limits: LoadLimits, constraint: Constraint
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
    topics: dict[tuple[str, BrokerId], set[str]] = defaultdict(set)
    for name, replicas in placement.items():
        group = cluster.topics[name.topic].group
        for broker in replicas if group is not None else ():
            topics[str(group), broker].add(name.topic)
    return {place: tuple(sorted(topics[place])) for place in sorted(topics)}


def _of_groups(cluster: Cluster, placement: Placement) -> Iterator[Violation]:
    for (_, broker), topics in group_topics(cluster, placement).items():
        if len(topics) > 1:
            yield Violation("anti-colocation", broker)


@dataclass(frozen=True, slots=True)
class UnmetConstraint:
    """A constraint that cannot be satisfied, or was not in the best placement that was found."""

    constraint: Constraint
    detail: str  # what asks for how much, and what there is

    def __str__(self) -> str:
        """Write it for a person."""
        return f"{self.constraint}: {self.detail}"


def contradictions(cluster: Cluster) -> tuple[UnmetConstraint, ...]:
    """Return the constraints that no placement of a cluster can satisfy; empty: none was seen."""
    return (
        *_topics(cluster),
        *_fewer(_fixed(cluster)),
        *_fewer(_pins(cluster)),
        *_groups(cluster),
        *_fewer(_too_large(cluster)),
        *_totals(cluster),
    )


def _fewer(unmet: Iterator[UnmetConstraint]) -> Iterator[UnmetConstraint]:
    """Yield the first of many alike, then how many more there are."""
    conflicts = list(unmet)
    yield from conflicts[:SHOWN]
    if (more := len(conflicts) - SHOWN) > 0:
        yield UnmetConstraint(conflicts[0].constraint, f"and {more} more like these")


def _topics(cluster: Cluster) -> Iterator[UnmetConstraint]:
    """Yield the topics that ask for more replicas than there are brokers for them."""
    for name in sorted({each.id.topic for each in cluster.partitions}):
        topic = cluster.topics[name]
        holders = sum(may_hold(broker, topic) for broker in cluster.brokers)
        if topic.replication > holders and not topic.excluded:
            detail = f"topic {name} asks for {topic.replication}, {holders} brokers may hold it"
            yield UnmetConstraint("replication", detail)


def _fixed(cluster: Cluster) -> Iterator[UnmetConstraint]:
    """Yield the excluded topics on brokers that are to hold nothing of them."""
    brokers = {broker.id: broker for broker in cluster.brokers}
    for each in sorted(cluster.partitions, key=lambda p: p.id):
        topic = cluster.topics[each.id.topic]
        for broker in each.replicas if topic.excluded else ():
            if not may_hold(brokers[broker], topic):
                why = _why_not(brokers[broker])
                yield UnmetConstraint(
                    "exclusion", f"{each.id} is excluded and stays, broker {broker} {why}"
                )


def _why_not(broker: Broker) -> str:
    return "is one that may not hold it" if broker.usable else f"is {broker.state}"


def _pins(cluster: Cluster) -> Iterator[UnmetConstraint]:
    """Yield the pins to brokers that may not hold a replica, and those that are too many."""
    brokers, rack = {broker.id: broker for broker in cluster.brokers}, racks(cluster)
    for each in sorted((p for p in cluster.partitions if p.pinned), key=lambda p: p.id):
        topic = cluster.topics[each.id.topic]
        for broker in sorted(each.pinned):
            if not may_hold(brokers[broker], topic):
                yield UnmetConstraint(
                    "pin", f"{each.id} at broker {broker}, which {_why_not(brokers[broker])}"
                )
        if topic.excluded:
            if missing := sorted(each.pinned - set(each.replicas)):
                yield UnmetConstraint(
                    "pin", f"{each.id} is excluded and stays, it is not at {missing}"
                )
            continue
        if len(each.pinned) > topic.replication:
            pins = len(each.pinned)
            yield UnmetConstraint("pin", f"{each.id} has {pins} pins, {topic.replication} replicas")
        held = [rack[broker] for broker in each.pinned]
        most = most_in_a_rack(cluster, topic)
        if any(held.count(one) > most for one in held):
            yield UnmetConstraint("rack spread", f"{each.id} has more than {most} pins in one rack")


def _groups(cluster: Cluster) -> Iterator[UnmetConstraint]:
    """Yield the groups whose topics cannot be on brokers of their own."""
    groups: dict[str, list[Topic]] = defaultdict(list)
    for name in sorted({each.id.topic for each in cluster.partitions}):
        if (group := cluster.topics[name].group) is not None:
            groups[group].append(cluster.topics[name])
    usable = sum(broker.usable for broker in cluster.brokers)
    stuck = _stuck_topics(cluster)
    for group, topics in sorted(groups.items()):
        needed = sum(topic.replication for topic in topics)
        if needed > usable:
            yield UnmetConstraint(
                "anti-colocation",
                f"topics of group {group} need {needed} brokers, {usable} may hold replicas",
            )
        for broker, names in sorted(stuck.get(group, {}).items()):
            if len(names) > 1:
                both = ", ".join(sorted(names))
                yield UnmetConstraint("anti-colocation", f"{both} cannot leave broker {broker}")


def _stuck_topics(cluster: Cluster) -> Mapping[str, Mapping[BrokerId, set[str]]]:
    """Return, by group and broker, the topics that exclusion or pins keep there."""
    stuck: dict[str, dict[BrokerId, set[str]]] = defaultdict(lambda: defaultdict(set))
    for each in cluster.partitions:
        topic = cluster.topics[each.id.topic]
        if topic.group is not None:
            for broker in each.replicas if topic.excluded else each.pinned:
                stuck[topic.group][broker].add(topic.name)
    return stuck


def _too_large(cluster: Cluster) -> Iterator[UnmetConstraint]:
    """Yield the partitions with replicas that too few brokers have room for when empty."""
    holders = {
        name: [cluster.room(broker) for broker in cluster.brokers if may_hold(broker, topic)]
        for name, topic in cluster.topics.items()
    }
    least = {name: _least(rooms) for name, rooms in holders.items()}
    for each in sorted(cluster.partitions, key=lambda p: p.id):
        topic = cluster.topics[each.id.topic]
        leader, follower = replica_amounts(cluster, each, topic.replication)
        fits = not any(map(exceeds, leader, least[topic.name]))
        if not fits and not topic.excluded:
            yield from _lacking(each, topic.replication, (leader, follower), holders[topic.name])


def _least(rooms: Sequence[Amounts]) -> Amounts:
    """Return the smallest room of each resource."""
    return Amounts(*map(min, zip(*rooms, strict=True))) if rooms else NOTHING


def _lacking(
    partition: Partition,
    replication: int,
    needs: tuple[Amounts, Amounts],
    rooms: Sequence[Amounts],
) -> Iterator[UnmetConstraint]:
    """Yield the resources of which too few brokers have enough for a leader or the replicas."""
    for place, resource in enumerate(RESOURCES):
        leading, holding = (_rooms_for(rooms, place, each) for each in needs)
        if holding < replication <= len(rooms) or (rooms and not leading):
            detail = f"{resource} of {partition.id}: {needs[0][place]:.6g}, enough room on"
            yield UnmetConstraint("capacity", f"{detail} {min(holding, leading)} empty brokers")


def _rooms_for(rooms: Sequence[Amounts], place: int, needs: Amounts) -> int:
    return sum(not exceeds(needs[place], room[place]) for room in rooms)


def _totals(cluster: Cluster) -> Iterator[UnmetConstraint]:
    """Yield the resources of which all brokers together have too little."""
    needed = [0.0] * len(RESOURCES)
    for each in cluster.partitions:
        count = cluster.planned_replicas(each)
        leader, follower = replica_amounts(cluster, each, count)
        for place in range(len(RESOURCES)):
            needed[place] += leader[place] + (count - 1) * follower[place]
    rooms = [cluster.room(broker) for broker in cluster.brokers]
    for place, resource in enumerate(RESOURCES):
        room = sum(each[place] for each in rooms)
        if exceeds(needed[place], room):
            detail = f"{resource}: {needed[place]:.6g} needed, {room:.6g} in all brokers"
            yield UnmetConstraint("capacity", f"{detail} less the headroom")
