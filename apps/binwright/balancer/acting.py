"""The reaction of `brokers.mode` `approve` and `act`: plans have numbers, and are carried out.

A leader that is stopped takes back what is being copied; the next one reads from the topic that the
plan has started, and continues it within what is left of the budget. Whoever may write to the topic
can put any plan there, so a leader carries out only what its own planner finds: those that it
proposed itself, and others when its planner finds them again.
"""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager

from binwright.balancer.decide.proposals import (
    BrokerMode,
    BrokerPlan,
    before_plan,
    is_found_again,
    outdated_reason,
    proposal_of,
)
from binwright.balancer.decide.reassignment import ClusterObservation, CopyLimits, NextActions
from binwright.balancer.executor import POLL_S, TAKE_BACK_S, Executor, check, take_back
from binwright.balancer.metrics import BROKERS_LEFT_PARTITIONS, BROKERS_PROPOSED_BYTES
from binwright.balancer.plan_topic import RETRY_S, PlanTopic, TopicLedger
from binwright.balancer.ports import Brokers, Probe, Targets
from binwright.balancer.watch import BALANCE_PROPOSED, Look, PlanPace
from binwright.protocol.errors import BrokerUnavailable, ExternalError, PlacementError
from binwright.protocol.log_events import LogEvent
from binwright.runtime.clock import loop_s, wall_ms
from binwright.runtime.logs import log
from binwright.runtime.metrics import Sample

BALANCE_STARTED = LogEvent.info(
    "balance.started",
    "The leader carries out a plan for brokers; `again`: one that had been started before, `by`: "
    "who approved it.",
)

ConnectBrokers = Callable[[], AbstractAsyncContextManager[Brokers]]
MakeProbe = Callable[[Targets], AbstractAsyncContextManager[Probe | None]]


class Acting:
    """Proposes plans on their topic, and carries out those that may go ahead."""

    def __init__(
        self,
        topic: PlanTopic,
        connect: ConnectBrokers,
        *,
        group: str,
        mode: BrokerMode,
        limits: CopyLimits,
        probe: MakeProbe,
        poll_s: float = POLL_S,
        now_ms: Callable[[], int] = wall_ms,
    ) -> None:
        """Prepare.

        Args:
            topic: Of the plans.
            connect: Connects to the brokers.
            group: Whose balancer this is.
            mode: Whether plans wait for an approval.
            limits: Of copying; its bytes per hour are those of all plans.
            probe: Makes what measures how long producers wait.
            poll_s: Between the looks of a run, s.
            now_ms: The wall clock, which leaders share.
        """
        self._topic, self._connect, self._probe = topic, connect, probe
        self._group, self._mode, self._limits = group, mode, limits
        self._poll_s, self._now_ms = poll_s, now_ms
        self._pace = PlanPace()
        self._own: set[int] = set()  # numbers of plans that this process' planner has found
        self._left: int | None = None  # partitions of the plan under way

    async def react(self, look: Look) -> None:
        """See `Reaction`."""
        await self._topic.read()
        plan = self._plan()
        if plan is not None:
            reason = outdated_reason(plan, self._mode, look.state, look.cluster, look.crossed)
            reason = reason or await self._not_found_again(plan, look)
            if reason is not None:
                await self._take_back(plan)
                await self._topic.end(plan, done=False, reason=reason)
                self._pace = PlanPace()
                plan = None
        if plan is None and self._pace.due(look.crossed):
            plan = await self._propose(look)
        if plan is not None and plan.goes_ahead:
            await self._carry_out(plan)

    async def rest(self, seconds: float) -> None:
        """See `Reaction`: a plan that is approved goes ahead at once."""
        end = loop_s() + seconds
        went_ahead = self._goes_ahead()
        while loop_s() < end:
            try:
                await self._topic.follow()
            except ExternalError:
                await asyncio.sleep(RETRY_S)  # the next look says what is wrong
            if self._goes_ahead() and not went_ahead:
                return

    def samples(self) -> Iterator[Sample]:
        """See `Reaction`."""
        if (plan := self._plan()) is not None:
            yield Sample(BROKERS_PROPOSED_BYTES, plan.proposed.bytes)
        if self._left is not None:
            yield Sample(BROKERS_LEFT_PARTITIONS, self._left)

    def _plan(self) -> BrokerPlan | None:
        return self._topic.proposals.by_group.get(self._group)

    def _goes_ahead(self) -> bool:
        plan = self._plan()
        return plan is not None and plan.goes_ahead

    async def _propose(self, look: Look) -> BrokerPlan | None:
        """Publish a plan; raise `PlacementError` with each reason why it would not be safe."""
        message = proposal_of(
            await look.find_plan(look.cluster), look.crossed, self._group, self._mode
        )
        if message is None:
            return None
        async with self._connect() as brokers:
            await check(brokers, message.after, replication_may_change=False)
        number = await self._topic.publish(message)
        self._own.add(number)
        log(
            BALANCE_PROPOSED,
            plan=number,
            reasons=list(message.reasons),
            partitions=len(message.after),
            bytes=message.bytes,
            waits=message.waits,
        )
        return self._plan()

    async def _not_found_again(self, plan: BrokerPlan, look: Look) -> str | None:
        """Return why a plan of another process, or of nobody, is not carried out; None: it is."""
        if plan.number in self._own:
            return None
        try:
            earlier = before_plan(look.cluster, plan.proposed)
            best = await look.find_plan(earlier)
        except PlacementError as exc:
            return f"the planner of this leader finds no plan: {exc}"
        # It takes as long as a look does, in which the loop must answer.
        if not await asyncio.to_thread(
            is_found_again, plan.proposed, earlier, best, look.thresholds
        ):
            return "the planner of this leader finds a better one"
        self._own.add(plan.number)
        return None

    async def _take_back(self, plan: BrokerPlan) -> None:
        """Take back what a leader that was killed has under way of a plan; it took back nothing.

        Raises:
            BrokerUnavailable: It is not done in time; the next look tries again.
        """
        if not plan.started:
            return
        try:
            async with asyncio.timeout(TAKE_BACK_S), self._connect() as brokers:
                await take_back(brokers, plan.proposed.after, poll_s=self._poll_s)
        except TimeoutError as exc:
            raise BrokerUnavailable(
                f"plan {plan.number} is not taken back within {TAKE_BACK_S:g} s"
            ) from exc

    async def _carry_out(self, plan: BrokerPlan) -> None:
        """Move what a plan moves, until all is in place or a person withdraws it."""
        targets = plan.proposed.after
        async with self._connect() as brokers:
            try:
                await check(brokers, targets, replication_may_change=False)
            except PlacementError as exc:
                if plan.started:
                    raise  # the next look tries again
                await self._topic.end(plan, done=False, reason=str(exc))
                return
            ledger = TopicLedger(self._topic, plan.number, self._now_ms)
            log(BALANCE_STARTED, plan=plan.number, again=plan.started, by=plan.by)
            await ledger.start(0)
            async with self._probe(targets) as probe:
                executor = Executor(
                    brokers,
                    targets,
                    self._limits,
                    probe=probe,
                    on_decision=self._show,
                    poll_s=self._poll_s,
                    ledger=ledger,
                )
                try:
                    done = await self._run(executor, plan.number)
                finally:
                    self._left = None
        if done:
            await self._topic.end(plan, done=True, reason="all is in place")

    async def _run(self, executor: Executor, number: int) -> bool:
        """Run to the end, or until the plan is over; return whether all is in place."""
        running = asyncio.create_task(executor.run())
        over = asyncio.create_task(self._topic.until_over(number))
        try:
            await asyncio.wait({running, over}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            running.cancel()
            over.cancel()
            await _ended(running, over)
        for task in (running, over):
            if not task.cancelled():
                task.result()  # raises what it raised
        return not running.cancelled()

    def _show(self, decided: NextActions, _: ClusterObservation) -> None:
        self._left = decided.progress.total - decided.progress.done


async def _ended(*tasks: "asyncio.Task[None]") -> None:
    """Wait for tasks that were cancelled, also if we are: taking back needs the connection."""
    cancelled: asyncio.CancelledError | None = None
    while not all(task.done() for task in tasks):
        try:
            await asyncio.wait(tasks)
        except asyncio.CancelledError as exc:
            cancelled = exc
    if cancelled is not None:
        raise cancelled
