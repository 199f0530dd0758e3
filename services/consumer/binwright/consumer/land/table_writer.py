"""One table's writer: runs the requests of `decide.land.machine`, one at a time."""

import asyncio
from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace

from binwright.consumer.decide.land.chain import same_topic
from binwright.consumer.decide.land.landing import TABLE_REFUSED
from binwright.consumer.decide.land.machine import (
    Step,
    apply_announcements,
    apply_operation,
    apply_order,
    apply_outcome,
    apply_read_up_to,
    due_at,
    next_request,
    with_topics,
)
from binwright.consumer.decide.land.states import (
    CHANGES,
    Append,
    ClaimTable,
    CommitOffsets,
    Committed,
    Conflict,
    Contradicted,
    HistoryRead,
    KafkaState,
    Landing,
    Lost,
    OperationRequest,
    Outcome,
    Phase,
    QueryKafka,
    Refused,
    Request,
    Resolving,
    StageEarlier,
    Unclear,
    Writer,
)
from binwright.consumer.events import Emit
from binwright.consumer.land.actions import RequestRunner
from binwright.consumer.land.announcements import Announced, Subscription
from binwright.consumer.land.context import MOST_PENDING, Permit, WriterContext
from binwright.consumer.land.effects import Effects, OffsetCommitters
from binwright.consumer.land.report import table_report
from binwright.protocol.errors import LakeUnavailable, StagingUnavailable, TableRefused
from binwright.protocol.log_events import LogEvent
from binwright.protocol.metadata import TableReport
from binwright.protocol.names import TABLE_LAYOUT
from binwright.runtime.backoff import Backoff, until_set
from binwright.runtime.clock import loop_s
from binwright.runtime.logs import log
from binwright.runtime.metrics import topic_label
from binwright.runtime.spark_url import redacted_url
from binwright.tables.operations import REPLAY
from binwright.tables.ports import Lake
from binwright.tables.targets import Target, check_forms, forms_differ

TABLE_RESTARTED = LogEvent.warning(
    "table.restarted", "A table's writer starts over: its session or the landing topic failed."
)
WRITER_FAILED = LogEvent.error(
    "writer.failed", "A table's writer failed unexpectedly; it starts over, the other tables land."
)
TABLE_DELAYED = LogEvent.error(
    "table.delayed", "Nothing lands in a table at the moment: Spark or the lake does not answer."
)

REFUSED_S = 10.0  # between attempts, where a person must repair something
FIRST_PAUSE_S, LONGEST_PAUSE_S = 1.0, 10.0  # after a request without a verdict
LONGEST_OPEN_PAUSE_S = 30.0  # between attempts to open the lake
SHORTEST_WAIT_S = 0.01
PERMIT_S = 10.0  # a longer wait for a permit is reported
MANY_COMMITS = 512
"""A longer history is parsed in a thread: ten thousand stamps take seconds."""


class RestartNeeded(Exception):
    """The attempt cannot go on: the next one claims the table again, `after_s` seconds later."""

    def __init__(self, reason: str, after_s: float = 0.0) -> None:
        super().__init__(reason)
        self.after_s = after_s


class TableWriter:
    """Claims one table and lands what is staged for it, until another writer claims it."""

    def __init__(
        self,
        targets: Sequence[Target],
        context: WriterContext,
        offsets: OffsetCommitters,
        emit: Emit,
    ) -> None:
        """Prepare to write the table of these targets, one for each of its topics."""
        self.committing = False  # a call that may change the table is in progress
        self.stopping = False  # set to make `run` return after that call
        self._targets = {target.topic: target for target in targets}
        self._table, self._context = targets[0].name, context
        self._writer = self._new_writer()
        self._forms_fault = ""  # why the topics that it takes since an attempt began do not fit
        self._fault = ""  # why the table makes no progress
        self._runner: RequestRunner | None = None  # of the last attempt
        self._refused = False  # whether a person must repair that
        self._pause = Backoff(LONGEST_PAUSE_S, first_s=FIRST_PAUSE_S)
        server = context.server(self._table)
        self._server = redacted_url(server)
        self._append_permits = context.append_permits.of(server)
        # Acquired until the table lands rows or reports a fault.
        self._start_permit = Permit(context.start_permits.of(server))
        self._landing_fault = ""  # why the landing topic cannot be read further
        self._changed = asyncio.Event()  # announcements arrived, or the landing topic is lost
        self._parsing = asyncio.Lock()  # another thread works on the machine state
        self._effects = Effects(self._table, context, offsets, emit)

    def _new_writer(self) -> Writer:
        first = next(iter(self._targets.values()))
        return with_topics(Writer(self._context.config(first)), self._targets.keys())

    def take(self, targets: Sequence[Target]) -> None:
        """Take these targets' topics from now on, in place of those that it had."""
        new = {target.topic: target for target in targets}
        added = new.keys() - self._targets.keys()
        self._targets, self._forms_fault = new, forms_differ(targets)
        self._advance(self._writer)
        phase = self._writer.phase
        if isinstance(phase, Landing) and not phase.stamp_due:
            # What earlier writers landed of them is known; else the next stamp has it.
            landed = {p: o for p, o in phase.chain.committed.items() if p.topic in added}
            self._effects.carry_out([CommitOffsets(landed)], phase.chain.topic_ids)
        self._changed.set()

    def takes(self, topic: str) -> bool:
        """Return whether the table takes a topic's records, as the settings have it.

        So it does of topics whose role is another process's, for a moment: only one of them writes.
        """
        if topic in self._targets:
            return True
        form = next(iter(self._targets.values())).form
        try:
            targets = self._context.targets(topic)
        except TableRefused:
            return False
        return any(each.name == self._table and each.form == form for each in targets)

    def report(self) -> TableReport:
        """Return the table's report for the controller."""
        appended = "" if self._runner is None else self._runner.appended
        return table_report(
            self._writer,
            self._fault,
            loop_s(),
            refused=self._refused,
            appended=appended,
            compaction=self._context.maintenance.compaction(self._table),
            registration=self._context.maintenance.registration(self._table),
        )

    async def run(self) -> bool:
        """Write the table; return True once another writer claimed it, False if stopped."""
        while not self.stopping:
            try:
                await self._attempt()
            except RestartNeeded as exc:
                log(TABLE_RESTARTED, table=self._table, reason=str(exc))
                await asyncio.sleep(exc.after_s)
            except Exception as exc:  # noqa: BLE001 - a bug: other tables must go on
                log(WRITER_FAILED, table=self._table, exc_info=True)
                self._fault = repr(exc)
                await asyncio.sleep(REFUSED_S)
            if isinstance(self._writer.phase, Lost):
                return True
        return False

    async def end(self, timeout_s: float) -> None:
        """Release everything; wait `timeout_s` seconds at most for file deletions."""
        await self._effects.end(timeout_s)

    # --- one attempt, from the claim on ----------------------------------------------------------

    async def _attempt(self) -> None:
        self._writer, self._landing_fault = self._new_writer(), ""
        self._context.timings.begin(self._timed())
        await self._start_permit.acquire()
        try:
            await self._write(await self._open())
        finally:
            self._start_permit.release()

    async def _write(self, lake: Lake) -> None:
        self._runner = runner = RequestRunner(lake, self._context, self._writer.config)
        self._context.orders.subscribe(self._table, self._changed.set)
        try:
            while not self.stopping and not isinstance(self._writer.phase, Lost):
                await self._step(runner)
        finally:
            self._context.maintenance.released(self._table)
            self._context.orders.unsubscribe(self._table)
            await self._context.announcements.unsubscribe(self._table)
            await lake.release(self._table)

    async def _open(self) -> Lake:
        """Open the lake and the table; retry until that succeeds."""
        pause = Backoff(LONGEST_OPEN_PAUSE_S, first_s=FIRST_PAUSE_S)
        while True:
            try:
                check_forms([*self._targets.values()])
                opened = self._writer.config
                if opened.in_place and opened.table.columns is not None:
                    # First: a server that starts may take a while, and meanwhile files are staged.
                    await self._context.staging.keep(self._table, TABLE_LAYOUT, b"read")
                lake = await self._context.lake.get()
                first = await lake.open(opened.table)
            except TableRefused as exc:
                self._set_fault(str(exc), refused=True)
                await asyncio.sleep(REFUSED_S)
            except (LakeUnavailable, StagingUnavailable) as exc:
                self._set_fault(str(exc))
                await asyncio.sleep(pause.next())
            else:
                self._set_fault("")
                config = self._writer.config
                config = replace(config, table=replace(config.table, unnamed_topic=first))
                self._advance(replace(self._writer, config=config))
                return lake

    def _set_fault(self, reason: str, *, refused: bool = False) -> None:
        """Set why the table makes no progress; "" if it does."""
        if reason:
            self._start_permit.release()  # other tables may start meanwhile
        if reason and reason != self._fault:
            event = TABLE_REFUSED if refused else TABLE_DELAYED
            log(event, table=self._table, reason=reason)
        self._fault, self._refused = reason, refused

    async def _step(self, runner: RequestRunner) -> None:
        """Run the next request, or wait until there may be one."""
        if self._landing_fault:
            raise RestartNeeded(f"the landing topic cannot be read further: {self._landing_fault}")
        if self._forms_fault:
            raise RestartNeeded(self._forms_fault)
        self._follow_order()
        writer, request = next_request(self._writer, loop_s())
        if request is None:
            self._advance(writer)
            await self._wait()
            return
        async with self._permit(request):
            # Ask again: the batch takes in what was announced while waiting for the permit.
            current = self._next_request()
            if isinstance(request, Append) and isinstance(current, QueryKafka):
                # A query of Kafka is short: the permit is kept for the append behind it.
                await self._run_request(runner, current)
                current = self._next_request()
            outcome = await self._run_request(runner, current) if current else None
        if current and outcome and not self.stopping:
            await self._react(runner, current, outcome)

    def _follow_order(self) -> None:
        orders = self._context.orders
        if (order := orders.newest(self._table)) is not None:
            self._apply_step(apply_order(self._writer, order, orders.read_at))
        if (ordered := orders.operation(self._table)) is not None:
            self._apply_step(apply_operation(self._writer, ordered, orders.read_at))

    def _next_request(self) -> Request | None:
        self._follow_order()
        writer, request = next_request(self._writer, loop_s())
        self._advance(writer)
        return request

    @asynccontextmanager
    async def _permit(self, request: Request) -> AsyncIterator[None]:
        """Hold a permit for work of Spark; what takes too long gives it back while it goes on."""
        if not isinstance(request, Append | OperationRequest) or isinstance(request, StageEarlier):
            yield
            return
        call_later = asyncio.get_running_loop().call_later
        waits = f"waits for other tables' appends on {self._server}"
        permit, late = Permit(self._append_permits), call_later(PERMIT_S, self._set_fault, waits)
        try:
            await permit.acquire()
        finally:
            late.cancel()
        if self._fault == waits:
            self._set_fault("")
        back = call_later(self._context.append_limit_s, permit.release)
        try:
            yield
        finally:
            back.cancel()
            permit.release()

    async def _wait(self) -> None:
        now = loop_s()
        await until_set(self._changed, max(due_at(self._writer, now) - now, SHORTEST_WAIT_S))
        self._changed.clear()

    async def _run_request(self, runner: RequestRunner, request: Request) -> Outcome:
        phase = self._writer.phase
        state = phase.kafka if isinstance(phase, Resolving) else None
        self.committing = isinstance(request, (Append, ClaimTable, *CHANGES))
        began_at = loop_s()
        try:
            chain = self._writer.chain
            committed = chain.committed if chain else {}
            outcome = await runner.run(request, state.topic_ids if state else {}, committed)
        finally:
            self.committing = False
        if isinstance(request, Append) and isinstance(outcome, Committed):
            self._time_commit(request.batch.files, began_at)
        await self._apply_outcome(runner, outcome)
        return outcome

    def _time_commit(self, files: Collection[str], began: float) -> None:
        """Measure a commit before its files leave the chain; one of a stamp alone has no rows."""
        phase, now = self._writer.phase, loop_s()
        if isinstance(phase, Landing) and (oldest_at := phase.chain.oldest_of(files)) is not None:
            self._context.timings.committed(self._timed(), len(files), now - began, now - oldest_at)

    def _timed(self) -> Target:
        return Target(topic_label([*self._targets]), self._table)

    async def _apply_outcome(self, runner: RequestRunner, outcome: Outcome) -> None:
        """Apply an outcome to the machine and carry out the effects."""
        before = self._writer.phase
        known = before.landing_id if isinstance(before, Landing) else None
        if isinstance(outcome, KafkaState) and not same_topic(outcome.landing_id, known):
            raise RestartNeeded("the landing topic was recreated")
        if isinstance(outcome, HistoryRead) and len(outcome.commits) > MANY_COMMITS:
            async with self._parsing:
                step = await asyncio.to_thread(apply_outcome, self._writer, outcome, loop_s())
                begin = self._apply_step(step)
        else:
            begin = self._apply_step(apply_outcome(self._writer, outcome, loop_s()))
        if begin is not None:
            self._subscribe(begin)
        self._notify_maintenance(runner, before)
        if isinstance(self._writer.phase, Landing):
            self._start_permit.release()

    def _apply_step(self, step: Step) -> int | None:
        writer, effects = step
        self._advance(writer)
        chain = self._writer.chain
        return self._effects.carry_out(effects, chain.topic_ids if chain else {})

    def _advance(self, writer: Writer) -> None:
        """Set the machine's state; read on if it has room for announcements again."""
        if {*writer.config.table.topics} != self._targets.keys():  # since the step began
            writer = with_topics(writer, self._targets.keys())
        had_room = self._has_room()
        self._writer = writer
        if not had_room and self._has_room():
            self._context.announcements.resume(self._table)

    def _notify_maintenance(self, runner: RequestRunner, before: Phase) -> None:
        """Report a resolved claim, a pause, and a commit with rows to the table maintenance."""
        after, maintenance = self._writer.phase, self._context.maintenance
        if not isinstance(after, Landing):
            return
        if after.paused:
            maintenance.released(self._table)
        elif not isinstance(before, Landing) or not maintenance.serves(self._table):
            maintenance.claimed(self._writer.config.table, runner.lake)
        elif after.commits > before.commits and before.flight and before.flight.batch.slices:
            maintenance.committed(
                self._table,
                before.flight.batch,
                in_place=not runner.appended and before.flight.batch.work != REPLAY,
                bad=after.bad > before.bad,
            )
        if (operation := after.operation) is not None:
            for until_ms in (operation.earlier_until_ms, operation.files_until_ms):
                if until_ms:
                    maintenance.erased(self._table, until_ms / 1000)

    async def _react(self, runner: RequestRunner, request: Request, outcome: Outcome) -> None:
        """Pause after a failure that the machine does not pace; check what a refusal means."""
        landing = isinstance(self._writer.phase, Landing)
        paced = isinstance(request, Append) or (landing and isinstance(request, QueryKafka))
        if isinstance(self._writer.phase, Contradicted):
            self._set_fault(self._writer.phase.reason, refused=True)
            raise RestartNeeded(self._writer.phase.reason, REFUSED_S)
        if isinstance(request, OperationRequest):
            return  # the machine paces it, and says what its fault is: the table lands all the same
        match outcome:
            case Unclear(reason=reason) | Conflict(reason=reason):
                self._set_fault(reason)
                if not paced:
                    await asyncio.sleep(self._pause.next())
            case Refused(reason=reason) if not isinstance(request, Append):
                raise RestartNeeded(reason, REFUSED_S)
            case Refused() if landing:
                # If the table was deleted, recreated or altered, this attempt knows it no more: the
                # next one opens it anew, and adds what it lacks.
                if reason := await runner.altered():
                    self._set_fault(reason, refused=True)
                    raise RestartNeeded(reason, REFUSED_S)
            case _:
                self._set_fault("")
                self._pause.reset()

    # --- announcements ---------------------------------------------------------------------------

    def _subscribe(self, offset: int) -> None:
        """Read announcements from this offset on."""
        self._context.announcements.subscribe(
            Subscription(
                self._table,
                self.takes,
                offset,
                apply=self._apply_announcements,
                has_room=self._has_room,
                lost=self._landing_topic_lost,
            )
        )

    def _has_room(self) -> bool:
        phase = self._writer.phase
        return not isinstance(phase, Landing) or phase.has_room(MOST_PENDING)

    async def _apply_announcements(self, announced: Announced, read_up_to: int) -> None:
        if not isinstance(phase := self._writer.phase, Landing):
            return  # they are read again once it lands; other tables do not wait for a history
        undecided = phase.undecided
        async with self._parsing:
            again = None
            if announced:
                again = self._apply_step(apply_announcements(self._writer, announced, loop_s()))
            if again is None:
                self._advance(apply_read_up_to(self._writer, read_up_to))
            else:
                self._subscribe(again)
        phase = self._writer.phase
        if announced or (isinstance(phase, Landing) and phase.undecided != undecided):
            self._changed.set()

    def _landing_topic_lost(self, reason: str) -> None:
        self._landing_fault = reason
        self._changed.set()
