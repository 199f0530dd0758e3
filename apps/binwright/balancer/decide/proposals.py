"""Plans for brokers that wait or run: the records of their topic, and what follows from them.

All of it is in the topic, so a number stays valid and the budget is kept under another leader.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from binwright.balancer.decide.loads import Imbalance, imbalance
from binwright.balancer.decide.model import BrokerId, Cluster, Placement, Resource, current
from binwright.balancer.decide.plans import PlacementPlan
from binwright.balancer.decide.thresholds import Crossing, Thresholds, imbalances
from binwright.balancer.ports import ClusterState
from binwright.protocol import wire
from binwright.protocol.fields import Number, Offset, Partition
from binwright.protocol.model import TopicPartition

HOUR_MS = 3_600_000
BrokerMode = Literal["approve", "act"]
MORE_BYTES, MORE_UNEVEN = 1.25, 1.1
"""How much more than a planner's plan another one may copy, and leave a resource uneven."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokersProposed:
    """A plan for brokers is shown; the record's offset is its number."""

    group: str  # whose balancer proposes it, and may carry it out
    reasons: tuple[str, ...]  # the thresholds that the cluster crosses
    bytes: Number  # that it copies
    before: Mapping[Partition, tuple[Number, ...]]  # of what it moves: replicas, the first leads
    after: Mapping[Partition, tuple[Number, ...]]  # the same in the plan
    waits: bool  # for an approval (mode approve); else it is carried out at once (mode act)
    kind: Literal["brokers-proposed/1"] = "brokers-proposed/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokersApproved:
    """A person approves exactly this plan for brokers."""

    plan: Offset  # its number
    by: str  # a name for people; it proves nothing
    kind: Literal["brokers-approved/1"] = "brokers-approved/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class CopiesStarted:
    """A plan for brokers goes ahead, and these bytes count against the budget for an hour."""

    plan: Offset  # its number
    bytes: Number  # of the copies that start now; 0: the plan itself starts
    at_ms: Number  # wall clock, ms since 1970
    kind: Literal["copies-started/1"] = "copies-started/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokersEnded:
    """A plan for brokers is over; what was being copied is taken back."""

    plan: Offset  # its number
    done: bool  # whether all is in place; else it is withdrawn
    reason: str  # for people
    kind: Literal["brokers-ended/1"] = "brokers-ended/1"


BrokerPlanRecord = BrokersProposed | BrokersApproved | CopiesStarted | BrokersEnded
"""Records of the topic of plans for brokers."""
decode_record: wire.Decode[BrokerPlanRecord] = wire.decoder(BrokerPlanRecord)
"""Reads one of them."""


@dataclass(frozen=True, slots=True)
class BrokerPlan:
    """A plan that is not over."""

    number: int
    proposed: BrokersProposed
    approved: bool = False
    by: str = ""  # who approved it, for people
    started: bool = False

    @property
    def goes_ahead(self) -> bool:
        """Whether a leader may carry it out."""
        return self.approved or not self.proposed.waits


@dataclass(frozen=True, slots=True)
class BrokerPlans:
    """The plans that are not over, one for each group, and what has begun to be copied lately."""

    by_group: Mapping[str, BrokerPlan] = field(default_factory=dict)
    copies: tuple[CopiesStarted, ...] = ()

    def applied(self, offset: int, message: BrokerPlanRecord) -> "BrokerPlans":
        """Return them after a record; one about a plan that is over changes nothing."""
        match message:
            case BrokersProposed():
                return self._with(BrokerPlan(offset, message))
            case CopiesStarted():
                recent = self._recent(message.at_ms)
                started = self._changed(message.plan, lambda plan: replace(plan, started=True))
                return replace(started, copies=(*recent, message))
            case BrokersApproved(by=by):
                return self._changed(
                    message.plan,
                    lambda plan: replace(plan, approved=True, by=plan.by or by),
                )
            case _:
                left = {g: p for g, p in self.by_group.items() if p.number != message.plan}
                return replace(self, by_group=left)

    def numbered(self, number: int) -> BrokerPlan | None:
        """Return the plan of this number if it is not over."""
        return next((each for each in self.by_group.values() if each.number == number), None)

    def last_hour_bytes(self, now_ms: int) -> int:
        """Return what began to be copied within the last hour, of all plans."""
        return sum(each.bytes for each in self._recent(now_ms))

    def _recent(self, now_ms: int) -> Iterator[CopiesStarted]:
        return (each for each in self.copies if each.at_ms > now_ms - HOUR_MS)

    def _with(self, plan: BrokerPlan) -> "BrokerPlans":
        return replace(self, by_group={**self.by_group, plan.proposed.group: plan})

    def _changed(self, number: int, change: Callable[[BrokerPlan], BrokerPlan]) -> "BrokerPlans":
        plan = self.numbered(number)
        return self if plan is None else self._with(change(plan))


def proposal_of(
    plan: PlacementPlan, crossed: tuple[Crossing, ...], group: str, mode: BrokerMode
) -> BrokersProposed | None:
    """Return the record that proposes a plan; None: it moves nothing."""
    if not plan.moves:
        return None
    return BrokersProposed(
        group=group,
        reasons=tuple(each.text for each in crossed),
        bytes=plan.bytes,
        before={move.partition: tuple(map(int, move.before)) for move in plan.moves},
        after={move.partition: tuple(map(int, move.after)) for move in plan.moves},
        waits=mode == "approve",
    )


def outdated_reason(
    plan: BrokerPlan,
    mode: BrokerMode,
    state: ClusterState,
    cluster: Cluster,
    crossed: tuple[Crossing, ...],
) -> str | None:
    """Return what has changed since a plan was proposed; None: nothing that matters.

    A plan that has started goes on, whatever the load is, unless its partitions are elsewhere.

    Args:
        plan: The plan.
        mode: Of the settings now.
        state: As Kafka reports it.
        cluster: The model of it.
        crossed: The thresholds that it crosses.
    """
    proposed = plan.proposed
    if proposed.waits != (mode == "approve"):
        return "brokers.mode has changed"
    if (moved := next(_elsewhere(proposed, state), None)) is not None:
        return moved
    if plan.started:
        return None
    wanted = {broker for replicas in proposed.after.values() for broker in replicas}
    if down := sorted(wanted - state.racks.keys()):
        return f"broker {down[0]} is down"
    if not crossed:
        return "no threshold is crossed by now"
    resources = {each.resource for each in crossed}
    return (
        None if _helps(proposed, cluster, resources) else "it evens out nothing by the present load"
    )


def before_plan(cluster: Cluster, proposed: BrokersProposed) -> Cluster:
    """Return a cluster with what a plan moves where it was when the plan was proposed."""
    earlier = _placed(proposed.before, cluster)
    partitions = tuple(
        replace(each, replicas=earlier.get(each.id, each.replicas)) for each in cluster.partitions
    )
    return replace(cluster, partitions=partitions)


def is_found_again(
    proposed: BrokersProposed, cluster: Cluster, best: PlacementPlan, thresholds: Thresholds
) -> bool:
    """Whether a plan is as good as what a planner finds: it copies as little, and is as even.

    Between two looks sizes and rates change a little, and then a planner finds other moves.

    Args:
        proposed: The plan.
        cluster: With what the plan moves where it was before.
        best: Of the planner, for that cluster.
        thresholds: Of the settings: what carries little is as even as it happens to be.
    """
    size = {each.id: each.size_bytes for each in cluster.partitions}
    planned, now = _placed(proposed.after, cluster), current(cluster)
    if not planned.keys() == proposed.after.keys() <= size.keys():
        return False
    copied = sum(size[p] * len({*after} - {*now[p]}) for p, after in planned.items())
    if copied > MORE_BYTES * best.bytes:
        return False

    def uses(placement: Placement) -> dict[Resource, float]:
        return _uses(imbalances(cluster, thresholds, placement))

    uneven, wanted = uses(now), uses(best.placement)
    return all(
        use <= MORE_UNEVEN * _bound(uneven.get(resource, 1.0), wanted.get(resource, 1.0))
        for resource, use in uses({**now, **planned}).items()
    )


def _bound(uneven: float, wanted: float) -> float:
    """Return how even a resource has to be: as in the planner's plan, if that evens it out."""
    return wanted if wanted * MORE_UNEVEN < uneven else max(uneven, wanted)


def _placed(
    replicas: Mapping[TopicPartition, tuple[int, ...]], cluster: Cluster
) -> dict[TopicPartition, tuple[BrokerId, ...]]:
    """Return replicas by the brokers of a cluster; left out is what names one that it has not."""
    by_number = {int(broker.id): broker.id for broker in cluster.brokers}
    return {
        partition: tuple(by_number[number] for number in numbers)
        for partition, numbers in replicas.items()
        if by_number.keys() >= {*numbers}
    }


def _uses(imbalanced: Iterable[Imbalance]) -> dict[Resource, float]:
    """Return the largest use of each resource, in units of its mean."""
    return {each.resource: each.factor for each in imbalanced}


def _elsewhere(proposed: BrokersProposed, state: ClusterState) -> Iterator[str]:
    """Yield the partitions that are neither where they were nor where they are to be."""
    for partition, before in sorted(proposed.before.items()):
        if partition not in state.partitions:
            yield f"{partition} is gone"
        elif {*state.placed(partition)} not in ({*before}, {*proposed.after[partition]}):
            yield f"{partition} was moved by somebody else"


def _helps(proposed: BrokersProposed, cluster: Cluster, resources: Collection[Resource]) -> bool:
    """Whether the largest use of any of these resources, in units of its mean, gets smaller."""
    planned, now = _placed(proposed.after, cluster), current(cluster)
    before, after = (
        max((use for resource, use in factors.items() if resource in resources), default=1.0)
        for factors in (
            _uses(imbalance(cluster, placement)) for placement in (now, {**now, **planned})
        )
    )
    return after < before
