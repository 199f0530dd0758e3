"""Where partitions begin, and which topic of its name each topic is.

Each topic has tasks of its own for this, which try until they succeed: a topic that is missing or
refused concerns its own partitions, and no command waits for any of it.
"""

import asyncio
from collections.abc import Callable, Collection
from dataclasses import dataclass
from enum import Enum

import structlog

from binwright.core.errors import BrokerUnavailable, TopicMissing
from binwright.core.model import TopicPartition
from binwright.core.ports import Intake
from binwright.core.writer.chain import same_topic
from binwright.shell.pauses import Pause

log = structlog.get_logger()

SECOND_LOOK_S = 1.0  # before it is believed that a log was cut
LOOK_S, SHORTEST_S = 0.5, 0.01  # within a pause: for partitions that came meanwhile


class Need(Enum):
    """What is to be found out about a partition, before it can be fetched."""

    NOTHING = "it begins at a known offset"
    BEGIN = "where the group begins it"
    FIRST = "the first offset kept: its topic was made anew"
    BEYOND = "why it ends before the known offset"


@dataclass(frozen=True, slots=True)
class Wanted:
    """A partition that is to be fetched."""

    partition: TopicPartition
    need: Need
    offset: int = 0  # known, or wanted
    seen: bool = False  # records up to `offset` were fetched of the topic as it is now


@dataclass(frozen=True, slots=True)
class Place:
    """Where a partition begins."""

    partition: TopicPartition
    offset: int
    cut: bool = False  # what was its end, after its log had been cut


class Locator:
    """Starts partitions in the intake, at the right places.

    Attributes:
        ids: Topic -> which of this name it was when its first partition was started.
    """

    def __init__(
        self,
        intake: Intake,
        *,
        from_latest: bool,
        on_place: Callable[[Place, Need], None],
        on_renewed: Callable[[str, str | None], None],
    ) -> None:
        """Read through `intake`.

        Args:
            intake: Where partitions are.
            from_latest: Whether a partition without a committed offset begins at its end.
            on_place: Told what was found out; it begins the partition there by `start`.
            on_renewed: Told that a topic has another id now; it calls `renew`.
        """
        self.ids: dict[str, str | None] = {}
        self._intake, self._from_latest = intake, from_latest
        self._on_place, self._on_renewed = on_place, on_renewed
        self._wanted: dict[TopicPartition, Wanted] = {}
        self._tasks: dict[tuple[str, bool], asyncio.Task[None]] = {}
        self._failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def start(self, partition: TopicPartition, offset: int) -> None:
        """Fetch it from here on, as soon as it is known which topic that is."""
        self._want(Wanted(partition, Need.NOTHING, offset))

    def locate(self, partition: TopicPartition) -> None:
        """Find out where the group begins it: at its committed offset, else by the start rule."""
        self._want(Wanted(partition, Need.BEGIN))

    def explain(self, partition: TopicPartition, offset: int, *, seen: bool) -> None:
        """Find out why a partition ends before `offset`, and where to go on."""
        self._want(Wanted(partition, Need.BEYOND, offset, seen=seen))

    def renew(
        self, topic: str, topic_id: str | None, partitions: Collection[TopicPartition]
    ) -> None:
        """Begin a topic that was made anew at the first offsets kept."""
        log.error("topic.recreated", topic=topic, was=self.ids.get(topic), topic_id=topic_id)
        self.ids[topic] = topic_id
        for partition in sorted(partitions):
            self._want(Wanted(partition, Need.FIRST))

    def forget(self, partition: TopicPartition, *, last: bool) -> None:
        """Stop looking for it; `last`: nothing else of its topic is read here."""
        self._wanted.pop(partition, None)
        if last:
            self.ids.pop(partition.topic, None)

    async def run(self) -> None:
        """Raise what none of the tasks expected; end them when cancelled."""
        try:
            await self._failed
        finally:
            for task in self._tasks.values():
                task.cancel()

    # --- one topic's tasks -----------------------------------------------------------------------

    def _want(self, wanted: Wanted) -> None:
        self._wanted[wanted.partition] = wanted
        key = wanted.partition.topic, wanted.need is Need.NOTHING
        if key not in self._tasks:
            self._tasks[key] = task = asyncio.create_task(self._work(*key))
            task.add_done_callback(self._ended)

    def _ended(self, task: "asyncio.Task[None]") -> None:
        if not task.cancelled() and (exc := task.exception()) and not self._failed.done():
            self._failed.set_exception(exc)

    async def _work(self, topic: str, known: bool) -> None:
        pause = Pause()
        while batch := self._batch(topic, known=known):
            try:
                if topic not in self.ids:
                    self.ids.setdefault(topic, await self._intake.topic_id(topic))
                await (self._start_all(batch) if known else self._find_all(topic, batch))
            except (BrokerUnavailable, TopicMissing) as exc:
                told = sorted(str(w.partition) for w in batch if self._stands(w))
                if told:
                    log.warning("partition.delayed", partitions=told, reason=str(exc))
                    await self._rest(topic, known=known, rest_s=pause.next())
            else:
                pause = Pause()
        del self._tasks[topic, known]

    async def _rest(self, topic: str, *, known: bool, rest_s: float) -> None:
        """Wait so long, or until something else is wanted."""
        before = set(self._batch(topic, known=known))
        until = asyncio.get_running_loop().time() + rest_s
        while (left_s := until - asyncio.get_running_loop().time()) > 0:
            if set(self._batch(topic, known=known)) - before:
                return
            await asyncio.sleep(min(max(left_s, SHORTEST_S), LOOK_S))

    def _batch(self, topic: str, *, known: bool) -> list[Wanted]:
        return [
            w
            for p, w in sorted(self._wanted.items(), key=lambda item: item[0])
            if p.topic == topic and (w.need is Need.NOTHING) == known
        ]

    def _stands(self, wanted: Wanted) -> bool:
        return self._wanted.get(wanted.partition) is wanted

    async def _start_all(self, batch: Collection[Wanted]) -> None:
        fault: Exception | None = None
        for wanted in batch:
            if not self._stands(wanted):
                continue
            try:
                await self._intake.start(wanted.partition, wanted.offset)
            except (BrokerUnavailable, TopicMissing) as exc:
                fault = exc  # the others may be there
                continue
            if self._stands(wanted):
                del self._wanted[wanted.partition]
                log.info("partition.started", partition=str(wanted.partition), offset=wanted.offset)
        if fault:
            raise fault

    async def _find_all(self, topic: str, batch: Collection[Wanted]) -> None:
        there = set(await self._intake.partitions(topic))
        begin = [w for w in batch if w.need is not Need.BEYOND and w.partition in there]
        await self._begin(topic, begin)
        for wanted in batch:
            if wanted.need is Need.BEYOND and self._stands(wanted):
                await self._explain(topic, wanted)
        if missing := [w.partition for w in batch if w.partition not in there and self._stands(w)]:
            raise TopicMissing(f"no such partitions: {', '.join(map(str, missing))}")

    def _place(self, wanted: Wanted, offset: int, *, cut: bool = False) -> None:
        if self._stands(wanted):
            del self._wanted[wanted.partition]
            self._on_place(Place(wanted.partition, offset, cut), wanted.need)

    async def _begin(self, topic: str, batch: Collection[Wanted]) -> None:
        by_group = [w.partition for w in batch if w.need is Need.BEGIN]
        committed = await self._intake.committed(by_group) if by_group else {}
        bounds = await self._intake.bounds([w.partition for w in batch]) if batch else {}
        for wanted in batch:
            begin, end = bounds[wanted.partition]
            last = committed.get(wanted.partition)
            if last is None or not same_topic(last.topic_id, self.ids.get(topic)):
                latest = self._from_latest and wanted.need is Need.BEGIN
                self._place(wanted, end if latest else begin)
            elif last.offset <= end:
                self._place(wanted, last.offset)
            elif self._stands(wanted):
                self.explain(wanted.partition, last.offset, seen=last.topic_id is not None)

    async def _explain(self, topic: str, wanted: Wanted) -> None:
        """Tell a topic made anew from a log that was cut, and from a broker that lags."""
        found = await self._intake.topic_id(topic)
        if not same_topic(found, self.ids.get(topic)):
            self._on_renewed(topic, found)
            return
        begin, end = await self._settled_bounds(wanted)
        told = log.bind(partition=str(wanted.partition), wanted=wanted.offset, end=end)
        if end >= wanted.offset:
            self._place(wanted, wanted.offset)
        elif wanted.seen or await self._landed_beyond(wanted, end):
            told.error("log.cut", missing=wanted.offset - end, then="reading goes on at its end")
            self._place(wanted, end, cut=True)
        else:
            told.error("offset.unknown", then="reading begins at the first offset kept")
            self._place(wanted, begin)

    async def _settled_bounds(self, wanted: Wanted) -> tuple[int, int]:
        """Return first offset and end; an end before the offset wanted only if it stays so."""
        partition = wanted.partition
        begin, end = (await self._intake.bounds([partition]))[partition]
        if end < wanted.offset:
            await asyncio.sleep(SECOND_LOOK_S)
            _, later = (await self._intake.bounds([partition]))[partition]
            if later < end:
                raise BrokerUnavailable(f"the end of {partition} goes back, from {end} to {later}")
            end = later if later >= wanted.offset else end  # nothing after the first look is missed
        return begin, end

    async def _landed_beyond(self, wanted: Wanted, end: int) -> bool:
        """Tell whether the group landed more of this very topic than there is now."""
        last = (await self._intake.committed([wanted.partition])).get(wanted.partition)
        if last is None or last.topic_id is None:
            return False
        return last.topic_id == self.ids.get(wanted.partition.topic) and last.offset > end
