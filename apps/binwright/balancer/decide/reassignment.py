"""What starts now: a function of the plan and of what the cluster reports, without a memory.

Leaders move before anything is copied, and again when a copy has ended. Copies start in the order
of the plan, few at a time for each broker. Nothing starts while the run is paused; what is under
way continues, at a lower rate.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from binwright.balancer.decide.safety import pauses
from binwright.balancer.decide.throttles import Copy, Throttles
from binwright.balancer.ports import (
    ClusterState,
    ConfigChanges,
    Disk,
    PartitionState,
    Reassignment,
    Replicas,
    Targets,
)
from binwright.protocol.model import TopicPartition

PartitionStep = Literal[
    "done",
    "elect",  # placed, but its first replica does not lead
    "order",  # on the right brokers, in another order
    "copy",  # a broker lacks it, or one too many has it
    "copying",  # Kafka is at it
    "foreign",  # Kafka moves it to other brokers than planned
]


def next_step(
    target: Replicas, state: PartitionState, reassignment: Reassignment | None = None
) -> PartitionStep:
    """Return what a partition needs next."""
    if reassignment is not None:
        return "copying" if reassignment.target == target else "foreign"
    if set(state.replicas) != set(target):
        return "copy"
    if state.replicas != target:
        return "order"
    return "done" if state.leader == target[0] else "elect"


def next_steps(targets: Targets, cluster: ClusterState) -> dict[TopicPartition, PartitionStep]:
    """Return what each partition of a plan needs next; one that is gone needs nothing."""
    return {
        partition: next_step(
            target, cluster.partitions[partition], cluster.reassignments.get(partition)
        )
        for partition, target in targets.items()
        if partition in cluster.partitions
    }


def copy_of(partition: TopicPartition, target: Replicas, cluster: ClusterState) -> Copy:
    """Return which brokers copy a partition, and which have it: also while it is under way."""
    under_way = cluster.reassignments.get(partition)
    now = cluster.partitions[partition].replicas
    adding = under_way.adding if under_way else ()
    sources = tuple(broker for broker in now if broker not in adding)
    return Copy(partition, sources, tuple(b for b in target if b not in sources))


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyLimits:
    """How much may happen at once.

    Attributes:
        rate: Bytes/s that copying may use of each broker, in and out; None: unlimited.
        paused_rate: The same while the run is paused.
        copies: Partitions that a broker may send or receive at once, > 0.
        leaders: Leaders that may move at once, > 0.
        reserve_bytes: What copies leave free on each broker's disks.
        hourly_bytes: What may start to be copied in any hour; None: unlimited. A partition that is
            larger than all of it goes when nothing has started for an hour.
    """

    rate: int | None = 50_000_000
    paused_rate: int = 5_000_000
    copies: int = 2
    leaders: int = 10
    reserve_bytes: int = 0
    hourly_bytes: int | None = None

    def rate_now(self, *, paused: bool) -> int | None:
        """Return the limit of the moment, bytes/s."""
        return self.rate if self.rate is None or not paused else min(self.rate, self.paused_rate)


@dataclass(frozen=True, slots=True)
class ClusterObservation:
    """What a cluster reports at one time."""

    cluster: ClusterState
    throttles: Throttles
    disks: Mapping[int, Disk] = field(default_factory=dict)
    slow: str | None = None  # why producers wait; None: they do not
    last_hour_bytes: int = 0  # that started to be copied
    stripped: tuple[str, ...] = ()  # topics whose lists of ours another operator has taken away


@dataclass(frozen=True, slots=True)
class PlanProgress:
    """How far a plan is carried out."""

    steps: Mapping[PartitionStep, int]
    copying: tuple[Copy, ...]

    @property
    def done(self) -> int:
        """Return the number of partitions that are as planned."""
        return self.steps.get("done", 0)

    @property
    def total(self) -> int:
        """Return the number of partitions."""
        return sum(self.steps.values())


@dataclass(frozen=True, slots=True)
class NextActions:
    """What to do now, in this order; then look again."""

    throttles: ConfigChanges
    reassign: Mapping[TopicPartition, Replicas]
    elect: tuple[TopicPartition, ...]
    started_bytes: int  # of the copies that start
    pauses: tuple[str, ...]  # why nothing new starts; none: the run goes on
    progress: PlanProgress
    finished: bool  # all is as planned, and no throttle of ours is left


def decide(targets: Targets, limits: CopyLimits, seen: ClusterObservation) -> NextActions:
    """Return what starts now, and which throttles there must be for it.

    Raises nothing: what cannot be done now is a pause, and `safety.refusals` is asked before.
    """
    steps = next_steps(targets, seen.cluster)
    copying = [copy_of(p, targets[p], seen.cluster) for p, s in steps.items() if s == "copying"]
    left = {p: targets[p] for p, step in steps.items() if step != "done"}
    why = tuple(pauses(targets, left, seen.cluster, seen.throttles, seen.slow))
    leaders = [] if why else _leaders(targets, steps, seen.cluster)[: limits.leaders]
    started = [] if why or leaders else list(_copies(targets, steps, limits, seen, copying))
    if not (why or leaders or started or copying) and "copy" in steps.values():
        why = (_no_start(limits, seen),)
    rate = limits.rate_now(paused=bool(why))
    changes = seen.throttles.until(rate, [*copying, *started])
    reordered = [p for p in leaders if steps[p] == "order"]
    return NextActions(
        throttles=changes,
        reassign={p: targets[p] for p in (*reordered, *(copy.partition for copy in started))},
        elect=tuple(leaders),
        started_bytes=sum(_copied_bytes(copy, seen) for copy in started),
        pauses=why,
        progress=PlanProgress(Counter(steps.values()), tuple(copying)),
        finished=not changes and not seen.throttles.ours and set(steps.values()) <= {"done"},
    )


def _no_start(limits: CopyLimits, seen: ClusterObservation) -> str:
    """Return why no copy starts although nothing is under way."""
    if limits.hourly_bytes is not None and seen.last_hour_bytes:
        return f"{seen.last_hour_bytes} of {limits.hourly_bytes} bytes started within the last hour"
    return "no broker has room on its disks for what is left to copy"


def _leaders(
    targets: Targets, steps: Mapping[TopicPartition, PartitionStep], cluster: ClusterState
) -> list[TopicPartition]:
    """Return the partitions whose leader can move now: the planned one is in sync."""
    return [
        partition
        for partition, step in steps.items()
        if step in ("order", "elect")
        and targets[partition][0] in cluster.partitions[partition].in_sync
        and targets[partition][0] in cluster.racks
    ]


def _copies(
    targets: Targets,
    steps: Mapping[TopicPartition, PartitionStep],
    limits: CopyLimits,
    seen: ClusterObservation,
    copying: list[Copy],
) -> Iterator[Copy]:
    """Yield the copies that start now: each as far as its brokers are free and have room."""
    busy, room = Counter[int](), _room(seen, limits)
    spent = seen.last_hour_bytes
    for copy in copying:
        busy.update(_involved(copy, seen.cluster))
        _fill(room, copy, seen)
    for partition, step in steps.items():
        if step != "copy":
            continue
        copy = copy_of(partition, targets[partition], seen.cluster)
        brokers = _involved(copy, seen.cluster)
        size = _size(copy, seen)
        fits = all(size <= room.get(broker, size) for broker in copy.added)
        if fits and all(busy[broker] < limits.copies for broker in brokers):
            spent += (own := _copied_bytes(copy, seen))
            if limits.hourly_bytes is not None and spent > max(limits.hourly_bytes, own):
                return  # those behind wait as well, so that a large one gets its turn
            busy.update(brokers)
            _fill(room, copy, seen)
            yield copy


def _involved(copy: Copy, cluster: ClusterState) -> set[int]:
    """Return the brokers that send or receive a copy; without added brokers nobody does."""
    leader = cluster.partitions[copy.partition].leader
    return {*copy.added, *(() if leader is None or not copy.added else (leader,))}


def _room(seen: ClusterObservation, limits: CopyLimits) -> dict[int, int]:
    return {
        broker: disk.usable_bytes - limits.reserve_bytes
        for broker, disk in seen.disks.items()
        if disk.usable_bytes is not None
    }


def _size(copy: Copy, seen: ClusterObservation) -> int:
    """Return the bytes of a partition: of its largest replica."""
    disks = [seen.disks[broker] for broker in copy.sources if broker in seen.disks]
    return max((disk.sizes.get(copy.partition, 0) for disk in disks), default=0)


def _copied_bytes(copy: Copy, seen: ClusterObservation) -> int:
    return _size(copy, seen) * len(copy.added)


def _fill(room: dict[int, int], copy: Copy, seen: ClusterObservation) -> None:
    """Subtract from the room of the brokers what they still have to receive."""
    size = _size(copy, seen)
    for broker in copy.added:
        if broker in room:
            room[broker] -= max(0, size - seen.disks[broker].sizes.get(copy.partition, 0))


@dataclass(frozen=True, slots=True)
class Cancellation:
    """What takes back what is under way, in this order; then look again."""

    cancel: tuple[TopicPartition, ...]
    throttles: ConfigChanges
    finished: bool


def cancel(seen: ClusterObservation, targets: Targets | None = None) -> Cancellation:
    """Return how to end what we have under way: what our throttles name, and what a plan says.

    Replicas that were added are given up, and those that were to be removed stay. Throttles go when
    nothing is under way that they limit.
    """
    named = seen.throttles.partitions()
    planned = targets or {}
    ours = tuple(
        partition
        for partition, under_way in sorted(seen.cluster.reassignments.items())
        if partition in named or planned.get(partition) == under_way.target
    )
    changes = {} if ours else seen.throttles.until(None, ())
    return Cancellation(ours, changes, finished=not ours and not seen.throttles.ours)
