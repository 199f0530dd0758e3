"""Clusters that are drawn from a seed: small ones of every kind, large uneven ones."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import count
from math import inf
from random import Random

from tests.balancer.decide.clusters import ids, partition

from binwright.balancer.decide.loads import replica_amounts
from binwright.balancer.decide.model import (
    Amounts,
    Broker,
    BrokerId,
    BrokerState,
    Cluster,
    CpuCosts,
    Partition,
    Topic,
)

ROOMY = Amounts(1e30, 1e30, 1e30, inf)
HOUR_S, DAY_S = 3_600.0, 86_400.0


def small(seed: int) -> Cluster:
    """Return a drawn cluster of 3 to 5 brokers and 10 to 60 partitions, uneven in most draws."""
    return _Draw(Random(seed)).cluster()


def with_groups(found: Cluster) -> Cluster:
    """Return a cluster with two of its topics in one group, and CPU that has a limit too."""
    names = sorted(found.topics, key=lambda name: (found.topics[name].replication, name))[:2]
    topics = {
        name: replace(topic, group="apart") if name in names else topic
        for name, topic in found.topics.items()
    }
    brokers = tuple(
        replace(each, capacity=each.capacity._replace(cpu=3e-6 * each.capacity.network_in))
        for each in found.brokers
    )
    return replace(found, brokers=brokers, topics=topics, cpu=CpuCosts(1e-6, 5e-7))


@dataclass(frozen=True, slots=True)
class Shape:
    """What a large drawn cluster is like.

    Attributes:
        brokers: How many.
        replicas: Of all partitions together, at least so many; three of each.
        new: Brokers that hold nothing yet.
        draining: Brokers to be emptied.
        fill: The share of all capacities that is used.
        sigma: Of the logarithm of topics' rates.
    """

    brokers: int = 100
    replicas: int = 100_000
    new: int = 5
    draining: int = 0
    fill: float = 0.6
    sigma: float = 1.0


def large(shape: Shape, seed: int) -> Cluster:
    """Return a drawn cluster in three racks, some brokers with twice the load of others."""
    draw = Random(seed)
    states = _states(shape)
    weights = [0.0 if state == "new" else draw.uniform(0.6, 1.4) for state in states]
    racks = [[b for b in range(shape.brokers) if b % 3 == rack] for rack in range(3)]
    topics: dict[str, Topic] = {}
    partitions: list[Partition] = []
    for number in count():
        if 3 * len(partitions) >= shape.replicas:
            break
        retention_s = draw.choice([6 * HOUR_S, DAY_S, 3 * DAY_S])
        topic = Topic(f"topic-{number:04}", 3, retention_s)
        topics[topic.name] = topic
        base = draw.lognormvariate(9, shape.sigma)
        for index in range(draw.choice([6, 12, 24, 48, 96])):
            rate = base * draw.lognormvariate(0, 0.3)
            held = [draw.choices(racks[r], [weights[b] for b in racks[r]])[0]
                    for r in draw.sample(range(3), 3)]  # fmt: skip
            partitions.append(
                partition(
                    f"{topic.name}-{index}",
                    held,
                    rate=rate,
                    size=int(rate * retention_s * draw.uniform(0.9, 1.0)),
                    read=rate * draw.choice([0, 1, 2, 3]),
                )
            )
    brokers = [Broker(BrokerId(b), ROOMY, f"rack-{b % 3}", state) for b, state in enumerate(states)]
    return _with_capacities(brokers, topics, partitions, 1 / shape.fill)


def _states(shape: Shape) -> list[BrokerState]:
    up = shape.brokers - shape.new - shape.draining
    parts: list[tuple[BrokerState, int]] = [
        ("draining", shape.draining), ("up", up), ("new", shape.new)
    ]  # fmt: skip
    return [state for state, times in parts for _ in range(times)]


def _with_capacities(
    brokers: list[Broker], topics: Mapping[str, Topic], partitions: list[Partition], factor: float
) -> Cluster:
    """Return a cluster whose usable brokers have so many times their mean load."""
    known = Cluster(tuple(brokers), topics, tuple(partitions))
    sums = [0.0] * 4
    for each in partitions:
        number = known.planned_replicas(each)
        leader, follower = replica_amounts(known, each, number)
        for place in range(4):
            sums[place] += leader[place] + (number - 1) * follower[place]
    usable = sum(each.usable for each in brokers)
    disk, into, out, _ = (factor * each / usable for each in sums)
    capacity = Amounts(disk, into, out, inf)
    same = (Broker(b.id, capacity, b.rack, b.state) for b in brokers)
    return Cluster(tuple(same), topics, tuple(partitions))


class _Draw:
    """One drawn small cluster."""

    def __init__(self, draw: Random) -> None:
        self._draw = draw
        self._count = draw.randint(3, 5)
        self._racks = draw.choice([None, 2, 3])
        self._states: list[BrokerState] = ["up"] * self._count
        self._event = draw.choice(["none", "none", "new", "draining", "down"])
        if self._event == "new":
            self._states[-1] = "new"
        if self._event in ("draining", "down") and self._count > 3:
            state: BrokerState = "down" if self._event == "down" else "draining"
            self._states[draw.randrange(self._count)] = state
        self._old = [b for b, state in enumerate(self._states) if state != "new"]
        self._usable = [b for b, state in enumerate(self._states) if state in ("up", "new")]

    def cluster(self) -> Cluster:
        """Draw topics and partitions, then capacities that are 1.4 to 2.7 times the mean load."""
        total, topics = self._draw.randint(10, 60), dict[str, Topic]()
        partitions: list[Partition] = []
        while len(partitions) < total:
            topic = self._topic(f"topic-{len(topics)}")
            topics[topic.name] = topic
            number = min(self._draw.randint(1, 12), total - len(partitions))
            partitions += self._partitions(topic, number)
        brokers = [
            Broker(BrokerId(b), ROOMY, self._rack(b), state) for b, state in enumerate(self._states)
        ]
        return _with_capacities(brokers, topics, partitions, self._draw.uniform(1.1, 2.2) / 0.8)

    def _rack(self, b: int) -> str | None:
        return None if self._racks is None else f"rack-{b % self._racks}"

    def _topic(self, name: str) -> Topic:
        draw = self._draw
        most = min(len(self._usable), len(self._old))
        stuck = self._event not in ("draining", "down") and draw.random() < 0.05
        barred = (
            frozenset(ids(draw.randrange(self._count))) if draw.random() < 0.05 else frozenset()
        )
        return Topic(
            name,
            min(draw.choice([1, 2, 2, 3, 3, 3]), most),
            draw.choice([None, HOUR_S, DAY_S]),
            draw.choice([None, None, 10**9]),
            rack_spread=draw.random() < 0.7,
            excluded=stuck,
            excluded_brokers=frozenset(() if stuck else barred),
        )

    def _partitions(self, topic: Topic, number: int) -> list[Partition]:
        draw, base = self._draw, self._draw.lognormvariate(11, 1)
        weights = {b: draw.random() ** 2 + 0.05 for b in self._old}
        return [self._partition(topic, index, base, weights) for index in range(number)]

    def _partition(
        self, topic: Topic, index: int, base: float, weights: Mapping[int, float]
    ) -> Partition:
        draw = self._draw
        rate = base * draw.lognormvariate(0, 0.5)
        size = int(rate * (topic.retention_s or DAY_S / 2) * draw.uniform(0.6, 1.0))
        left = dict(weights)
        held: list[int] = []
        for _ in range(topic.replication):
            held.append(draw.choices(list(left), list(left.values()))[0])
            del left[held[-1]]
        pins = held[:1] if draw.random() < 0.03 and held[0] in self._usable else []
        return partition(
            f"{topic.name}-{index}",
            held,
            rate=rate,
            size=min(size, topic.retention_bytes or size),
            read=rate * draw.choice([0, 1, 1, 2, 3]),
            pinned=[] if set(pins) & topic.excluded_brokers else pins,
        )
