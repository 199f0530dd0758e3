"""When a plan for brokers is proposed: an imbalance or a forecast crosses a threshold."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from binwright.balancer.decide.forecast import RateLine, forecast
from binwright.balancer.decide.loads import Imbalance, LoadLimits, imbalance
from binwright.balancer.decide.model import NETWORK, BrokerId, Cluster, Placement, Resource


@dataclass(frozen=True, slots=True, kw_only=True)
class Thresholds:
    """When a plan is proposed.

    Attributes:
        imbalance: Largest use of a resource, in units of its mean.
        within_days: Within which a broker will be full.
        least_network: Bytes/s of a broker, on average, below which the imbalance of a network does
            not count: that of an idle cluster is another one with every look.
    """

    imbalance: float
    within_days: float
    least_network: float = 0.0


CrossingKey = tuple[BrokerId, Resource, bool]
"""Broker, resource, and whether the broker will be full or has too much of the load."""


@dataclass(frozen=True, slots=True)
class Crossing:
    """A threshold that a cluster crosses.

    Attributes:
        broker: Which broker crosses it.
        resource: Of which.
        full: Whether the broker will be full; else it has too much of the load.
        text: For people, with numbers.
    """

    broker: BrokerId
    resource: Resource
    full: bool
    text: str

    @property
    def key(self) -> CrossingKey:
        """Return what stays the same while only the numbers change."""
        return self.broker, self.resource, self.full


def imbalances(
    cluster: Cluster, thresholds: Thresholds, placement: Placement | None = None
) -> tuple[Imbalance, ...]:
    """Return how uneven each resource is that carries enough to count.

    Args:
        cluster: The cluster.
        thresholds: How much that is.
        placement: Where its replicas are; None: as today.
    """
    return tuple(
        each
        for each in imbalance(cluster, placement)
        if each.resource not in NETWORK or each.load >= thresholds.least_network
    )


def crossings(
    cluster: Cluster, trends: Mapping[str, RateLine], thresholds: Thresholds, limits: LoadLimits
) -> Iterator[Crossing]:
    """Yield each threshold that a cluster crosses, now or by the trend of its topics.

    None while a broker is down: a plan would copy all that it holds, and it may be back soon.

    Args:
        cluster: As it is.
        trends: By topic.
        thresholds: That may be crossed.
        limits: Of each broker; `inf` where its capacity is not known, so that it is never full.
    """
    if any(broker.state == "down" for broker in cluster.brokers):
        return
    for each in imbalances(cluster, thresholds):
        if each.factor > thresholds.imbalance:
            text = f"{each.resource} of broker {each.broker} is {each.factor:.2f} of the mean"
            yield Crossing(each.broker, each.resource, full=False, text=text)
    for short in forecast(cluster, trends, thresholds.within_days, limits) if trends else ():
        text = f"{short.resource} of broker {short.broker} is full in {short.in_days:.1f} days"
        yield Crossing(short.broker, short.resource, full=True, text=text)
