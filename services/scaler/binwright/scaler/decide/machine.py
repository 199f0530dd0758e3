"""The state of a scaled group: what is to be ordered now, with reasons.

`decide` gets what was seen and the time, and returns the next state and a verdict; `ordered`
records that an order was carried out. A group whose replicas another manager has changed is left
alone for `LEFT_ALONE_S`: two that set the same number never take turns.
"""

from dataclasses import dataclass, field, replace

from binwright.protocol.model import TopicPartition
from binwright.scaler.decide.config import ScaledGroup
from binwright.scaler.decide.lags import Baseline, Work
from binwright.scaler.decide.policies.least_loaded import Bins
from binwright.scaler.decide.sizing import Sizer, Sizing
from binwright.scaler.decide.throughput import Throughput

LEFT_ALONE_S = 600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadSeen:
    """The workload that runs the group's consumers."""

    replicas: int  # that it is set to
    ready: int
    changed_by: str = ""  # who set the replicas last, if not this controller; empty: not known
    scaled_by: str = ""  # another autoscaler that points at it; empty: none


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What was looked up of a group, and when."""

    work: Work  # that the group has to do
    workload: WorkloadSeen
    now_s: float  # monotonic
    wall_s: float  # seconds since 1970, for schedules


@dataclass(frozen=True, slots=True)
class Proposal:
    """A change that is shown, and in mode approve waits for a person."""

    number: int
    replicas: int


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """What is remembered of a group from one decision to the next."""

    last_order: int | None = None  # replicas
    scaled_s: float | None = None  # when the replicas last changed, monotonic
    idle_since_s: float | None = None
    baseline: Baseline = field(default_factory=Baseline)
    throughput: Throughput = field(default_factory=Throughput)
    left_alone_until_s: float | None = None
    changed_by: str = ""  # who made it be left alone
    proposal: Proposal | None = None
    proposals: int = 0  # the last one's number
    approved: int = 0  # the last approved proposal's number


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
    proposal: Proposal | None = None
    waits: bool = False  # the proposal waits for approval


def decide(config: ScaledGroup, state: State, seen: Seen) -> tuple[State, Verdict]:
    """Return the next state, and what is to be done."""
    state = _observed(config, state, seen)
    capacity = config.capacity or state.throughput.per_replica
    sizing = _sized(config, state, seen, capacity)
    state = _proposed(state, sizing.replicas, seen.workload.replicas)
    blocked = _blocked(config, state, seen)
    proposal = state.proposal
    waits = config.mode == "approve" and proposal is not None and state.approved < proposal.number
    acts = proposal is not None and config.mode != "observe" and not (blocked or waits)
    return state, Verdict(
        current=seen.workload.replicas,
        wanted=sizing.replicas,
        reasons=sizing.reasons,
        order=sizing.replicas if acts else None,
        blocked=blocked,
        packing=sizing.packing,
        hot=sizing.hot,
        work=seen.work,
        capacity=capacity,
        proposal=proposal,
        waits=waits,
    )


def ordered(state: State, replicas: int, now_s: float) -> State:
    """Return the state after the workload was set to this number."""
    return replace(
        state, last_order=replicas, scaled_s=now_s, proposal=None, left_alone_until_s=None
    )


def approve(state: State, number: int) -> tuple[State, str]:
    """Return the state with a proposal approved, or why that cannot be."""
    if state.proposal is not None and state.proposal.number == number:
        return replace(state, approved=number), ""
    current = "none does" if state.proposal is None else f"{state.proposal.number} does"
    return state, f"proposal {number} does not wait; {current}"


def _observed(config: ScaledGroup, state: State, seen: Seen) -> State:
    """Return the state with what was seen: idleness, speed, and other managers."""
    work, workload, now_s = seen.work, seen.workload, seen.now_s
    idle = bool(work.loads) and not (work.missing or work.lag or work.rate)
    since_s = (state.idle_since_s if state.idle_since_s is not None else now_s) if idle else None
    throughput = state.throughput
    if not work.missing:
        throughput = throughput.observe(now_s, work, workload.ready, config.commit_interval_s)
    state = replace(state, idle_since_s=since_s, throughput=throughput)
    if not workload.changed_by or state.last_order in {None, workload.replicas}:
        return state
    return replace(
        state,
        last_order=workload.replicas,
        scaled_s=now_s,
        changed_by=workload.changed_by,
        left_alone_until_s=now_s + LEFT_ALONE_S,
    )


def _sized(config: ScaledGroup, state: State, seen: Seen, capacity: float | None) -> Sizing:
    """Return how many replicas there are to be, zero too."""
    work, current, bounds = seen.work, seen.workload.replicas, config.bounds_at(seen.wall_s)
    if not work.loads:
        text = "the group has no committed offsets, and no topics are named"
        why = "the ends of its logs are not known yet" if work.missing else text
        return Sizing(bounds.clamp(current), (f"only the bounds count: {why}",))
    if bounds.most == 0:
        return Sizing(0, ("the bounds allow no replica",))
    sizer = Sizer(config=config, bounds=bounds, now_s=seen.now_s, scaled_s=state.scaled_s)
    if current == 0:
        if bounds.least == 0 and not (work.lag or work.rate):
            return Sizing(0, ("no records wait",))
        first = replace(sizer, scaled_s=None).size(work, 1, capacity)
        return replace(first, reasons=("records wait, or the bounds ask for more", *first.reasons))
    if bounds.least == 0 and _idle_s(state, seen) >= config.idle_s:
        return Sizing(0, (f"no lag and no records for {config.idle_s:g} s",))
    found = sizer.size(work, current, capacity)
    kept = min(current, bounds.most)
    if work.missing and found.replicas < kept:
        text = f"{work.missing} partitions have no fresh end or rate: no replica is taken away"
        return replace(found, replicas=kept, reasons=(*found.reasons, text))
    return found


def _idle_s(state: State, seen: Seen) -> float:
    return -1.0 if state.idle_since_s is None else seen.now_s - state.idle_since_s


def _proposed(state: State, wanted: int, current: int) -> State:
    if wanted == current:
        return replace(state, proposal=None)
    if state.proposal is not None and state.proposal.replicas == wanted:
        return state
    number = state.proposals + 1
    return replace(state, proposal=Proposal(number, wanted), proposals=number)


def _blocked(config: ScaledGroup, state: State, seen: Seen) -> str:
    if config.paused:
        return "paused"
    if seen.workload.scaled_by:
        return f"{seen.workload.scaled_by} scales the workload, too"
    if state.left_alone_until_s is not None and seen.now_s < state.left_alone_until_s:
        return (
            f"{state.changed_by} set {state.last_order} replicas; they are left alone for "
            f"{LEFT_ALONE_S:g} s after that"
        )
    return ""
