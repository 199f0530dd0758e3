"""How many replicas of a partition one rack may hold."""

from collections import Counter
from collections.abc import Iterable

from binwright.balancer.decide.amounts import BrokerId
from binwright.balancer.decide.cluster import Broker, Cluster, Topic

Rack = tuple[str, int]
"""A rack by its name, or a broker without one by its id."""


def rack_of(broker: Broker) -> Rack:
    """Return the rack of a broker; without one it is a rack of its own."""
    return ("", broker.id) if broker.rack is None else (broker.rack, -1)


def may_hold(broker: Broker, topic: Topic) -> bool:
    """Return whether a broker may hold replicas of a topic at all."""
    return broker.usable and broker.id not in topic.excluded_brokers


def most_in_a_rack(cluster: Cluster, topic: Topic) -> int:
    """Return the most replicas of one partition that a rack may hold: the least that is possible.

    Three replicas in three racks: 1. In two racks: 2. Racks of few brokers hold fewer, and the
    others more. Without rack spread, or where there are too few brokers: all of them.
    """
    sizes = Counter(rack_of(broker) for broker in cluster.brokers if may_hold(broker, topic))
    if topic.rack_spread and sum(sizes.values()) >= topic.replication:
        return _even(sizes.values(), topic.replication)
    return topic.replication


def _even(sizes: Iterable[int], replicas: int) -> int:
    """Return the least m so that min(size, m) of all racks are enough for the replicas."""
    return next(m for m in range(1, replicas + 1) if sum(min(s, m) for s in sizes) >= replicas)


def racks(cluster: Cluster) -> dict[BrokerId, Rack]:
    """Return the rack of each broker."""
    return {broker.id: rack_of(broker) for broker in cluster.brokers}
