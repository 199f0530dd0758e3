"""What is refused before anything moves, and what makes a run pause."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median

from binwright.balancer.decide.throttles import Throttles
from binwright.balancer.ports import ClusterState, Disk, PartitionState, Replicas, Targets
from binwright.protocol.model import TopicPartition
from binwright.protocol.texts import first_of

SHOWN = 3
"""Partitions that a reason names; of more it has the number."""


BASELINE = 5
"""Measurements before the first move."""
RECENT = 3
"""Measurements whose median counts: one slow request pauses nothing."""


def refusals(
    targets: Targets,
    cluster: ClusterState,
    throttles: Throttles,
    min_in_sync: Mapping[str, int],
    *,
    replication_may_change: bool = False,
) -> tuple[str, ...]:
    """Return every reason not to begin; none: the plan is safe as far as the cluster shows.

    Args:
        targets: Of the plan.
        cluster: As it is.
        throttles: Those that it has.
        min_in_sync: `min.insync.replicas` of each topic of the plan.
        replication_may_change: A plan may give a partition more or fewer replicas than it has.
    """
    reasons = [
        *_brokers_down(targets, cluster),
        *_foreign(targets, cluster, throttles),
    ]
    for partition, target in targets.items():
        state = cluster.partitions.get(partition)
        if state is None:
            reasons.append(f"{partition} does not exist")
        else:
            least = min_in_sync.get(partition.topic, 1)
            before = None if replication_may_change else _replication(partition, state, cluster)
            reasons += [f"{partition}: {why}" for why in _unsafe(target, before, least)]
    reasons += _behind(targets, cluster)
    return tuple(reasons)


def _replication(partition: TopicPartition, state: PartitionState, cluster: ClusterState) -> int:
    """Return how many replicas a partition has, without those that are just added."""
    under_way = cluster.reassignments.get(partition)
    return len(state.replicas) - (len(under_way.adding) if under_way else 0)


def _unsafe(target: Replicas, before: int | None, least: int) -> Iterator[str]:
    if len(set(target)) < len(target) or not target:
        yield f"replicas must be distinct brokers, got {list(target)}"
    if len(target) < least:
        yield f"{len(target)} replicas are fewer than min.insync.replicas ({least})"
    if before is not None and len(target) != before:
        yield f"changes the replication from {before} to {len(target)}, which was not asked for"


def _brokers_down(targets: Targets, cluster: ClusterState) -> Iterator[str]:
    used = {broker for target in targets.values() for broker in target}
    for broker in sorted(used - cluster.racks.keys()):
        yield f"broker {broker} is down, or there is none of this number"


def _foreign(targets: Targets, cluster: ClusterState, throttles: Throttles) -> Iterator[str]:
    other = [
        partition
        for partition, under_way in sorted(cluster.reassignments.items())
        if targets.get(partition) != under_way.target
    ]
    ours = throttles.partitions()
    if killed := [partition for partition in other if partition in ours]:
        yield (
            f"a run of another plan was killed and has under way: {named(killed)}; "
            "continue it, or take it back (binwright brokers cancel)"
        )
    if theirs := [partition for partition in other if partition not in ours]:
        yield f"another tool reassigns: {named(theirs)}"
    if topics := throttles.foreign_topics({partition.topic for partition in targets}):
        yield f"another tool throttles the replication of {', '.join(topics)}"


def _behind(targets: Targets, cluster: ClusterState) -> Iterator[str]:
    if behind := list(under_replicated(targets, cluster)):
        yield f"replicas are not in sync: {named(behind)}; repair them first"


def dead_directories(cluster: ClusterState, disks: Mapping[int, Disk]) -> Iterator[tuple[int, str]]:
    """Yield brokers with a log directory that cannot be read any more, and what is lost there."""
    for broker, disk in sorted(disks.items()):
        if disk.dead:
            lost = [
                partition
                for partition, state in sorted(cluster.partitions.items())
                if broker in state.replicas and partition not in disk.sizes
            ]
            held = f": it held {named(lost)}" if lost else ""
            yield broker, f"log directory {', '.join(disk.dead)} of broker {broker} is dead{held}"


def under_replicated(targets: Targets, cluster: ClusterState) -> Iterator[TopicPartition]:
    """Yield partitions that lack a replica in sync and are not under way, in order.

    Those whose missing replicas the plan takes away, as from a broker that died, are left out.
    """
    for partition, state in sorted(cluster.partitions.items()):
        missing = set(state.replicas) - state.in_sync
        if missing and partition not in cluster.reassignments:
            target = targets.get(partition)
            if target is None or missing & set(target):
                yield partition


def pauses(
    targets: Targets,
    left: Targets,
    cluster: ClusterState,
    throttles: Throttles,
    slow: str | None,
) -> Iterator[str]:
    """Yield why nothing new may start now.

    Args:
        targets: Of the plan.
        left: Those that are not reached yet.
        cluster: As it is.
        throttles: Those that it has.
        slow: Why producers wait; None: they do not.
    """
    yield from _brokers_down(left, cluster)
    yield from _foreign(targets, cluster, throttles)
    if behind := list(under_replicated(targets, cluster)):
        yield f"replicas are not in sync: {named(behind)}"
    if slow is not None:
        yield slow


def named(partitions: Collection[TopicPartition]) -> str:
    """Return the first partitions by name, and how many there are."""
    return first_of(partitions, SHOWN)


@dataclass(frozen=True, slots=True, kw_only=True)
class LatencyGate:
    """Closes when the median of the last measurements rises, and opens when it has fallen again.

    Attributes:
        factor: Closes above the baseline times this, > 1.
        least_s: Never closes below the baseline plus this, s: small times vary by themselves.
        before: The first `BASELINE` measurements, s.
        recent: The last `RECENT` ones, s.
        closed: Whether moves pause.
    """

    factor: float = 3.0
    least_s: float = 0.1
    before: Sequence[float] = ()
    recent: Sequence[float] = ()
    closed: bool = False

    @property
    def baseline_s(self) -> float | None:
        """Return the median before the first move; None until it is known."""
        return median(self.before) if len(self.before) >= BASELINE else None

    @property
    def limit_s(self) -> float | None:
        """Return above which median the gate closes; None until it is known."""
        baseline = self.baseline_s
        return None if baseline is None else max(baseline * self.factor, baseline + self.least_s)

    @property
    def latency_s(self) -> float | None:
        """Return the median of the last measurements; None before the first."""
        return median(self.recent) if self.recent else None

    def measured(self, latency_s: float) -> "LatencyGate":
        """Return the gate after one more measurement.

        It opens again at half the way from the limit to the baseline, so that it does not swing.
        """
        gate = replace(self, recent=(*self.recent, latency_s)[-RECENT:])
        baseline, limit = self.baseline_s, self.limit_s
        if baseline is None or limit is None:
            return replace(gate, before=(*self.before, latency_s))
        recent = median(gate.recent)
        return replace(gate, closed=recent > ((baseline + limit) / 2 if self.closed else limit))
