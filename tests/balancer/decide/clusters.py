"""Clusters by hand, in few words."""

from collections.abc import Iterable
from math import inf

from binwright.balancer.decide.model import (
    Amounts,
    Broker,
    BrokerId,
    BrokerState,
    Cluster,
    Partition,
    Topic,
)
from binwright.protocol.model import BytesPerSecond, TopicPartition


def ids(*numbers: int) -> tuple[BrokerId, ...]:
    """Return brokers by their numbers."""
    return tuple(map(BrokerId, numbers))


def partition(
    name: str,
    replicas: Iterable[int],
    *,
    rate: float = 1.0,
    size: int = 100,
    read: float = 0.0,
    pinned: Iterable[int] = (),
) -> Partition:
    """Return a partition by its name, `orders-0`."""
    return Partition(
        TopicPartition.parse(name),
        BytesPerSecond(rate),
        size,
        ids(*replicas),
        BytesPerSecond(read),
        frozenset(ids(*pinned)),
    )


def cluster(
    brokers: Iterable[Broker],
    partitions: Iterable[Partition],
    topics: Iterable[Topic] = (),
    headroom: float = 0.0,
) -> Cluster:
    """Return a cluster; topics that are not given ask for the replicas that they have."""
    every, known = tuple(partitions), {topic.name: topic for topic in topics}
    for each in every:
        known.setdefault(each.id.topic, Topic(each.id.topic, len(each.replicas)))
    return Cluster(tuple(brokers), known, every, Amounts(*[headroom] * 4))


def broker(
    number: int,
    disk: float = 1_000.0,
    *,
    network: float = inf,
    rack: str | None = None,
    state: BrokerState = "up",
    cpu: float = inf,
) -> Broker:
    """Return a broker of which by default only the disk has a limit."""
    return Broker(BrokerId(number), Amounts(disk, network, network, cpu), rack, state)
