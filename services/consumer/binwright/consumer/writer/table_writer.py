"""One table's writer: does what the machine requests, one thing at a time."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, nullcontext, suppress
from dataclasses import dataclass

import structlog

from binwright.consumer.writer.announcements import Announced, Announcements
from binwright.consumer.writer.asking import Asker
from binwright.consumer.writer.effects import Effects
from binwright.consumer.writer.housekeeping import Housekeeper
from binwright.consumer.writer.reporting import report_of
from binwright.core.errors import LakeUnavailable, TableRefused
from binwright.core.messages import TableReport
from binwright.core.model import TopicPartition
from binwright.core.ports import Bus, Intake, Lake, Staging
from binwright.core.writer.chain import same_topic
from binwright.core.writer.landing import Landing
from binwright.core.writer.machine import (
    Lost,
    Phase,
    Resolving,
    Step,
    Writer,
    answered,
    due_at,
    heard,
    request,
)
from binwright.core.writer.requests import (
    Append,
    AskKafka,
    Claim,
    Conflict,
    Facts,
    Fence,
    Outcome,
    ReadHistory,
    Refused,
    Request,
    Told,
    Unclear,
    WriterRules,
)

log = structlog.get_logger()

REFUSED_S = 10.0  # from one attempt to the next, where a person must mend something
FIRST_PAUSE_S, LONGEST_PAUSE_S = 1.0, 10.0  # behind what ended without an answer
LONGEST_AWAY_S = 30.0  # from one attempt to reach the lake to the next
SHORTEST_WAIT_S = 0.01
MANY_COMMITS = 512
"""A longer history is parsed in a thread: some ten thousand stamps take seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """What the writers of a process share."""

    open_lake: Callable[[], Awaitable[Lake]]
    bus: Bus
    landing_topic: str
    intake: Intake
    staging: Staging
    housekeeper: Housekeeper
    turns: asyncio.Semaphore  # appends at a time
    starts: asyncio.Semaphore  # tables that are opened, claimed and resolved at a time
    on_gap: Callable[[Mapping[TopicPartition, int]], None]


class Place:
    """One of those that a semaphore has, taken and given back any number of times."""

    def __init__(self, places: asyncio.Semaphore) -> None:
        self._places, self._held = places, False

    async def take(self) -> None:
        """Wait for a place, unless one is held."""
        if not self._held:
            await self._places.acquire()
            self._held = True

    def give_back(self) -> None:
        """Let others have it."""
        if self._held:
            self._places.release()
            self._held = False


class BegunAnew(Exception):
    """What the attempt rests on is gone: the next one claims the table again."""

    def __init__(self, reason: str, after_s: float = 0.0) -> None:
        super().__init__(reason)
        self.after_s = after_s


class TableWriter:
    """Claims one table and lands what is staged for it, until another writer has it."""

    def __init__(self, topic: str, world: World, rules: Callable[[], WriterRules]) -> None:
        """Write the table of `topic`; `rules` gives each attempt a writer id of its own."""
        self.committing = False  # a call is under way that may change the table
        self.stopping = False  # set it to have `run` return behind that call
        self._topic, self._world, self._rules = topic, world, rules
        self._writer = Writer(rules())
        self._fault, self._refused = "", False  # why nothing goes on, and who can mend it
        self._pause_s = FIRST_PAUSE_S
        self._start = Place(world.starts)  # held until the table lands rows, or is in trouble
        self._landing_lost = ""  # why the landing topic cannot be read on
        self._changed = asyncio.Event()  # announcements came, or the landing topic is lost
        self._parsing = asyncio.Lock()  # the machine is in another thread
        self._effects = Effects(topic, world.intake, world.staging, world.on_gap)
        self._announcements = Announcements(
            world.bus, world.landing_topic, topic, take=self._hear, on_lost=self._lose_landing
        )

    def report(self) -> TableReport:
        """Return what the controller is told of the table."""
        return report_of(self._writer, self._fault, _now(), refused=self._refused)

    async def run(self) -> bool:
        """Write the table; return whether another writer has it now. Else it was stopped."""
        while not self.stopping:
            try:
                await self._attempt()
            except BegunAnew as exc:
                log.warning("table.begun_anew", table=self._topic, reason=str(exc))
                await asyncio.sleep(exc.after_s)
            except Exception as exc:  # our own fault: others' tables must not suffer for it
                log.exception("writer.failed", table=self._topic)
                self._fault = repr(exc)
                await asyncio.sleep(REFUSED_S)
            if isinstance(self._writer.phase, Lost):
                return True
        return False

    async def end(self, patience_s: float) -> None:
        """Let go of everything; what is being deleted may take so long."""
        await self._effects.end(patience_s)

    # --- one attempt: from the claim on ----------------------------------------------------------

    async def _attempt(self) -> None:
        self._writer, self._landing_lost = Writer(self._rules()), ""
        await self._start.take()
        try:
            await self._write(await self._opened())
        finally:
            self._start.give_back()

    async def _write(self, lake: Lake) -> None:
        world = self._world
        try:
            asker = Asker(
                topic=self._topic,
                lake=lake,
                bus=world.bus,
                landing_topic=world.landing_topic,
                intake=world.intake,
                staging=world.staging,
            )
            while not self.stopping and not isinstance(self._writer.phase, Lost):
                await self._step(asker)
        finally:
            world.housekeeper.gave_up(self._topic)
            await self._announcements.stop()
            await lake.release(self._topic)

    async def _opened(self) -> Lake:
        """Open lake and table, however long that takes."""
        pause_s = FIRST_PAUSE_S
        while True:
            try:
                lake = await self._world.open_lake()
                await lake.open(self._writer.rules.table)
            except TableRefused as exc:
                self._blame(str(exc), refused=True)
                await asyncio.sleep(REFUSED_S)
            except LakeUnavailable as exc:
                self._blame(str(exc))
                await asyncio.sleep(pause_s)
                pause_s = min(2 * pause_s, LONGEST_AWAY_S)
            else:
                self._blame("")
                return lake

    def _blame(self, reason: str, *, refused: bool = False) -> None:
        """Take why nothing goes on; none if it does."""
        if reason:
            self._start.give_back()  # whatever ails this table, others need not wait for it
        if reason and reason != self._fault:
            event = "table.refused" if refused else "table.waits"
            log.error(event, table=self._topic, reason=reason)
        self._fault, self._refused = reason, refused

    async def _step(self, asker: Asker) -> None:
        """Do the next thing that is requested, or wait until there may be one."""
        if self._landing_lost:
            raise BegunAnew(f"the landing topic cannot be read on: {self._landing_lost}")
        looked, wanted = request(self._writer, _now())
        if wanted is None:
            self._writer = looked
            await self._wait()
            return
        async with self._turn(wanted):
            # Anew: what was announced while others had their turn goes with it.
            self._writer, fresh = request(self._writer, _now())
            if isinstance(wanted, Append) and isinstance(fresh, AskKafka):
                # A moment for Kafka does not cost the turn.
                await self._do(asker, fresh)
                self._writer, fresh = request(self._writer, _now())
            outcome = await self._do(asker, fresh) if fresh else None
        if fresh and outcome and not self.stopping:
            await self._follow(asker, fresh, outcome)

    def _turn(self, wanted: Request) -> AbstractAsyncContextManager[object]:
        return self._world.turns if isinstance(wanted, Append) else nullcontext()

    async def _wait(self) -> None:
        now = _now()
        with suppress(TimeoutError):
            async with asyncio.timeout_at(max(due_at(self._writer, now), now + SHORTEST_WAIT_S)):
                await self._changed.wait()
        self._changed.clear()

    async def _do(self, asker: Asker, wanted: Request) -> Outcome:
        phase = self._writer.phase
        facts = phase.facts if isinstance(phase, Resolving) else None
        self.committing = isinstance(wanted, Append | Claim | Fence)
        try:
            outcome = await asker.ask(wanted, facts.topic_id if facts else None)
        finally:
            self.committing = False
        await self._take(asker, outcome)
        return outcome

    async def _take(self, asker: Asker, outcome: Outcome) -> None:
        """Hand the outcome to the machine, and do what it causes."""
        before = self._writer.phase
        known = before.landing_id if isinstance(before, Landing) else None
        if isinstance(outcome, Facts) and not same_topic(outcome.landing_id, known):
            raise BegunAnew("the landing topic was made anew")
        if isinstance(outcome, Told) and len(outcome.commits) > MANY_COMMITS:
            async with self._parsing:
                step = await asyncio.to_thread(answered, self._writer, outcome, _now())
                begin = self._apply(step)
        else:
            begin = self._apply(answered(self._writer, outcome, _now()))
        if begin is not None:
            await self._announcements.begin(begin)
        self._keep_house(asker, before)
        if isinstance(self._writer.phase, Landing):
            self._start.give_back()

    def _apply(self, step: Step) -> int | None:
        self._writer, effects = step
        chain = self._writer.chain
        return self._effects.carry_out(effects, chain.topic_id if chain else None)

    def _keep_house(self, asker: Asker, before: Phase) -> None:
        """Tell the housekeeper of a claim that was resolved, and of a commit with rows."""
        after, keeper = self._writer.phase, self._world.housekeeper
        if not isinstance(after, Landing):
            return
        if not isinstance(before, Landing):
            keeper.claimed(self._topic, asker.lake)
        elif after.commits > before.commits and before.flight and before.flight.batch.slices:
            keeper.committed(self._topic)

    async def _follow(self, asker: Asker, wanted: Request, outcome: Outcome) -> None:
        """Rest where the machine does not say for how long, and see what a refusal means."""
        landing = isinstance(self._writer.phase, Landing)
        paced = isinstance(wanted, Append) or (landing and isinstance(wanted, AskKafka))
        match outcome:
            case Unclear(reason=reason) | Conflict(reason=reason):
                self._blame(reason)
                if not paced:
                    await asyncio.sleep(self._pause_s)
                    self._pause_s = min(2 * self._pause_s, LONGEST_PAUSE_S)
            case Refused(reason=reason) if not isinstance(wanted, Append):
                raise BegunAnew(reason, REFUSED_S)
            case Refused() if landing:
                # Of a table that was taken away or made anew, nothing that we know holds.
                if isinstance(await asker.ask(ReadHistory(1), None), Refused):
                    raise BegunAnew("the table is not there any more", REFUSED_S)
            case _:
                self._blame("")
                self._pause_s = FIRST_PAUSE_S

    # --- announcements ---------------------------------------------------------------------------

    async def _hear(self, announced: Announced) -> None:
        async with self._parsing:
            for offset, staged in announced:
                self._apply(heard(self._writer, offset, staged, _now()))
        self._changed.set()

    def _lose_landing(self, reason: str) -> None:
        self._landing_lost = reason
        self._changed.set()


def _now() -> float:
    return asyncio.get_running_loop().time()
