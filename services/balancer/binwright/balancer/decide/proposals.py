"""Plans for brokers that wait or run: what the records of their topic say, and what follows.

All of it is in the topic, so a number stays valid and the budget is kept under another leader.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from binwright.balancer.decide.amounts import Resource
from binwright.balancer.decide.cluster import Cluster, current
from binwright.balancer.decide.lines import Crossing
from binwright.balancer.decide.loads import imbalance
from binwright.balancer.decide.plans import Plan
from binwright.balancer.ports import ClusterState, Replicas
from binwright.protocol.broker_plans import (
    BrokerPlanRecord,
    BrokersApproved,
    BrokersProposed,
    CopiesStarted,
)
from binwright.protocol.model import TopicPartition

HOUR_MS = 3_600_000
Mode = Literal["approve", "act"]


@dataclass(frozen=True, slots=True)
class Proposal:
    """A plan that is not over."""

    number: int
    plan: BrokersProposed
    approved: bool = False
    started: bool = False

    @property
    def goes_ahead(self) -> bool:
        """Whether a leader may carry it out."""
        return self.approved or not self.plan.waits


@dataclass(frozen=True, slots=True)
class Proposals:
    """The plans that are not over, one for each group, and what has begun to be copied lately."""

    by_group: Mapping[str, Proposal] = field(default_factory=dict)
    copies: tuple[CopiesStarted, ...] = ()

    def applied(self, offset: int, message: BrokerPlanRecord) -> "Proposals":
        """Return them after a record; one about a plan that is over changes nothing."""
        match message:
            case BrokersProposed():
                return self._with(Proposal(offset, message))
            case CopiesStarted():
                found = self._recent(message.at_ms)
                return replace(self._changed(message.plan, started=True), copies=(*found, message))
            case BrokersApproved():
                return self._changed(message.plan, approved=True)
            case _:
                left = {g: p for g, p in self.by_group.items() if p.number != message.plan}
                return replace(self, by_group=left)

    def numbered(self, number: int) -> Proposal | None:
        """Return the plan of this number if it is not over."""
        return next((each for each in self.by_group.values() if each.number == number), None)

    def last_hour_bytes(self, now_ms: int) -> int:
        """Return what began to be copied within the last hour, of all plans."""
        return sum(each.bytes for each in self._recent(now_ms))

    def _recent(self, now_ms: int) -> Iterator[CopiesStarted]:
        return (each for each in self.copies if each.at_ms > now_ms - HOUR_MS)

    def _with(self, proposal: Proposal) -> "Proposals":
        return replace(self, by_group={**self.by_group, proposal.plan.group: proposal})

    def _changed(
        self, number: int, *, approved: bool = False, started: bool = False
    ) -> "Proposals":
        found = self.numbered(number)
        if found is None:
            return self
        changed = replace(
            found, approved=approved or found.approved, started=started or found.started
        )
        return self._with(changed)


def proposal_of(
    plan: Plan, crossed: tuple[Crossing, ...], group: str, mode: Mode
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
    proposal: Proposal,
    mode: Mode,
    state: ClusterState,
    cluster: Cluster,
    crossed: tuple[Crossing, ...],
) -> str | None:
    """Return what has changed since a plan was proposed; None: nothing that matters.

    A plan that has started goes on, whatever the load is, unless its partitions are elsewhere.

    Args:
        proposal: The plan.
        mode: Of the settings now.
        state: As Kafka reports it.
        cluster: The model of it.
        crossed: The lines that it crosses.
    """
    plan = proposal.plan
    if plan.waits != (mode == "approve"):
        return "brokers.mode has changed"
    if (moved := next(_elsewhere(plan, state), None)) is not None:
        return moved
    if proposal.started:
        return None
    wanted = {broker for replicas in plan.after.values() for broker in replicas}
    if down := sorted(wanted - state.racks.keys()):
        return f"broker {down[0]} is down"
    if not crossed:
        return "no line is crossed by now"
    resources = {each.resource for each in crossed}
    return None if _helps(plan, cluster, resources) else "it evens out nothing by the present load"


def _elsewhere(plan: BrokersProposed, state: ClusterState) -> Iterator[str]:
    """Yield the partitions that are neither where they were nor where they are to be."""
    for partition, before in sorted(plan.before.items()):
        if partition not in state.partitions:
            yield f"{partition} is gone"
        elif {*_placed(partition, state)} not in ({*before}, {*plan.after[partition]}):
            yield f"{partition} was moved by somebody else"


def _placed(partition: TopicPartition, state: ClusterState) -> Replicas:
    under_way = state.reassignments.get(partition)
    return state.partitions[partition].replicas if under_way is None else under_way.target


def _helps(plan: BrokersProposed, cluster: Cluster, resources: Collection[Resource]) -> bool:
    """Whether the largest use of any of these resources, in units of its mean, gets smaller."""
    now = current(cluster)
    by_number = {int(broker.id): broker.id for broker in cluster.brokers}
    planned = {
        partition: tuple(by_number[broker] for broker in replicas)
        for partition, replicas in plan.after.items()
    }
    before, after = (
        max(
            (each.factor for each in imbalance(cluster, placement) if each.resource in resources),
            default=1.0,
        )
        for placement in (now, {**now, **planned})
    )
    return after < before
