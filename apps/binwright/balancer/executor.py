"""Carries out a plan: looks at the cluster, asks the machine what starts now, and does it."""

import asyncio
from collections.abc import Callable, Coroutine, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from binwright.balancer.decide.reassignment import (
    ClusterObservation,
    CopyLimits,
    NextActions,
    cancel,
    decide,
)
from binwright.balancer.decide.safety import LatencyGate, refusals
from binwright.balancer.decide.throttles import ALL_BROKERS, LISTS, NAMES, Throttles
from binwright.balancer.ports import (
    Brokers,
    ClusterState,
    ConfigChanges,
    ConfigResource,
    Disk,
    Probe,
    Targets,
)
from binwright.protocol.errors import BrokerUnavailable, ExternalError, PlacementError
from binwright.protocol.log_events import LogEvent
from binwright.protocol.model import TopicPartition
from binwright.runtime.backoff import Backoff
from binwright.runtime.clock import loop_s
from binwright.runtime.logs import log
from binwright.runtime.run import background_tasks, must_not_end, root_cause

THROTTLES_STRIPPED = LogEvent.warning(
    "throttles.stripped",
    "Another operator changed lists of replicas that `apply` limits; they are set again.",
)
REASSIGNMENT_STOPPED = LogEvent.info(
    "reassignment.stopped",
    "`brokers apply` ends early: it takes back what is being copied, and its throttles.",
)
REASSIGNMENT_LEFT = LogEvent.warning(
    "reassignment.left",
    "`brokers apply` ended and could not take back what it had under way: start it again, or "
    "`brokers cancel`.",
)
REASSIGNMENT_FAILED = LogEvent.warning(
    "reassignment.failed", "Kafka did not answer `brokers apply`; it tries again."
)
REASSIGNMENT_PAUSED = LogEvent.info(
    "reassignment.paused", "`brokers apply` starts nothing new; the reasons say why."
)
REASSIGNMENT_RESUMED = LogEvent.info("reassignment.resumed", "`brokers apply` goes on.")
REASSIGNMENT_ADVANCED = LogEvent.info(
    "reassignment.advanced", "`brokers apply` started copies, or moved leaders."
)

POLL_S = 1.0
SETTLED_S = 5.0
"""By when each broker knows what the controller does."""
RELOAD_S = 10.0
"""Between readings of disks and throttles, which cost more than the metadata."""
HOUR_S = 3_600.0
LONGEST_RETRY_S = 10.0
TAKE_BACK_S = 60.0
"""How long a run that is stopped tries to take back what is under way."""
MIN_IN_SYNC = "min.insync.replicas"
FETCH_BACKOFF, LONG_BACKOFF_MS = "replica.fetch.backoff.ms", 200
"""A follower that fetches before its new leader is ready waits so long; the default is 1,000."""


async def read_throttles(brokers: Brokers, cluster: ClusterState) -> Throttles:
    """Return the throttles of all brokers and topics."""
    topics = {partition.topic for partition in cluster.partitions}
    resources = {
        ALL_BROKERS,
        *(ConfigResource("broker", str(broker)) for broker in cluster.racks),
        *(ConfigResource("topic", topic) for topic in topics),
    }
    return Throttles.of_configs(await brokers.configs(resources, NAMES), cluster.racks)


async def check(brokers: Brokers, targets: Targets, *, replication_may_change: bool) -> Throttles:
    """Return the throttles there are; raise `PlacementError` with every reason not to move.

    A broker may hear of a move's end later than the controller, which lists moves: until then it
    shows a replica too many, or one that is not in sync. So it is asked again, for `SETTLED_S`.
    """
    until = loop_s() + SETTLED_S
    topics = {ConfigResource("topic", partition.topic) for partition in targets}
    configs = await brokers.configs(topics, [MIN_IN_SYNC])
    least = {each.name: int(values.get(MIN_IN_SYNC, "1")) for each, values in configs.items()}
    while True:
        cluster = await brokers.state()
        throttles = await read_throttles(brokers, cluster)
        reasons = refusals(
            targets, cluster, throttles, least, replication_may_change=replication_may_change
        )
        if not reasons:
            return throttles
        if loop_s() >= until:
            raise PlacementError("nothing is moved: " + "; ".join(reasons))
        await asyncio.sleep(POLL_S)


async def slow_followers(brokers: Brokers) -> list[int]:
    """Return the brokers whose `FETCH_BACKOFF` makes a move of leaders a long pause."""
    alive = (await brokers.state()).racks
    resources = {ConfigResource("broker", str(broker)) for broker in alive}
    configs = await brokers.configs(resources, [FETCH_BACKOFF])
    return sorted(
        int(each.name)
        for each, values in configs.items()
        if int(values.get(FETCH_BACKOFF, "0")) > LONG_BACKOFF_MS
    )


@dataclass(slots=True)
class _Observer:
    """Looks at a cluster: at disks and all throttles every `RELOAD_S`, at the rest each time.

    Our lists of what is being copied are read each time: another operator may strip them.
    """

    brokers: Brokers
    with_disks: bool
    _disks: Mapping[int, Disk] = field(default_factory=dict)
    _throttles: Throttles | None = None
    _listed: frozenset[str] = frozenset()  # topics whose lists of ours were seen
    _read_at: float = 0.0

    async def observe(
        self, slow: str | None = None, spent: int = 0, *, reload: bool = False
    ) -> ClusterObservation:
        """Return what the cluster reports."""
        cluster, before = await self.brokers.state(), self._throttles
        if reload or before is None or loop_s() >= self._read_at + RELOAD_S:
            throttles = await read_throttles(self.brokers, cluster)
            self._disks = await self.brokers.disks() if self.with_disks else {}
            self._read_at = loop_s()
        else:
            listed = {ConfigResource("topic", topic) for topic in before.listed()}
            configs = await self.brokers.configs(listed, LISTS) if listed else {}
            throttles = before.with_lists(configs)
        if stripped := tuple(sorted(self._listed - throttles.listed())):
            log(THROTTLES_STRIPPED, topics=stripped)
        self._listed, self._throttles = throttles.listed(), throttles
        return ClusterObservation(cluster, throttles, self._disks, slow, spent, stripped)

    async def change(self, changes: ConfigChanges) -> None:
        """Change throttles; read them again next time."""
        if changes:
            self._throttles = None  # also if it fails: part of them may be set
            self._listed -= {
                each.name for each, values in changes.items() if None in values.values()
            }
            await self.brokers.set_configs(changes)


class Ledger(Protocol):
    """Knows what began to be copied within the last hour."""

    def spent(self) -> int:
        """Return its bytes."""

    async def start(self, size: int) -> None:
        """Remember that so many bytes begin to be copied; before they do."""


class RunLedger:
    """A `Ledger` of one run."""

    def __init__(self) -> None:
        self._started: list[tuple[float, int]] = []  # time and bytes

    def spent(self) -> int:
        """See `Ledger`."""
        self._started = [each for each in self._started if loop_s() - each[0] < HOUR_S]
        return sum(size for _, size in self._started)

    async def start(self, size: int) -> None:
        """See `Ledger`."""
        self._started.append((loop_s(), size))


class Executor:
    """Moves replicas to where a plan has them, until all are there or it is stopped."""

    def __init__(
        self,
        brokers: Brokers,
        targets: Targets,
        limits: CopyLimits,
        *,
        probe: Probe | None = None,
        on_decision: Callable[[NextActions, ClusterObservation], None] = lambda _decided, _seen: (
            None
        ),
        poll_s: float = POLL_S,
        ledger: Ledger | None = None,
    ) -> None:
        """Prepare a run.

        Args:
            brokers: The cluster.
            targets: Of the plan.
            limits: How much may happen at once.
            probe: Measures how long producers wait; None: nothing does.
            on_decision: Called after each look at the cluster.
            poll_s: Between looks, s.
            ledger: Of what is copied in an hour; None: one of this run alone.
        """
        self._brokers, self._targets, self._limits = brokers, targets, limits
        self._probe, self._on_decision, self._poll_s = probe, on_decision, poll_s
        self._observer = _Observer(brokers, with_disks=True)
        self._gate = LatencyGate()
        self._paused: tuple[str, ...] = ()
        self._ledger = RunLedger() if ledger is None else ledger

    async def run(self) -> None:
        """Move everything; when it is cancelled, take back what is under way.

        A broker that does not answer is asked again. Returns once all is as planned and no throttle
        of ours is left.

        Raises:
            ReassignmentRefused: Kafka refuses a request; what is under way was taken back.
        """
        try:
            async with background_tasks(*self._probing()):
                await self._until_finished()
        except BaseException as error:  # noqa: BLE001 - raised below, a cancellation too
            cause = root_cause(error)  # the probe's task is in a group with ours
            log(REASSIGNMENT_STOPPED, reason=str(cause) or type(cause).__name__)
            await self._take_back()
            raise cause from None

    async def _take_back(self) -> None:
        try:
            async with asyncio.timeout(TAKE_BACK_S):
                await take_back(self._brokers, self._targets, poll_s=self._poll_s)
        except (TimeoutError, ExternalError) as exc:
            log(REASSIGNMENT_LEFT, reason=str(exc) or f"not done in {TAKE_BACK_S:g} s")

    async def _until_finished(self) -> None:
        pause = Backoff(LONGEST_RETRY_S, first_s=self._poll_s)
        reload = True
        while True:
            try:
                decided = await self._advance(reload=reload)
            except BrokerUnavailable as exc:
                log(REASSIGNMENT_FAILED, reason=str(exc))
                await asyncio.sleep(pause.next())
                reload = True
                continue
            pause.reset()
            if decided.finished and reload:
                return
            reload = decided.finished  # what was read before may be old: look once more
            if not reload:
                await asyncio.sleep(self._poll_s)

    async def _advance(self, *, reload: bool) -> NextActions:
        seen = await self._observer.observe(self._slow(), self._ledger.spent(), reload=reload)
        decided = decide(self._targets, self._limits, seen)
        self._log(decided)
        self._on_decision(decided, seen)
        await self._observer.change(decided.throttles)
        if decided.reassign:
            if decided.started_bytes:
                await self._ledger.start(decided.started_bytes)
            await self._brokers.reassign(decided.reassign)
        if decided.elect:
            await self._brokers.elect_preferred(decided.elect)
        return decided

    def _log(self, decided: NextActions) -> None:
        if decided.pauses != self._paused:
            if decided.pauses:
                log(REASSIGNMENT_PAUSED, reasons=list(decided.pauses))
            else:
                log(REASSIGNMENT_RESUMED)
            self._paused = decided.pauses
        if decided.reassign or decided.elect:
            log(
                REASSIGNMENT_ADVANCED,
                copies=len(decided.reassign.keys() - {*decided.elect}),
                leaders=len(decided.elect),
                done=decided.progress.done,
                total=decided.progress.total,
            )

    def _slow(self) -> str | None:
        if self._probe is None:
            return None
        if (limit := self._gate.limit_s) is None:
            return "measuring how long producers wait"
        if not self._gate.closed:
            return None
        return (
            f"producers wait {1000 * (self._gate.latency_s or 0.0):.0f} ms, "
            f"more than {1000 * limit:.0f} ms"
        )

    def _probing(self) -> Iterator[Coroutine[Any, Any, None]]:
        if self._probe is not None:
            yield must_not_end(self._measure(self._probe))

    async def _measure(self, probe: Probe) -> None:
        while True:
            self._gate = self._gate.measured(await probe.measure())
            await asyncio.sleep(self._poll_s)


async def take_back(
    brokers: Brokers, targets: Targets | None = None, *, poll_s: float = POLL_S
) -> int:
    """Cancel what we have under way and remove our throttles; return how many were cancelled.

    Args:
        brokers: The cluster.
        targets: Of a plan; None: what our throttles name, as a run that was killed left it.
        poll_s: Between looks, s.
    """
    cancelled: set[TopicPartition] = set()
    observer = _Observer(brokers, with_disks=False)
    pause = Backoff(LONGEST_RETRY_S, first_s=poll_s)
    seen_finished = False
    while True:
        try:
            step = cancel(await observer.observe(reload=True), targets)
            if step.finished and seen_finished:
                return len(cancelled)
            seen_finished = step.finished  # a broker shows a change later than it confirms it
            cancelled |= {*step.cancel}
            if step.cancel:
                await brokers.reassign(dict.fromkeys(step.cancel))
            await observer.change(step.throttles)
            await asyncio.sleep(poll_s if step.cancel or step.finished else 0)
        except BrokerUnavailable as exc:
            log(REASSIGNMENT_FAILED, reason=str(exc))
            await asyncio.sleep(pause.next())
