"""Who reads what while the number of a group's replicas changes: plans come before members.

A plan for more members is published before they join, so that each takes its bin in the rebalance
of its own join. A plan for fewer names the members that leave; their replicas end when the others
read every partition. `with_assignment` puts a verdict's order in its place in this course.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from binwright.protocol.group_plans import GroupPlan
from binwright.protocol.model import Assignment, Slot, TopicPartition
from binwright.scaler.decide.broker_requests import BrokerRequest
from binwright.scaler.decide.config import ScaledGroupSettings
from binwright.scaler.decide.even_bins import BinsProposal, even_out, imbalance
from binwright.scaler.decide.least_loaded import Bins, assign, owned
from binwright.scaler.decide.members import (
    COOPERATIVE,
    EAGER,
    STABLE,
    GroupDescription,
    Members,
    in_order,
    owners,
)
from binwright.scaler.decide.plan_publication import (
    COOLDOWN_S,
    PAUSE_S,
    GroupState,
    PlanPublication,
    PlanPublisher,
    Rebalance,
)
from binwright.scaler.decide.policy import Loads, Observation
from binwright.scaler.decide.sizing import (
    AssignmentStep,
    Emptying,
    GroupSnapshot,
    ScalingState,
    Verdict,
)
from binwright.scaler.decide.sla_packing import SlaPacking

SETTLE_S = 60.0
"""A group that rebalances for longer is scaled without a plan."""
EMPTY_S = 60.0
"""A replica that still reads something after this time is taken away all the same."""
TOLERANCE = 0.1
"""By which share of the mean the largest load of a member may exceed it."""


class Replica(NamedTuple):
    """What runs a member."""

    name: str  # by which its workload knows it
    number: int | None = None  # the highest ones end first; None: any one can be ended


def with_assignment(
    config: ScaledGroupSettings,
    state: ScalingState,
    snapshot: GroupSnapshot,
    verdict: Verdict,
    seen: GroupDescription,
) -> tuple[ScalingState, Verdict]:
    """Return the state and the verdict with what is to be assigned before its order, or instead.

    Args:
        config: Of the group.
        state: With what was decided so far.
        snapshot: That the verdict rests on.
        verdict: What the group needs, as if others assigned its partitions.
        seen: The group's members.
    """
    if verdict.blocked or config.paused or config.mode == "observe" or not snapshot.work.loads:
        return replace(state, emptying=None), verdict
    rates = {p: load.rate for p, load in snapshot.work.loads.items()}
    if seen.members and not snapshot.work.missing:
        read = [tuple(each.owned) for each in seen.members.values()]
        verdict = replace(verdict, imbalance=imbalance(read, rates))
    alive = len(seen.members) - len(departed(state.plan, seen.members, verdict.current))
    is_settled = not seen.members or (seen.state == STABLE and alive <= verdict.current)
    now_s = snapshot.now_s
    since_s = now_s if state.unsettled_since_s is None else state.unsettled_since_s
    state = replace(state, unsettled_since_s=None if is_settled else since_s)
    if is_settled:
        reading = sum(bool(one.owned) for one in seen.members.values())
        state = replace(state, learnt=state.learnt.with_readers(now_s, reading))
    if not is_settled and now_s - since_s < SETTLE_S:
        return state, _held(verdict, "the group is rebalancing")
    uses = seen.protocol if seen.members else COOPERATIVE
    if not is_settled or uses not in {COOPERATIVE, EAGER}:
        why = f"uses the assignor {uses or '(none)'}" if is_settled else "does not become stable"
        text = f"nothing is assigned: the group {why}"
        fault = verdict.fault or (text if snapshot.workload.of_others else "")
        reasons = (*verdict.reasons, text)
        return replace(state, emptying=None), replace(verdict, reasons=reasons, fault=fault)
    if state.emptying is not None:
        return _emptied(config, state, snapshot, verdict, seen, state.emptying)
    if verdict.order is None:
        # The number stays: the load is evened out if that is worth a rebalance.
        if config.mode != "act" or not seen.members or snapshot.work.missing:
            return state, verdict
        return state, _evened_out(state, snapshot, verdict, seen)
    if verdict.order == 0 or seen.type == "consumer":
        return state, verdict  # the broker assigns by load whenever a member joins or leaves
    shrinks = verdict.order < verdict.current and bool(seen.members)
    step = AssignmentStep(members=verdict.order, is_required=True, empties=shrinks)
    return state, replace(verdict, step=step)


def _evened_out(
    state: ScalingState, snapshot: GroupSnapshot, verdict: Verdict, seen: GroupDescription
) -> Verdict:
    """Have a group evened out whose number stays, and show if its broker does not do that."""
    step = AssignmentStep(members=max(1, verdict.current), is_required=False)
    verdict = replace(verdict, step=step)
    is_uneven = verdict.imbalance is not None and verdict.imbalance > 1 + TOLERANCE
    text = state.request.fault(seen.members) if is_uneven and state.request else ""
    if not text:
        return verdict
    fault = verdict.fault or (text if snapshot.workload.of_others else "")
    return replace(verdict, reasons=(*verdict.reasons, text), fault=fault)


def _emptied(  # noqa: PLR0917 - what was decided, and what it rests on
    config: ScaledGroupSettings,
    state: ScalingState,
    snapshot: GroupSnapshot,
    verdict: Verdict,
    seen: GroupDescription,
    emptying: Emptying,
) -> tuple[ScalingState, Verdict]:
    """Go on with the emptying of replicas, end them, or take it back if the load has returned."""
    least = config.bounds_at(snapshot.wall_s).least
    is_enough = len(verdict.packing) <= emptying.replicas
    if not (is_enough and least <= emptying.replicas < verdict.current):
        number = max(verdict.current, verdict.wanted)
        step = AssignmentStep(members=number, is_required=True)
        order = number if number > verdict.current else None
        return replace(state, emptying=None), replace(verdict, order=order, step=step)
    passed_s = snapshot.now_s - emptying.since_s
    if not (is_empty(seen.members, snapshot.work.loads, emptying) or passed_s > EMPTY_S):
        return state, _held(verdict, f"partitions move to {emptying.replicas} replicas")
    return state, replace(verdict, wanted=emptying.replicas, order=emptying.replicas)


def _held(verdict: Verdict, reason: str) -> Verdict:
    return replace(verdict, order=None, reasons=(*verdict.reasons, reason))


def departed(plan: GroupPlan | None, members: Members, replicas: int) -> tuple[str, ...]:
    """Return the members whose replicas have ended and that the group still counts.

    A process that is killed, or that has a `group.instance.id`, leaves when its session ends.

    Args:
        plan: That was published last.
        members: Of the group.
        replicas: That there are.
    """
    if plan is None or len(members) <= replicas:
        return ()
    return tuple(name for name in in_order(members) if name in plan.leaving)


def is_empty(members: Members, loads: Loads, emptying: Emptying) -> bool:
    """Return whether the members that leave read nothing, and the others have all of it.

    By Kafka's protocol a partition has its next reader only after the one before it has given it
    up, and committed what it has read of it.
    """
    stay = {name: one for name, one in members.items() if name not in emptying.leaving}
    if any(one.owned for name, one in members.items() if name not in stay):
        return False
    read = {partition for one in stay.values() for partition in one.owned}
    topics = {topic for one in stay.values() for topic in one.topics}
    return all(partition in read for partition in loads if partition.topic in topics)


def choose_leaving(
    members: Members, loads: Loads, replicas: Mapping[str, Replica], wanted: int
) -> tuple[str, ...]:
    """Return the members that end when there are to be `wanted` replicas.

    Of a workload that takes its highest numbers away these; else those with the least load.

    Args:
        members: Of the group.
        loads: Of its partitions.
        replicas: Member id -> what runs it; members of which that is not known stay.
        wanted: Replicas that are to stay.
    """
    numbers = {name: replicas[name].number for name in in_order(members) if name in replicas}
    if any(number is not None for number in numbers.values()):
        return tuple(n for n, number in numbers.items() if number is not None and number >= wanted)

    def load(name: str) -> tuple[float, int]:
        inside = members[name].owned
        return sum(loads[p].rate for p in inside if p in loads), len(inside)

    return tuple(sorted(numbers, key=load)[: max(0, len(members) - wanted)])


def planned(policy: SlaPacking, loads: Loads, current: Assignment, members: int) -> Bins:
    """Return a bin for each member: as even as few moves make it, if that keeps the SLA.

    If it does not, and the packing by which the group is sized does, it is that packing.

    Args:
        policy: By which the group is sized.
        loads: Of its partitions.
        current: Who reads what, by slots; slots from `members` on are of members that leave.
        members: That there are to be, > 0.
    """
    shares = {p: one.rate for p, one in policy.shares(loads).items()}
    even = even_out(shares, current, members, TOLERANCE)
    packed = policy.bins(loads, policy.up)
    slots = {p: Slot(number) for number, inside in enumerate(even) for p in inside}
    seen = Observation(time_s=0.0, loads=loads, replicas=members, assignment=slots)
    if len(packed) > members or not policy.is_uneven(seen, packed):
        return even
    by_slot = assign(packed + ((),) * (members - len(packed)), current)
    bins: list[list[TopicPartition]] = [[] for _ in range(members)]
    for partition, slot in sorted(by_slot.items()):
        bins[slot].append(partition)
    return tuple(map(tuple, bins))


@dataclass(frozen=True, slots=True, kw_only=True)
class Planner:
    """Decides which plan of a group is published, in one step of its assignment."""

    config: ScaledGroupSettings
    records_per_s: float  # that one replica serves, > 0
    valid_s: float  # how long assignors follow a plan without hearing more

    def plan(
        self,
        state: ScalingState,
        snapshot: GroupSnapshot,
        seen: GroupDescription,
        step: AssignmentStep,
        leaving: tuple[str, ...] = (),
    ) -> tuple[ScalingState, PlanPublication]:
        """Return what to publish, and the state once it is.

        Args:
            state: Of the group.
            snapshot: Its loads; at least one partition.
            seen: Its members.
            step: For how many members it is.
            leaving: Members that are to read nothing.
        """
        loads = snapshot.work.loads
        leaving += departed(state.plan, seen.members, snapshot.workload.replicas)
        stay = [name for name in in_order(seen.members) if name not in leaving]
        slots = {name: Slot(number) for number, name in enumerate(stay)}
        reads = owners(seen.members)
        current = {p: slots[name] for p, name in reads.items() if name in slots and p in loads}
        number = max(step.members, len(stay))
        policy = self.config.packing_policy(
            self.records_per_s, self.config.bounds, len(loads), self.config.times(state.learnt)
        )
        bins = planned(policy, loads, current, number)
        pause_s, asked = self.config.rebalance_s, state.request
        publisher = PlanPublisher(
            capacity=policy.capacity,
            rebalance=Rebalance(
                pause_s=state.learnt.rebalance_s.known(PAUSE_S) if pause_s is None else pause_s,
                stops_all=seen.protocol == EAGER,
                cooldown_s=COOLDOWN_S if asked is None else asked.cooldown_s(seen.members),
            ),
            valid_s=self.valid_s,
            plan=state.plan,
            rebalanced_s=state.rebalanced_s,
        )
        group = GroupState(
            group=self.config.group,
            members=seen.members,
            loads=loads,
            now_s=snapshot.now_s,
            now_ms=round(1000 * snapshot.wall_s),
        )
        same = list(owned(current)) == [sorted(inside) for inside in bins if inside]
        proposal = None
        if step.is_required or not same:
            proposal = BinsProposal(bins, f"for {number} members", leaving)
        done, after = publisher.decide(group, proposal, is_required=step.is_required)
        if done.rebalances and seen.type == "consumer":
            asked = asked.again(seen.members) if asked else BrokerRequest(reads)
        state = replace(state, plan=after.plan, rebalanced_s=after.rebalanced_s, request=asked)
        return state, done
