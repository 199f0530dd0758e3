"""The state of a scaled group: how many replicas to order now, with reasons.

`decide` gets a snapshot of the group, and returns the next state and a verdict; `ordered`
records that an order was carried out. A group whose replicas another manager has changed is left
alone for `LEFT_ALONE_S`: two that set the same number never take turns.
"""

from dataclasses import dataclass, field, replace
from math import ceil

from binwright.protocol.group_plans import GroupPlan
from binwright.protocol.model import TopicPartition
from binwright.protocol.texts import first_of
from binwright.scaler.decide.broker_requests import BrokerRequest
from binwright.scaler.decide.config import UP, Bounds, ScaledGroupSettings, Times
from binwright.scaler.decide.lags import Baseline, Work, to_be_sized
from binwright.scaler.decide.learning import Learnt
from binwright.scaler.decide.least_loaded import Bins
from binwright.scaler.decide.policy import Observation
from binwright.scaler.decide.throughput import Throughput

LEFT_ALONE_S = 600.0
SHOWN_HOT = 10
UNMEASURED = "what a replica serves is not known yet: it is measured while the group is behind"


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadStatus:
    """The workload that runs the group's consumers."""

    replicas: int  # that it is set to
    ready: int
    changed_by: str = ""  # who set the replicas last, if not this controller; empty: not known
    scaled_by: str = ""  # another autoscaler that points at it; empty: none
    of_others: bool = False  # somebody else sets the number: it is only assigned


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSnapshot:
    """What was looked up of a group, and when."""

    work: Work  # that the group has to do
    workload: WorkloadStatus
    members: int | None = None  # of the group, where the workload does not tell whether it runs
    now_s: float  # monotonic
    wall_s: float  # seconds since 1970, for schedules


LOOK_S = 60.0
"""A longer time between two looks at a group counts as so much: what was meanwhile is not known."""


@dataclass(frozen=True, slots=True)
class ReplicaUsage:
    """The replicas of a group since it is scaled."""

    seconds: float = 0.0  # for which they are counted
    replica_s: float = 0.0  # replica-seconds in them
    looked_s: float | None = None  # monotonic

    def with_look(self, now_s: float, replicas: int) -> "ReplicaUsage":
        """Return this after a look at which there were so many."""
        if self.looked_s is None:
            return replace(self, looked_s=now_s)
        passed_s = min(LOOK_S, now_s - self.looked_s)
        return ReplicaUsage(self.seconds + passed_s, self.replica_s + passed_s * replicas, now_s)

    def saved_s(self, before: float) -> float:
        """Return the replica-seconds that a group with so many replicas would have had more."""
        return before * self.seconds - self.replica_s


@dataclass(frozen=True, slots=True)
class ReplicaChange:
    """A change that is shown, and in mode approve waits for a person."""

    number: int
    replicas: int
    approved: bool = False


@dataclass(frozen=True, slots=True)
class Emptying:
    """Replicas that are to end as soon as they read nothing."""

    replicas: int  # that stay
    leaving: tuple[str, ...]  # ids of the members that end
    since_s: float  # monotonic


@dataclass(frozen=True, slots=True, kw_only=True)
class AssignmentStep:
    """A plan that is due, before the order of the same verdict."""

    members: int  # that it is for
    is_required: bool  # or else only if it is worth a rebalance
    empties: bool = False  # whether it names the members beyond these: the order waits for that


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalingState:
    """What is remembered of a group from one decision to the next."""

    last_order: int | None = None  # replicas
    scaled_s: float | None = None  # when the replicas last changed, monotonic
    idle_since_s: float | None = None
    baseline: Baseline = field(default_factory=Baseline)
    throughput: Throughput = field(default_factory=Throughput)
    learnt: Learnt = field(default_factory=Learnt)
    left_alone_until_s: float | None = None
    changed_by: str = ""  # who made it be left alone
    proposal: ReplicaChange | None = None
    proposals: int = 0  # the last one's number
    plan: GroupPlan | None = None  # that was published last; None: none, or it is not known
    rebalanced_s: float | None = None  # when the group was last made to rebalance, monotonic
    unsettled_since_s: float | None = None  # since when it rebalances; None: it does not
    emptying: Emptying | None = None
    request: BrokerRequest | None = None  # to the broker of a KIP-848 group, the last one
    rebalances: int = 0  # that were asked for
    moved: int = 0  # partitions that got another reader by them
    usage: ReplicaUsage = field(default_factory=ReplicaUsage)


@dataclass(frozen=True, slots=True)
class Sizing:
    """How many replicas a group is to have, and what that rests on."""

    replicas: int
    reasons: tuple[str, ...]  # sentences for people
    packing: Bins = ()  # partitions of each replica, if the load were shared as well as can be
    hot: tuple[TopicPartition, ...] = ()  # faster than a replica: more replicas do not help


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What a group needs now."""

    current: int
    wanted: int
    reasons: tuple[str, ...]
    order: int | None = None  # replicas to set now; None: nothing is to be changed
    blocked: str = ""  # why binwright must not change the number; empty: it may
    packing: Bins = ()
    hot: tuple[TopicPartition, ...] = ()
    work: Work = field(default_factory=Work)
    capacity: float | None = None  # records/s of a replica; None: not known
    proposal: ReplicaChange | None = None
    waits: bool = False  # the proposal waits for approval
    step: AssignmentStep | None = None  # what is to be assigned; None: nothing, or others assign
    imbalance: float | None = None  # largest load of a member over the mean; None: not known
    fault: str = ""  # names that Kafka does not know, or does not show; empty: it knows all


def decide(
    config: ScaledGroupSettings, state: ScalingState, snapshot: GroupSnapshot
) -> tuple[ScalingState, Verdict]:
    """Return the next state, and what is to be done."""
    state = _observed(config, state, snapshot)
    capacity = config.records_per_s or state.throughput.per_replica
    sizing = _sized(config, state, snapshot, capacity)
    if not snapshot.workload.of_others:
        state = _proposed(state, sizing.replicas, snapshot.workload.replicas)
    blocked = _blocked(config, state, snapshot)
    proposal = state.proposal
    waits = config.mode == "approve" and proposal is not None and not proposal.approved
    acts = proposal is not None and config.mode != "observe" and not (blocked or waits)
    return state, Verdict(
        current=snapshot.workload.replicas,
        wanted=sizing.replicas,
        reasons=sizing.reasons + _lost(snapshot.work),
        order=sizing.replicas if acts else None,
        blocked=blocked,
        packing=sizing.packing,
        hot=sizing.hot,
        work=snapshot.work,
        capacity=capacity,
        proposal=proposal,
        waits=waits,
        fault=_fault(config, snapshot),
    )


def ordered(state: ScalingState, replicas: int, now_s: float, *, before: int = 0) -> ScalingState:
    """Return the state after the workload was set to this number; `before` it had another."""
    return replace(
        state,
        last_order=replicas,
        scaled_s=now_s,
        proposal=None,
        left_alone_until_s=None,
        emptying=None,
        learnt=state.learnt.with_order(now_s, before, replicas),
    )


def approve(
    config: ScaledGroupSettings, state: ScalingState, number: int
) -> tuple[ScalingState, str]:
    """Return the state with a proposal approved, or why that cannot be."""
    if config.mode != "approve":
        return state, f"proposal {number} does not wait: mode {config.mode} takes no approvals"
    if state.proposal is not None and state.proposal.number == number:
        return replace(state, proposal=replace(state.proposal, approved=True)), ""
    current = "none does" if state.proposal is None else f"{state.proposal.number} does"
    return state, f"proposal {number} does not wait; {current}"


def _observed(
    config: ScaledGroupSettings, state: ScalingState, snapshot: GroupSnapshot
) -> ScalingState:
    """Return the state with what was seen: idleness, speed, and other managers."""
    work, workload, now_s = snapshot.work, snapshot.workload, snapshot.now_s
    known = bool(work.loads or work.absent) and not work.missing
    idle = known and not (work.waits(config.idle_lag) or _may_wait(config, snapshot))
    since_s = (state.idle_since_s if state.idle_since_s is not None else now_s) if idle else None
    throughput, learnt = state.throughput, state.learnt.with_commits(now_s, work)
    if not work.missing:
        interval_s = config.times(learnt).commit_interval_s
        throughput = throughput.observe(now_s, work, workload.ready, interval_s)
    if not config.assigns:  # else members are known, which say when they read
        learnt = learnt.with_readers(now_s, workload.ready)
    usage = state.usage
    if config.mode != "observe":
        usage = usage.with_look(now_s, workload.replicas)
    state = replace(state, idle_since_s=since_s, throughput=throughput, learnt=learnt, usage=usage)
    if not workload.changed_by or state.last_order in {None, workload.replicas}:
        return state
    return replace(
        state,
        last_order=workload.replicas,
        scaled_s=now_s,
        changed_by=workload.changed_by,
        left_alone_until_s=now_s + LEFT_ALONE_S,
    )


def _sized(
    config: ScaledGroupSettings,
    state: ScalingState,
    snapshot: GroupSnapshot,
    capacity: float | None,
) -> Sizing:
    """Return how many replicas there are to be, zero too."""
    work, current = snapshot.work, snapshot.workload.replicas
    bounds = config.bounds_at(snapshot.wall_s)
    idle_s = -1.0 if state.idle_since_s is None else snapshot.now_s - state.idle_since_s
    if not work.loads:
        return _without_loads(config, work, current, bounds, idle_s)
    if bounds.most == 0:
        return Sizing(0, ("the bounds allow no replica",))
    sizer = Sizer(
        config=config,
        times=config.times(state.learnt),
        bounds=bounds,
        now_s=snapshot.now_s,
        scaled_s=state.scaled_s,
    )
    if current == 0:
        may_wait = _may_wait(config, snapshot)
        if bounds.least == 0 and not (work.waits(config.idle_lag) or may_wait):
            return Sizing(0, (_missing(work) if work.missing else "no records wait",))
        first = replace(sizer, scaled_s=None).size(work, 1, capacity)
        why = may_wait or "records wait, or the bounds ask for more"
        return replace(first, reasons=(why, *first.reasons))
    if bounds.least == 0 and idle_s >= config.idle_s:
        return Sizing(0, (f"no lag and no records for {config.idle_s:g} s",))
    sizing = sizer.size(work, current, capacity)
    kept, unknown = min(current, bounds.most), ""
    if work.missing:
        unknown = _missing(work)
    elif work.is_new:
        unknown = _may_wait(config, snapshot)
    if unknown and sizing.replicas < kept:
        text = f"{unknown}: no replica is taken away"
        return replace(sizing, replicas=kept, reasons=(*sizing.reasons, text))
    return sizing


def _without_loads(
    config: ScaledGroupSettings, work: Work, current: int, bounds: Bounds, idle_s: float
) -> Sizing:
    """Return the size of a group of which no partition is known."""
    if work.missing:
        why = "the ends of its logs are not known yet"
    elif not work.absent:
        # A group that never starts never shows what it reads.
        why = "the group has no committed offsets, and no topics are named"
        return Sizing(bounds.clamp(max(1, current)), (f"only the bounds count: {why}",))
    elif current == 0 or idle_s >= config.idle_s:
        return Sizing(bounds.clamp(0), ("none of its topics exists",))
    else:
        why = "none of its topics exists"
    return Sizing(bounds.clamp(current), (f"only the bounds count: {why}",))


def _may_wait(config: ScaledGroupSettings, snapshot: GroupSnapshot) -> str:
    """Return why records may wait that are no lag, as the group has not committed; empty: no."""
    work, runs = snapshot.work, snapshot.workload.replicas or snapshot.members
    if not work.uncommitted:
        return ""
    if config.starts_at is None:
        return f"{work.uncommitted} partitions have records, no commit and no startsAt"
    if work.is_new and runs:
        return "the group has not committed yet"
    return ""


def _fault(config: ScaledGroupSettings, snapshot: GroupSnapshot) -> str:
    """Return what a person has to set right, such as a name; empty: nothing."""
    work, named = snapshot.work, config.topics
    faults = [f"topic {topic} does not exist" for topic in work.absent if topic in named]
    faults += work.refused
    if snapshot.members and work.is_new and config.starts_at is None and work.uncommitted:
        text = f"group {config.group} has members and has not committed yet: startsAt is not set"
        faults.append(text)
    if not (work.loads or work.missing or work.absent):
        faults.append(f"group {config.group} has committed nothing, and no topics are named")
    return "; ".join(faults)


def _proposed(state: ScalingState, wanted: int, current: int) -> ScalingState:
    if wanted == current:
        return replace(state, proposal=None)
    if state.proposal is not None and state.proposal.replicas == wanted:
        return state
    number = state.proposals + 1
    return replace(state, proposal=ReplicaChange(number, wanted), proposals=number)


def _blocked(config: ScaledGroupSettings, state: ScalingState, snapshot: GroupSnapshot) -> str:
    if config.paused:
        return "paused"
    if snapshot.workload.scaled_by:
        return f"{snapshot.workload.scaled_by} scales the workload, too"
    if state.left_alone_until_s is not None and snapshot.now_s < state.left_alone_until_s:
        return (
            f"{state.changed_by} set {state.last_order} replicas; they are left alone for "
            f"{LEFT_ALONE_S:g} s after that"
        )
    return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizer:
    """Sizes groups that have replicas or are to have some."""

    config: ScaledGroupSettings
    times: Times  # of the group
    bounds: Bounds
    now_s: float  # monotonic
    scaled_s: float | None  # when the number last changed

    def size(self, work: Work, current: int, capacity: float | None) -> Sizing:
        """Return what the group needs.

        Args:
            work: What there is to do; at least one partition.
            current: Replicas that it has, > 0.
            capacity: Records/s that a replica serves; None: not known yet.
        """
        if capacity is None:
            return self._bounded(Sizing(current, (UNMEASURED,)), work)
        expected = work.expected(self.times.start_s)
        loads = to_be_sized(expected, self.times.commit_interval_s)
        policy = self.config.sizing_policy(capacity, self.bounds, len(loads), self.times)
        decision, _ = policy.decide(
            Observation(time_s=self.now_s, loads=loads, replicas=current, scaled_s=self.scaled_s)
        )
        unbounded = self.config.packing_policy(
            capacity, Bounds(1, len(loads)), len(loads), self.times
        )
        packing = unbounded.bins(loads, UP)
        words = [_load(work, capacity, len(packing)), decision.reason.partition("; faster")[0]]
        if (coming := rounded(sum(one.rate for one in expected.values()))) != rounded(work.rate):
            words.append(f"sized for {coming} records/s, as the rate is changing")
        if decision.hot:
            words.append(_hot(decision.hot))
        return self._bounded(Sizing(decision.replicas, tuple(words), packing, decision.hot), work)

    def _bounded(self, sizing: Sizing, work: Work) -> Sizing:
        """Return the sizing within the bounds, and at most one replica for each partition."""
        reasons, replicas = list(sizing.reasons), sizing.replicas
        most = min(self.bounds.most, len(work.loads))
        needed = len(sizing.packing)
        if needed > most:
            reasons.append(f"{needed} are needed, and {most} are allowed")
        bounded = max(min(replicas, most), min(max(1, self.bounds.least), len(work.loads)))
        if bounded != replicas:
            reasons.append(f"the bounds are {self.bounds.least} to {self.bounds.most}")
        return replace(sizing, replicas=bounded, reasons=tuple(reasons))


def _missing(work: Work) -> str:
    return f"{work.missing} partitions have no fresh end or rate"


def _lost(work: Work) -> tuple[str, ...]:
    """Return a sentence on what can no longer be read; none if all is there."""
    if not work.lost:
        return ()
    return (f"about {rounded(work.lost)} records were deleted before the group had read them",)


def _load(work: Work, capacity: float, needed: int) -> str:
    replicas = "replica" if needed == 1 else "replicas"
    return (
        f"{rounded(work.rate)} records/s and a lag of {rounded(work.lag)} need {needed} "
        f"{replicas} of {rounded(capacity)}/s"
    )


def _hot(partitions: tuple[TopicPartition, ...]) -> str:
    names = first_of(partitions, SHOWN_HOT)
    return f"faster than a replica, so that more replicas do not help: {names}"


def rounded(amount: float) -> int:
    """Return an amount rounded up to two significant digits: fewer changes of a status."""
    if amount <= 0:
        return 0
    step: int = 10 ** max(0, len(str(int(amount))) - 2)
    return ceil(amount / step) * step
