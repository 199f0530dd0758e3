"""Whether a plan for an ordinary consumer group is published, and is worth a rebalance."""

from dataclasses import dataclass, replace

from binwright.protocol.group_plans import GroupPlan
from binwright.protocol.model import TopicPartition
from binwright.scaler.decide.even_bins import BinsProposal
from binwright.scaler.decide.mapping import target
from binwright.scaler.decide.members import Members, Owners, in_order, owners
from binwright.scaler.decide.policy import Loads, PartitionLoad, ReplicaCapacity, total

PAUSE_S = 3.0
"""For how long a partition that moves is not read: by default Kafka's own heartbeat interval."""
COOLDOWN_S = 30.0
"""From one rebalance that was asked for to the next."""
REPEATS = 3
"""How often a plan is published within its validity, so that one lost record does no harm."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rebalance:
    """What a rebalance costs, and how often there may be one."""

    pause_s: float  # how long a partition that moves is not read: about a heartbeat interval
    stops_all: bool = False  # eager protocol: partitions that stay are not read meanwhile either
    payback_s: float = 60.0  # within which it must spare more late records than it makes
    cooldown_s: float = COOLDOWN_S  # from one rebalance that was asked for to the next
    busy: float = 0.9  # share of its capacity from which a member's load counts as too much


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupState:
    """What is known of a group at one time."""

    group: str
    members: Members  # empty: a plan is for members that join later
    loads: Loads  # of all its partitions
    now_s: float  # monotonic
    now_ms: int  # wall clock, ms since 1970


@dataclass(frozen=True, slots=True)
class PlanPublication:
    """What is to be done now."""

    plan: GroupPlan | None  # to be published; None: nothing
    reason: str  # for people
    rebalances: bool = False  # whether the group is to rebalance once it is published
    moved: int = 0  # partitions that get another reader by the rebalance


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanPublisher:
    """Decides for one group; the plan that was published last is the only thing it remembers."""

    capacity: ReplicaCapacity
    rebalance: Rebalance
    valid_s: float = 600.0  # how long assignors follow a plan without hearing more
    plan: GroupPlan | None = None  # the last one
    rebalanced_s: float | None = None  # when a rebalance was asked for last

    def decide(
        self, state: GroupState, proposal: BinsProposal | None, *, is_required: bool = False
    ) -> "tuple[PlanPublication, PlanPublisher]":
        """Return what to do, and this after it is done.

        Args:
            state: Of the group, which must not be within a rebalance.
            proposal: Other bins; None: those that it has do.
            is_required: Whether the proposal is followed though it makes no record less late, as
                when a scaler takes a member away.
        """
        before = owners(state.members)
        if proposal is None:
            return self._kept(state, before, "rate and lag fit")
        plan = self._plan(state, proposal)
        after = target(plan.bins, state.members, state.loads, plan.leaving)
        moved = [p for p, name in after.items() if before.get(p) not in {None, name}]
        unread = [p for p in after if p not in before]
        if not (moved or unread):
            if self.plan is not None and _assigns_the_same(self.plan, plan):
                return self._kept(state, before, proposal.reason)
            return self._publish(state, plan, PlanPublication(plan, proposal.reason))
        if not is_required:
            if self._cools(state):
                return self._kept(state, before, "the last rebalance is too recent")
            spared, delayed = self._worth(state, before, after, moved)
            employs = len(set(after.values())) > len(set(before.values()))
            if not (unread or employs) and spared <= delayed:
                reason = f"a rebalance spares {spared:.0f} late records and delays {delayed:.0f}"
                return self._kept(state, before, reason)
        done = PlanPublication(plan, proposal.reason, rebalances=True, moved=len(moved))
        return self._publish(state, plan, done)

    def _kept(
        self, state: GroupState, before: Owners, reason: str
    ) -> "tuple[PlanPublication, PlanPublisher]":
        """Repeat the last plan when that is due; a group without one in force gets what it has.

        A plan that was in force no more was not followed: the group has changed without it.
        """
        if self.plan is None or not self.plan.is_valid(state.now_ms):
            bins = tuple(
                tuple(sorted(p for p, one in before.items() if one == name and p in state.loads))
                for name in in_order(state.members)
            )
            plan = self._plan(state, BinsProposal(bins, "what the members read"))
            return self._publish(state, plan, PlanPublication(plan, reason))
        if state.now_ms - self.plan.at_ms < 1000 * self.valid_s / REPEATS:
            return PlanPublication(None, reason), self
        again = replace(self.plan, at_ms=state.now_ms)
        return self._publish(state, again, PlanPublication(again, reason))

    def _publish(
        self, state: GroupState, plan: GroupPlan, done: PlanPublication
    ) -> "tuple[PlanPublication, PlanPublisher]":
        after = replace(self, plan=plan)
        return done, replace(after, rebalanced_s=state.now_s) if done.rebalances else after

    def _plan(self, state: GroupState, proposal: BinsProposal) -> GroupPlan:
        unit = self.capacity.rate / 1000
        return GroupPlan(
            group=state.group,
            generation=self.plan.generation + 1 if self.plan else 0,
            at_ms=state.now_ms,
            valid_ms=round(1000 * self.valid_s),
            bins=tuple(
                {p: round(state.loads[p].rate / unit) for p in inside} for inside in proposal.bins
            ),
            reason=proposal.reason,
            leaving=proposal.leaving,
        )

    def _cools(self, state: GroupState) -> bool:
        since = self.rebalanced_s
        return since is not None and state.now_s - since < self.rebalance.cooldown_s

    def _worth(
        self, state: GroupState, before: Owners, after: Owners, moved: list[TopicPartition]
    ) -> tuple[float, float]:
        """Return the late records that a rebalance spares within the payback, and makes.

        What arrives while nobody reads a partition is late when the pause is longer than the SLA.
        """
        spared = self._late(state, before) - self._late(state, after)
        paused = after if self.rebalance.stops_all else moved
        is_late = self.rebalance.pause_s > self.capacity.sla_s
        rate = sum(state.loads[p].rate for p in paused)
        return spared, rate * self.rebalance.pause_s * is_late

    def _late(self, state: GroupState, reads: Owners) -> float:
        """Return the records that these readers serve too late within the payback."""
        of_members: dict[str, list[PartitionLoad]] = {name: [] for name in state.members}
        for partition, name in reads.items():
            if partition in state.loads:
                of_members[name].append(state.loads[partition])
        return sum(self._late_of(total(loads)) for loads in of_members.values())

    def _late_of(self, load: PartitionLoad) -> float:
        """Return the late records of one member.

        What waits beyond what it serves within the SLA is late, and what arrives until that is
        worked off; without such a lag, what arrives beyond what it serves.
        """
        served, in_time = self.capacity.bin(self.rebalance.busy)
        behind, spare = max(0.0, load.lag - in_time), served - load.rate
        payback_s = self.rebalance.payback_s
        if not behind:
            return payback_s * max(0.0, -spare)
        late_s = min(payback_s, behind / spare) if spare > 0 else payback_s
        return behind + load.rate * late_s


def _assigns_the_same(one: GroupPlan, other: GroupPlan) -> bool:
    """Return whether two plans differ in loads alone."""
    return one.leaving == other.leaving and list(map(set, one.bins)) == list(map(set, other.bins))
