"""Contradictions that can be seen without a search: each proves that there is no placement."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from binwright.balancer.decide.amounts import NOTHING, RESOURCES, Amounts, BrokerId
from binwright.balancer.decide.bounds import exceeds
from binwright.balancer.decide.cluster import Broker, Cluster, Partition, Topic
from binwright.balancer.decide.loads import replica_amounts
from binwright.balancer.decide.plans import Conflict
from binwright.balancer.decide.racks import may_hold, most_in_a_rack, racks

SHOWN = 5
"""Partitions that are named for one kind of contradiction; the others are counted."""


def contradictions(cluster: Cluster) -> tuple[Conflict, ...]:
    """Return the constraints that no placement of a cluster can satisfy; empty: none was seen."""
    return (
        *_topics(cluster),
        *_fewer(_fixed(cluster)),
        *_fewer(_pins(cluster)),
        *_groups(cluster),
        *_fewer(_too_large(cluster)),
        *_totals(cluster),
    )


def _fewer(found: Iterator[Conflict]) -> Iterator[Conflict]:
    """Yield the first of many alike, then how many more there are."""
    conflicts = list(found)
    yield from conflicts[:SHOWN]
    if (more := len(conflicts) - SHOWN) > 0:
        yield Conflict(conflicts[0].constraint, f"and {more} more like these")


def _topics(cluster: Cluster) -> Iterator[Conflict]:
    """Yield the topics that ask for more replicas than there are brokers for them."""
    for name in sorted({each.id.topic for each in cluster.partitions}):
        topic = cluster.topics[name]
        holders = sum(may_hold(broker, topic) for broker in cluster.brokers)
        if topic.replication > holders and not topic.excluded:
            detail = f"topic {name} asks for {topic.replication}, {holders} brokers may hold it"
            yield Conflict("replication", detail)


def _fixed(cluster: Cluster) -> Iterator[Conflict]:
    """Yield the excluded topics on brokers that are to hold nothing of them."""
    brokers = {broker.id: broker for broker in cluster.brokers}
    for each in sorted(cluster.partitions, key=lambda p: p.id):
        topic = cluster.topics[each.id.topic]
        for broker in each.replicas if topic.excluded else ():
            if not may_hold(brokers[broker], topic):
                why = _why_not(brokers[broker])
                yield Conflict(
                    "exclusion", f"{each.id} is excluded and stays, broker {broker} {why}"
                )


def _why_not(broker: Broker) -> str:
    return "is one that may not hold it" if broker.usable else f"is {broker.state}"


def _pins(cluster: Cluster) -> Iterator[Conflict]:
    """Yield the pins to brokers that may not hold a replica, and those that are too many."""
    brokers, rack = {broker.id: broker for broker in cluster.brokers}, racks(cluster)
    for each in sorted((p for p in cluster.partitions if p.pinned), key=lambda p: p.id):
        topic = cluster.topics[each.id.topic]
        for broker in sorted(each.pinned):
            if not may_hold(brokers[broker], topic):
                yield Conflict(
                    "pin", f"{each.id} at broker {broker}, which {_why_not(brokers[broker])}"
                )
        if topic.excluded:
            if missing := sorted(each.pinned - set(each.replicas)):
                yield Conflict("pin", f"{each.id} is excluded and stays, it is not at {missing}")
            continue
        if len(each.pinned) > topic.replication:
            pins = len(each.pinned)
            yield Conflict("pin", f"{each.id} has {pins} pins, {topic.replication} replicas")
        held = [rack[broker] for broker in each.pinned]
        most = most_in_a_rack(cluster, topic)
        if any(held.count(one) > most for one in held):
            yield Conflict("rack spread", f"{each.id} has more than {most} pins in one rack")


def _groups(cluster: Cluster) -> Iterator[Conflict]:
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
            yield Conflict(
                "anti-colocation",
                f"topics of group {group} need {needed} brokers, {usable} may hold replicas",
            )
        for broker, names in sorted(stuck.get(group, {}).items()):
            if len(names) > 1:
                both = ", ".join(sorted(names))
                yield Conflict("anti-colocation", f"{both} cannot leave broker {broker}")


def _stuck_topics(cluster: Cluster) -> Mapping[str, Mapping[BrokerId, set[str]]]:
    """Return, by group and broker, the topics that exclusion or pins keep there."""
    found: dict[str, dict[BrokerId, set[str]]] = defaultdict(lambda: defaultdict(set))
    for each in cluster.partitions:
        topic = cluster.topics[each.id.topic]
        if topic.group is not None:
            for broker in each.replicas if topic.excluded else each.pinned:
                found[topic.group][broker].add(topic.name)
    return found


def _too_large(cluster: Cluster) -> Iterator[Conflict]:
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
) -> Iterator[Conflict]:
    """Yield the resources of which too few brokers have enough for a leader or the replicas."""
    for place, resource in enumerate(RESOURCES):
        leading, holding = (_rooms_for(rooms, place, each) for each in needs)
        if holding < replication <= len(rooms) or (rooms and not leading):
            detail = f"{resource} of {partition.id}: {needs[0][place]:.6g}, enough room on"
            yield Conflict("capacity", f"{detail} {min(holding, leading)} empty brokers")


def _rooms_for(rooms: Sequence[Amounts], place: int, needs: Amounts) -> int:
    return sum(not exceeds(needs[place], room[place]) for room in rooms)


def _totals(cluster: Cluster) -> Iterator[Conflict]:
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
            yield Conflict("capacity", f"{detail} less the headroom")
