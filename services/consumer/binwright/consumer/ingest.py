"""One consumer at work: obeys, fetches, writes, answers.

Four tasks share one `Consumer` state. It changes between awaits only, through `_apply`, and what
a change asks for is done in that order by one task: answers leave in the order they came about.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import structlog

from binwright.consumer.buffer import Buffer, Shelf, size_of
from binwright.consumer.landing import Tables
from binwright.consumer.mailbox import Mailbox
from binwright.consumer.positions import Positions
from binwright.core import handover
from binwright.core.batch import BatchRules
from binwright.core.errors import BrokerUnavailable, Fenced, TopicMissing, TopicRecreated
from binwright.core.handover import (
    Active,
    Ahead,
    Closing,
    Consumer,
    Deed,
    Done,
    Exit,
    Fetch,
    Land,
    Open,
    Opening,
    Quit,
    Reply,
    ReportNow,
)
from binwright.core.messages import Goodbye, Report
from binwright.core.model import TopicPartition
from binwright.core.ports import Intake
from binwright.shell.letters import commands
from binwright.shell.run import endless

log = structlog.get_logger()

FETCH_BYTES = 8 << 20
FETCH_WAIT_S = 0.5
RATE_WINDOW_S = 10.0
IDLE_S, SHORTEST_S = 5.0, 0.01
RELIEF_S = 3.0
"""How long who was asked to end waits for a controller's next word before it quits everything."""
HINT_REFRESH_S = 3600.0  # Kafka forgets an idle group's offsets after days


@dataclass(frozen=True, slots=True)
class IngestRules:
    """A consumer's settings."""

    batch: BatchRules = field(default_factory=BatchRules)
    from_latest: bool = False
    report_s: float = 1.0
    relief_s: float = 30.0  # at most from the wish to leave until everything is quit


class _Left(Exception):
    """The process has said its last word."""


class Ingest:
    """A consumer process between its Hello and its exit."""

    def __init__(  # noqa: PLR0913 - its neighbours, its rules, a wall clock
        self,
        *,
        mailbox: Mailbox,
        intake: Intake,
        tables: Tables,
        topics: Sequence[str],
        rules: IngestRules,
        wall_ms: Callable[[], int],
        beat: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.consumer = Consumer(mailbox.slot, mailbox.epoch)
        self._mailbox, self._intake, self._tables = mailbox, intake, tables
        self._topics, self._rules, self._wall_ms = topics, rules, wall_ms
        self._positions = Positions(intake, tables, from_latest=rules.from_latest)
        self._beat = beat  # told each time that a loop has gone round
        self._buffer = Buffer(rules.batch)
        self._shelf = Shelf(rules.batch.cap_bytes // 2)
        self._from: dict[TopicPartition, int] = {}  # where the fetch that is ordered last begins
        self._deeds: asyncio.Queue[Deed] = asyncio.Queue()
        self._unsaid = 0  # answers among the deeds
        self._due = False  # a report is among them
        self._opens: deque[Open] = deque()
        self._asked = asyncio.Event()  # to end
        self._told_at = 0.0  # anything by a controller
        self._wake = asyncio.Event()  # something to do for Spark, or room to fetch into
        self._landed: deque[tuple[float, int]] = deque()  # when, bytes
        self._rows = 0
        self._holes = 0

    async def run(self) -> None:
        """Work until told to leave, or drained.

        Raises:
            Fenced: A newer process has this slot, or it was declared dead.
            UserError: A table cannot be had.
        """
        try:
            async with asyncio.TaskGroup() as tasks:
                for work in (self._listen, self._do, self._report, self._fetch, self._write):
                    tasks.create_task(endless(work()))
                tasks.create_task(self._give_up())
        except* _Left as left:
            log.info("consumer.ended", reason=str(left.exceptions[0]))

    def leave(self) -> None:
        """Begin a graceful exit; `run` returns when nothing is held or in flight any more.

        Reading goes on while the controller moves the partitions away. All are quit when it has
        said nothing for some seconds, or takes too long.
        """
        self._told_at = asyncio.get_running_loop().time()
        self._asked.set()
        self._apply(handover.leave(self.consumer))

    async def _give_up(self) -> None:
        await self._asked.wait()
        now = asyncio.get_running_loop().time
        last = now() + self._rules.relief_s
        while (left_s := min(self._told_at + RELIEF_S, last) - now()) > 0:  # noqa: ASYNC110 - each word moves the deadline
            await asyncio.sleep(left_s)
        if held := self.consumer.reading():
            log.warning("relief.missed", held=len(held))
        self._apply(handover.drain(self.consumer))

    # --- the state, and what follows from its changes --------------------------------------------

    def _apply(self, done: Done) -> None:
        self.consumer, deeds = done
        for deed in deeds:
            match deed:
                case Quit(partition=partition):  # at once: from here on nothing of it may be taken
                    self._intake.stop(partition)
                    self._buffer.drop(partition)
                    self._shelf.take(partition)
                    self._from.pop(partition, None)
                case Land(partition=partition):  # at once: what is fetched next comes behind it
                    self._land_ahead(partition)
                case Fetch(partition=partition, offset=offset):
                    self._from[partition] = offset
                    self._deeds.put_nowait(deed)
                case ReportNow():
                    self._tell()
                case _:
                    self._unsaid += isinstance(deed, Reply)
                    self._deeds.put_nowait(deed)
        self._wake.set()

    def _tell(self) -> None:
        """Report soon; one waits at most: many would gather before answers while Kafka is away."""
        if not self._due:
            self._due = True
            self._deeds.put_nowait(ReportNow())

    def _land_ahead(self, partition: TopicPartition) -> None:
        read = self._shelf.take(partition)
        self._buffer.add(partition, read.records, asyncio.get_running_loop().time())
        if read.go_on is not None:
            self._from[partition] = read.go_on
            self._deeds.put_nowait(Fetch(partition, read.go_on))

    async def _do(self) -> None:
        while True:
            match await self._deeds.get():
                case Reply(message=message):
                    await self._mailbox.publish(message)
                    self._unsaid -= 1
                    log.debug("answer.sent", kind=message.kind)
                    if isinstance(message, Goodbye):
                        log.info("goodbye.said", landed=len(message.landed))
                case ReportNow() as deed if self._unsaid:
                    # A report tells what is now: it must not come before the answers to it (†).
                    self._deeds.put_nowait(deed)
                case ReportNow():
                    self._due = False
                    await self._mailbox.publish(self._state())
                case Fetch(partition=partition, offset=offset):
                    await self._begin(partition, offset)
                case Open() as opening:
                    self._opens.append(opening)
                    self._wake.set()
                case Exit(reason=reason):
                    self._end(reason)

    def _end(self, reason: str) -> None:
        if self.consumer.leaving or not self.consumer.ready:
            raise _Left(reason)
        raise Fenced(reason)

    async def _begin(self, partition: TopicPartition, offset: int) -> None:
        """Fetch, unless a stop came between, or a later order has been or will be carried out."""
        while self._from.get(partition) == offset and not self.consumer.ended:
            try:
                await self._intake.start(partition, offset)
            except (BrokerUnavailable, TopicMissing) as exc:
                log.warning("fetch.delayed", partition=str(partition), reason=str(exc))
                await asyncio.sleep(1.0)
            else:
                self._from.pop(partition, None)
                log.info("partition.started", partition=str(partition), offset=offset)
                return

    # --- the tasks -------------------------------------------------------------------------------

    async def _listen(self) -> None:
        async for _, command in commands(self._mailbox.reader):
            self._told_at = asyncio.get_running_loop().time()
            self._apply(handover.obey(self.consumer, command, self._wall_ms()))

    async def _report(self) -> None:
        while True:
            self._deeds.put_nowait(ReportNow())
            self._beat("report")
            await asyncio.sleep(self._rules.report_s)

    def _state(self) -> Report:
        now = asyncio.get_running_loop().time()
        while self._landed and self._landed[0][0] < now - RATE_WINDOW_S:
            self._landed.popleft()
        return Report(
            slot=self.consumer.slot,
            epoch=self.consumer.epoch,
            term=self.consumer.term,
            ready=self.consumer.ready,
            held=self.consumer.landed(),
            opening=self.consumer.among(Opening),
            ahead=self.consumer.among(Ahead),
            closing=self.consumer.among(Closing),
            rate=sum(size for _, size in self._landed) / RATE_WINDOW_S,
            landed_rows=self._rows,
            holes=self._holes,
            writing=bool(self.consumer.flying),
            leaving=self.consumer.leaving,
        )

    async def _fetch(self) -> None:
        now = asyncio.get_running_loop().time
        while True:
            room = min(self._buffer.room - self._shelf.size, FETCH_BYTES)
            if room <= 0 or self.consumer.ended or not self.consumer.reading():
                await self._woken(FETCH_WAIT_S)
                continue
            try:
                found = await self._intake.fetch(room, FETCH_WAIT_S)
            except BrokerUnavailable as exc:
                log.warning("fetch.failed", reason=str(exc))
                await asyncio.sleep(1.0)
                continue
            for partition, records in found.items():
                match self.consumer.parts.get(partition):
                    case Active():
                        self._buffer.add(partition, records, now())
                    case Ahead():
                        self._shelf.add(partition, records)
                    case _:
                        pass  # stopped meanwhile
            for partition in self._shelf.overfull():
                self._intake.stop(partition)
            self._count_holes()
            if found:
                self._wake.set()

    def _count_holes(self) -> None:
        for partition, (wanted, got) in self._intake.lost().items():
            if got < wanted:
                raise TopicRecreated(
                    f"{partition} was made anew: offset {wanted} is wanted, {got} is its first"
                )
            self._holes += got - wanted
            log.error("records.lost", partition=str(partition), wanted=wanted, first=got)

    async def _write(self) -> None:
        """Use the one Spark session: claims first, then openings, then batches."""
        await self._claim_all()
        refreshed = asyncio.get_running_loop().time()
        while True:
            now = asyncio.get_running_loop().time()
            if self._opens:
                await self._open(self._opens.popleft())
            elif (topic := self._buffer.due(now)) is not None and not self.consumer.ended:
                await self._land(topic)
            elif now - refreshed > HINT_REFRESH_S:
                refreshed = now
                await self._hint_all()
            else:
                wait_s = None if self.consumer.ended else self._buffer.due_in(now)
                await self._woken(IDLE_S if wait_s is None else max(wait_s, SHORTEST_S))

    async def _claim_all(self) -> None:
        for topic in self._topics:
            await self._positions.claim(topic)
        self._apply(handover.claimed(self.consumer))

    async def _woken(self, timeout_s: float) -> None:
        """Wait for a change, or so long."""
        self._wake.clear()
        try:
            async with asyncio.timeout(timeout_s):
                await self._wake.wait()
        except TimeoutError:
            return

    async def _open(self, opening: Open) -> None:
        """Fence, then resolve, then read (†)."""
        topics = sorted({p.topic for p in opening.partitions})
        for topic in topics:
            for fence in opening.fences:
                await self._tables.fence(topic, fence)
        try:
            offsets = await self._positions.offsets(opening.partitions)
        except (BrokerUnavailable, TopicMissing) as exc:
            log.warning("opening.delayed", reason=str(exc))
            await asyncio.sleep(1.0)
            if any(self._awaits(opening, p) for p in opening.partitions):
                self._opens.append(opening)  # behind the others: they need not wait for it
            return
        self._apply(handover.opened(self.consumer, opening, offsets))
        for partition in opening.partitions:
            self._buffer.hurry(partition)
        for topic in topics:
            await self._hint(topic)  # so that the next owner need not read the whole history

    def _awaits(self, opening: Open, partition: TopicPartition) -> bool:
        part = self.consumer.parts.get(partition)
        return isinstance(part, Opening) and part.revision == opening.revision

    async def _land(self, topic: str) -> None:
        landed = self._landed_of(topic)
        rows = self._buffer.take(topic, landed)
        if not rows:
            return
        ends = {p: records[-1].offset + 1 for p, records in rows.items()}
        self.consumer = handover.handed(self.consumer, ends)
        await self._positions.check(topic)
        await self._tables.write(topic, rows, {**landed, **ends})
        now = asyncio.get_running_loop().time()
        self._landed.append((now, sum(map(size_of, rows.values()))))
        self._rows += sum(map(len, rows.values()))
        self._apply(handover.settled(self.consumer))
        await self._hint(topic)

    async def _hint_all(self) -> None:
        for topic in self._topics:
            await self._hint(topic)

    async def _hint(self, topic: str) -> None:
        """Name only what is read now (†)."""
        await self._positions.hint(topic, self._landed_of(topic))

    def _landed_of(self, topic: str) -> dict[TopicPartition, int]:
        return {p: at for p, at in self.consumer.landed().items() if p.topic == topic}
