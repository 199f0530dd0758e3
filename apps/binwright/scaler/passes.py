"""The scaler's loop: one pass over all groups each period, and short ones for groups at zero."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf
from time import perf_counter

from binwright.protocol.errors import ExternalError, UserError
from binwright.protocol.log_events import LogEvent
from binwright.runtime.backoff import until_set
from binwright.runtime.clock import loop_s, wall_ms
from binwright.runtime.logs import log
from binwright.runtime.metrics import Metric, Sample
from binwright.runtime.run import background_tasks, must_not_end
from binwright.scaler import metrics
from binwright.scaler.assigning import Assigner, WorkloadOrder
from binwright.scaler.decide.assigning import with_assignment
from binwright.scaler.decide.config import ScaledGroupSettings
from binwright.scaler.decide.lags import Committed, LogEnds, work_of
from binwright.scaler.decide.learning import ENOUGH
from binwright.scaler.decide.members import GroupDescription
from binwright.scaler.decide.sizing import (
    GroupSnapshot,
    ScalingState,
    Verdict,
    WorkloadStatus,
    decide,
    ordered,
)
from binwright.scaler.ports import CommittedOffsets, EndLookup, GroupLookup, ScaledWorkload

GROUP_FAULTED = LogEvent.warning(
    "group.faulted",
    "A scaled group cannot be sized or assigned, or Kafka does not know a name in its settings.",
)
GROUP_RECOVERED = LogEvent.info(
    "group.recovered", "What was wrong with a scaled group is set right."
)
RECORDS_DELETED = LogEvent.warning(
    "records.deleted", "Records were deleted before a scaled group had read them."
)
LOOK_FAILED = LogEvent.warning(
    "look.failed", "How records arrive at a group's topics could not be seen; it is tried again."
)
GROUPS_SIZED = LogEvent.debug("groups.sized", "The scaler has made a pass over all groups.")
TARGET_FAILED = LogEvent.error(
    "target.failed",
    "An unexpected error in one scaled group; the others go on, and it is tried again.",
)
SCALE_FAILED = LogEvent.warning(
    "scale.failed",
    "A group's replicas could not be set, or its plan not published; the next pass tries again.",
)
GROUP_SCALED = LogEvent.info(
    "group.scaled", "The scaler set the replicas of a group's workload, with the reasons."
)

ORDER_S = 20.0
"""How long an order to a workload may take; other groups do not wait for it."""


@dataclass(eq=False)
class ScaledTarget:
    """One scaled group.

    Attributes:
        key: Distinguishes it from all other targets of this scaler.
        config: What a person wants.
        workload: What runs its consumers; None: somebody else does, and sets their number.
        state: Of the machine.
        verdict: The last decision; None: there was none yet.
        fault: Why the last pass brought no decision, or an order failed; empty: it did not.
        counts_members: Whether the group's members tell that it runs: its workload does not.
        on_change: Called after each pass, and after each order that was carried out.
    """

    key: str
    config: ScaledGroupSettings
    workload: ScaledWorkload | None
    state: ScalingState = field(default_factory=ScalingState)
    verdict: Verdict | None = None
    fault: str = ""
    on_change: Callable[["ScaledTarget", int | None], None] = lambda _target, _ordered: None
    seen_s: float = -inf  # when the last pass over it began, monotonic
    looked_s: float = -inf  # when it was last looked at closely
    order: "asyncio.Task[None] | None" = None
    counts_members: bool = False
    _logged: tuple[str, int] = ("", 0)  # the problem and the lost records that the log has

    @property
    def problem(self) -> str:
        """What is wrong: `fault`, else what the last decision says; empty: nothing."""
        return self.fault or ("" if self.verdict is None else self.verdict.fault)

    def fail(self, error: Exception) -> None:
        """Take an error that nobody expected, while it is handled, as the fault."""
        log(TARGET_FAILED, target=self.key, exc_info=True)
        self.fault = f"{type(error).__name__}: {error}; the scaler's log has the traceback"

    def log_changes(self) -> None:
        """Log a problem, and records that were deleted unread, once for each change."""
        problem, lost = self.problem, 0 if self.verdict is None else self.verdict.work.lost
        before, lost_before = self._logged
        self._logged = problem, lost
        if problem and problem != before:
            log(GROUP_FAULTED, target=self.key, reason=problem)
        elif before and not problem:
            log(GROUP_RECOVERED, target=self.key)
        if lost > lost_before:
            log(RECORDS_DELETED, target=self.key, records=lost)

    @property
    def is_asleep(self) -> bool:
        """Whether it is at zero, and may wake by a record."""
        return self.verdict is not None and self.verdict.wanted == 0 == self.verdict.current


Targets = Mapping[str, ScaledTarget]
"""By their keys."""
Look = Callable[[Collection[str]], Awaitable[Sequence[tuple[float, int]]]]
"""Looks at topics so often that batches fall into different looks; see `Learnt.with_arrivals`."""
FIRST_LOOK_S, LOOK_S = 15.0, 600.0
"""Times between two close looks at a group: until they agree, and from then on."""


@dataclass
class Scaler:
    """Decides for all targets, again and again.

    Attributes:
        targets: Returns the groups that are scaled now.
        groups: Looks up committed offsets.
        ends: Looks up ends of logs.
        period_s: From one pass over all groups to the next.
        zero_poll_s: From one look at the groups at zero to the next; at most `period_s`.
        beat: Called after each pass, for the health check.
        end: Called when the loop ends: then no progress is expected.
        assigner: Assigns the partitions of groups that want it; None: of none.
        look: Looks closely at how records arrive at topics; None: that is not learnt.
    """

    targets: Callable[[], Targets]
    groups: GroupLookup
    ends: EndLookup
    period_s: float
    zero_poll_s: float
    beat: Callable[[], None] = lambda: None
    end: Callable[[], None] = lambda: None
    assigner: Assigner | None = None
    look: Look | None = None
    passes: int = 0
    pass_s: float = 0.0  # how long the last pass took
    _committed: dict[str, Committed] = field(default_factory=dict)  # of the last pass
    _faults: dict[str, str] = field(default_factory=dict)  # group -> why it has none of that pass
    _members: dict[str, int] = field(default_factory=dict)  # of groups that have not committed
    _requested: asyncio.Event = field(default_factory=asyncio.Event)

    async def run(self) -> None:
        """Make passes, for ever."""
        try:
            async with background_tasks(must_not_end(self._look())):
                await self._run()
        finally:
            for target in self.targets().values():
                if target.order is not None:
                    target.order.cancel()  # another scaler may lead by now
            self.end()

    async def _run(self) -> None:
        next_s = loop_s()
        while True:
            if (now_s := loop_s()) >= next_s or self._requested.is_set():
                self._requested.clear()
                await self.run_pass()
                next_s = now_s + self.period_s
            elif due := [target for target in self._quick() if self._due_s(target) <= now_s]:
                await self.run_pass(due)
            else:
                await self.run_zero_pass()
            self.beat()
            due_s = min(map(self._due_s, self._quick()), default=next_s)
            pause_s = min(next_s, due_s, now_s + self.zero_poll_s) - loop_s()
            await until_set(self._requested, max(0.0, pause_s))

    def _quick(self) -> Iterator[ScaledTarget]:
        """Yield the targets whose SLA asks for more passes than the others have."""
        for target in self.targets().values():
            if target.config.period_s(self.period_s) < self.period_s:
                yield target

    def _due_s(self, target: ScaledTarget) -> float:
        return target.seen_s + target.config.period_s(self.period_s)

    async def _look(self) -> None:
        """Look closely at one group after the other, for ever, where something is to be learnt."""
        while True:
            await asyncio.sleep(FIRST_LOOK_S)
            for target in list(self.targets().values()):
                burst_s = target.state.learnt.burst_s
                pause_s = LOOK_S if burst_s.confidence >= ENOUGH else FIRST_LOOK_S
                is_due = loop_s() - target.looked_s >= pause_s
                topics = self._topics(target)
                if (
                    self.look is None
                    or "burst_s" not in target.config.learns
                    or not is_due
                    or not topics
                ):
                    continue
                target.looked_s = loop_s()
                try:
                    arrived = await self.look(topics)
                except ExternalError as exc:
                    log(LOOK_FAILED, target=target.key, reason=str(exc))
                    continue
                learnt = target.state.learnt.with_arrivals(arrived)
                target.state = replace(target.state, learnt=learnt)

    def request_pass(self) -> None:
        """Make a pass at once: there is a new group, or one has changed."""
        self._requested.set()

    async def run_pass(self, targets: Collection[ScaledTarget] | None = None) -> None:
        """Look up everything about all groups, or about these, and decide."""
        began_s = perf_counter()  # the loop's own clock stands while a pass decides
        every = list(self.targets().values())
        targets = every if targets is None else targets
        for target in targets:
            target.seen_s = loop_s()
        asked = {target.config.group for target in targets}
        committed = await self.groups.committed(asked)
        members = await self._count_members(targets, committed)
        groups = {target.config.group for target in every}
        others = groups - asked
        known = self._committed | committed.offsets
        self._committed = {group: at for group, at in known.items() if group in groups}
        self._faults = {g: f for g, f in self._faults.items() if g in others} | committed.faults
        self._members = {g: n for g, n in self._members.items() if g in others} | members
        await self._decide(targets, committed.faults)
        self.passes += 1
        self.pass_s = perf_counter() - began_s
        log(GROUPS_SIZED, groups=len(targets), faults=len(committed.faults))

    async def run_zero_pass(self) -> None:
        """Look up the ends for groups at zero: they commit nothing meanwhile.

        What the last pass could not look up is not known now either: it stays a fault.
        """
        asleep = [target for target in self.targets().values() if target.is_asleep]
        if asleep:
            await self._decide(asleep, {})

    async def _count_members(
        self, targets: Collection[ScaledTarget], committed: CommittedOffsets
    ) -> dict[str, int]:
        """Count the members of groups that have not committed, where only they tell who runs."""
        unread = {
            target.config.group
            for target in targets
            if target.counts_members and committed.offsets.get(target.config.group) == {}
        }
        members: dict[str, int] = {}
        for group, seen in (await self.groups.described(unread)).items():
            if isinstance(seen, str):
                del committed.offsets[group]
                committed.faults[group] = seen
            else:
                members[group] = len(seen.members)
        return members

    async def _decide(self, targets: Collection[ScaledTarget], faults: Mapping[str, str]) -> None:
        topics = {t for target in targets for t in self._topics(target)}
        windows: dict[str, float] = {}
        for target in targets:
            window_s = target.config.window_s(inf)
            for topic in self._topics(target) if window_s < inf else ():
                windows[topic] = min(window_s, windows.get(topic, inf))
        ends = await self.ends.look_up(topics, windows)
        assigned = {t.config.group for t in targets if self.assigner and t.config.assigns}
        seen = await self.groups.described(assigned)
        for target in targets:
            if target.order is not None and not target.order.done():
                continue  # an order is under way: what is seen now is about to change
            fault = faults.get(target.config.group, "")
            if target.config.group not in self._committed and not fault:
                continue  # new since the last pass
            try:
                self._decide_one(target, ends, fault, seen.get(target.config.group))
            except Exception as exc:  # noqa: BLE001 - an unexpected error in one group must not end others
                target.fail(exc)

    def _topics(self, target: ScaledTarget) -> frozenset[str]:
        committed = self._committed.get(target.config.group, {})
        return frozenset(target.config.topics) or target.state.baseline.topics_of(committed)

    def _decide_one(
        self,
        target: ScaledTarget,
        ends: Mapping[str, LogEnds],
        fault: str,
        seen: GroupDescription | str | None,
    ) -> None:
        workload = None
        if isinstance(seen, str):
            fault = fault or seen
        try:
            if target.workload is not None:
                workload = target.workload.status()
            elif isinstance(seen, GroupDescription):
                number = len(seen.members)
                workload = WorkloadStatus(replicas=number, ready=number, of_others=True)
        except ExternalError as exc:
            fault = fault or str(exc)
        if fault or workload is None:
            target.fault = fault or "the workload does not exist"
            target.log_changes()
            target.on_change(target, None)
            return
        now_s = loop_s()
        work, baseline = work_of(
            {
                partition: offset
                for partition, offset in self._committed[target.config.group].items()
                if not target.config.topics or partition.topic in target.config.topics
            },
            self._topics(target),
            ends,
            target.state.baseline,
            now_s - self.period_s,
            starts_at=target.config.starts_at,
        )
        state = replace(target.state, baseline=baseline)
        snapshot = GroupSnapshot(
            work=work,
            workload=workload,
            members=self._members.get(target.config.group) if target.counts_members else None,
            now_s=now_s,
            wall_s=wall_ms() / 1000,
        )
        state, verdict = decide(target.config, state, snapshot)
        if isinstance(seen, GroupDescription):
            state, verdict = with_assignment(target.config, state, snapshot, verdict, seen)
        target.state, target.verdict = state, verdict
        if verdict.order is None and verdict.step is None:
            target.fault = self._faults.get(target.config.group, "")
        else:  # the fault of an order that failed stays until one is carried out
            target.order = asyncio.create_task(self._order(target, verdict, snapshot, seen))
        target.log_changes()
        target.on_change(target, None)

    async def _order(
        self,
        target: ScaledTarget,
        verdict: Verdict,
        snapshot: GroupSnapshot,
        seen: GroupDescription | str | None,
    ) -> None:
        """Publish the plan that is due, and set a workload to a number of replicas.

        A failure is shown, and the next pass tries again.
        """
        order = WorkloadOrder(verdict.order)
        try:
            if self.assigner is not None and isinstance(seen, GroupDescription):
                target.state, order = await self.assigner.assign(
                    *(target.config, target.state, verdict, snapshot, seen, target.workload)
                )
            if target.workload is not None and order.replicas is not None:
                async with asyncio.timeout(ORDER_S):
                    await target.workload.scale(order.replicas, order.ending)
        except (ExternalError, UserError, TimeoutError) as exc:
            target.fault = str(exc) or f"the order was not carried out within {ORDER_S:g} s"
            number = verdict.order
            log(SCALE_FAILED, target=target.key, replicas=number, reason=target.fault)
            target.on_change(target, None)
            return
        except Exception as exc:  # noqa: BLE001 - it is shown, and other groups go on
            target.fail(exc)
            target.on_change(target, None)
            return
        target.fault = ""
        if order.replicas is None:
            return
        before = verdict.current
        target.state = ordered(target.state, order.replicas, loop_s(), before=before)
        reasons = verdict.reasons
        log(GROUP_SCALED, target=target.key, replicas=order.replicas, reasons=reasons)
        target.on_change(target, order.replicas)

    def samples(self) -> Iterator[Sample]:
        """Yield the metrics of the scaler and of its groups."""
        yield Sample(metrics.SCALER_PASS_SECONDS, self.pass_s)
        yield Sample(metrics.SCALER_PASSES_TOTAL, self.passes)
        yield from self.group_samples()

    def group_samples(self) -> Iterator[Sample]:
        """Yield the metrics of its groups."""
        for key, target in sorted(self.targets().items()):
            labels = {"target": key, "group": target.config.group}
            yield Sample(metrics.SCALED_GROUP_FAULT, bool(target.problem), labels)
            if (verdict := target.verdict) is None:
                continue
            numbers: dict[Metric, float | None] = {
                metrics.SCALED_GROUP_REPLICAS: verdict.current,
                metrics.SCALED_GROUP_WANTED_REPLICAS: verdict.wanted,
                metrics.SCALED_GROUP_LAG_RECORDS: verdict.work.lag,
                metrics.SCALED_GROUP_LOST_RECORDS: verdict.work.lost,
                metrics.SCALED_GROUP_RECORDS_PER_SECOND: verdict.work.rate,
                metrics.SCALED_GROUP_HOT_PARTITIONS: len(verdict.hot),
                metrics.SCALED_GROUP_BLOCKED: bool(verdict.blocked),
                metrics.SCALED_GROUP_PROPOSAL_WAITS: verdict.waits,
            }
            if (before := target.config.before_replicas) is not None:
                saved_s = target.state.usage.saved_s(before)
                numbers[metrics.SCALED_GROUP_SAVED_REPLICA_SECONDS] = saved_s
            if target.config.assigns:
                state = target.state
                numbers |= {
                    metrics.SCALED_GROUP_IMBALANCE: verdict.imbalance,
                    metrics.SCALED_GROUP_PLAN_GENERATION: (
                        None if state.plan is None else state.plan.generation
                    ),
                    metrics.SCALED_GROUP_REBALANCES_TOTAL: state.rebalances,
                    metrics.SCALED_GROUP_MOVED_PARTITIONS_TOTAL: state.moved,
                }
            for metric, value in numbers.items():
                if value is not None:
                    yield Sample(metric, value, labels)
