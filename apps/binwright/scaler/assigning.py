"""Carries out what the assignment of a scaled group needs, before its order or instead of it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol

from binwright.protocol.errors import ExternalError
from binwright.protocol.group_plans import GroupPlan
from binwright.protocol.log_events import LogEvent
from binwright.runtime.clock import loop_s
from binwright.runtime.logs import log
from binwright.scaler.decide.assigning import Planner, choose_leaving, departed
from binwright.scaler.decide.config import ScaledGroupSettings
from binwright.scaler.decide.members import GroupDescription
from binwright.scaler.decide.sizing import Emptying, GroupSnapshot, ScalingState, Verdict
from binwright.scaler.ports import ScaledWorkload

MEMBERS_UNKNOWN = LogEvent.warning(
    "members.unknown",
    "Replicas are to end, and which members they run cannot be told: they end as they are, with "
    "what they read.",
)
PLAN_PUBLISHED = LogEvent.info(
    "plan.published",
    "A plan for an ordinary group was published, and the group is made to rebalance.",
)
ASSIGNMENT_REQUESTED = LogEvent.info(
    "assignment.requested",
    "The broker is made to assign a KIP-848 group anew, as its load would be more even.",
)
REPLICAS_EMPTYING = LogEvent.info(
    "replicas.emptying", "Replicas are to end, and their members give up what they read before."
)


class Plans(Protocol):
    """How plans reach the members of groups, as `kafka_plans.KafkaPlans` does it."""

    valid_s: float  # how long assignors follow a plan without hearing more

    async def publish(self, plan: GroupPlan) -> None:
        """Publish a plan; raise an `ExternalError` if that is not confirmed."""

    async def last(self, group: str) -> GroupPlan | None:
        """Return the plan of a group that was published last; raise an `ExternalError`."""

    async def rebalance(self, group: str, protocol: str, topic: str) -> None:
        """Have a group of this assignor and topic rebalance; raise an `ExternalError`."""

    async def request_assignment(self, group: str) -> None:
        """Have the broker assign a group of type "consumer" anew; raise an `ExternalError`."""


class WorkloadOrder(NamedTuple):
    """What a workload is to be set to now."""

    replicas: int | None  # None: nothing yet
    ending: Sequence[str] = ()  # names of replicas that end by it


@dataclass(frozen=True, slots=True)
class Assigner:
    """Assigns the partitions of scaled groups."""

    plans: Plans

    async def assign(  # noqa: PLR0917 - what was decided, and what it rests on
        self,
        config: ScaledGroupSettings,
        state: ScalingState,
        verdict: Verdict,
        snapshot: GroupSnapshot,
        seen: GroupDescription,
        workload: ScaledWorkload | None,
    ) -> tuple[ScalingState, WorkloadOrder]:
        """Publish the plan that is due, have the group rebalance if it must, and return the order.

        Without a workload, somebody else sets the number of members: no replica ends here.

        Raises:
            ExternalError: Kafka or the cluster does not answer: nothing is remembered of it.
        """
        if workload is not None and state.emptying is not None and verdict.step is None:
            replicas = await workload.replicas_of(seen.members)
            ending = [replicas[n].name for n in state.emptying.leaving if n in replicas]
            return state, WorkloadOrder(verdict.order, ending)
        if (step := verdict.step) is None:
            return state, WorkloadOrder(verdict.order)
        leaving: tuple[str, ...] = ()
        if workload is not None and step.empties:
            replicas = await workload.replicas_of(seen.members)
            gone = departed(state.plan, seen.members, verdict.current)
            members = {name: one for name, one in seen.members.items() if name not in gone}
            leaving = choose_leaving(members, snapshot.work.loads, replicas, step.members)
            if len(leaving) < len(members) - step.members:
                log(MEMBERS_UNKNOWN, group=config.group, leaving=leaving)
        in_broker = seen.type == "consumer"
        if state.plan is None and not in_broker:
            # Of an earlier scaler, or of an earlier time that this one led.
            state = replace(state, plan=await self.plans.last(config.group))
        rate = verdict.capacity or max(1.0, verdict.work.rate / max(1, verdict.current))
        planner = Planner(config=config, records_per_s=rate, valid_s=self.plans.valid_s)
        state, done = planner.plan(state, snapshot, seen, step, leaving)
        if done.plan is not None and not in_broker:
            await self.plans.publish(done.plan)
        # Members that join for a plan make the group rebalance themselves.
        grows = verdict.order is not None and verdict.order > verdict.current
        if done.plan is not None and done.rebalances and not grows:
            log(
                ASSIGNMENT_REQUESTED if in_broker else PLAN_PUBLISHED,
                group=config.group,
                generation=done.plan.generation,
                moved=done.moved,
                reason=done.reason,
            )
            if in_broker:
                return await self._ask_broker(config.group, state), WorkloadOrder(verdict.order)
            began_s = loop_s()
            topic = min(snapshot.work.loads).topic
            await self.plans.rebalance(config.group, seen.protocol, topic)
            state = replace(
                state,
                learnt=state.learnt.with_rebalance(loop_s() - began_s),
                rebalances=state.rebalances + 1,
                moved=state.moved + done.moved,
            )
        if not leaving:
            return state, WorkloadOrder(verdict.order)
        log(REPLICAS_EMPTYING, group=config.group, replicas=step.members, leaving=leaving)
        return replace(state, emptying=Emptying(step.members, leaving, loop_s())), WorkloadOrder(
            None
        )

    async def _ask_broker(self, group: str, state: ScalingState) -> ScalingState:
        """Have a broker assign; a request that failed counts, too, lest each pass repeat it."""
        state = replace(state, rebalances=state.rebalances + 1)
        try:
            await self.plans.request_assignment(group)
        except ExternalError as exc:
            assert state.request is not None
            state = replace(state, request=replace(state.request, refused=str(exc)))
        return state
