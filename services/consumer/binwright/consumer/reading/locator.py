"""Finds where partitions begin, and the id of each topic.

Each topic has tasks of its own, which retry until they succeed: a missing or refused topic delays
its own partitions only, and no command waits for them.
"""

import asyncio
from collections.abc import Callable, Collection
from dataclasses import dataclass
from enum import Enum

import structlog

from binwright.consumer.decide.writer.chain import same_topic
from binwright.protocol.errors import BrokerUnavailable, TopicMissing
from binwright.protocol.model import TopicPartition
from binwright.protocol.ports.kafka import Intake
from binwright.runtime.backoff import Backoff

log = structlog.get_logger()

RECHECK_S = 1.0  # a log counts as truncated if its end is the same after this time
POLL_S, SHORTEST_S = 0.5, 0.01  # within a pause, checks for partitions added since


class Lookup(Enum):
    """What must be found out about a partition before it can be fetched."""

    NOTHING = "it begins at a known offset"
    BEGIN = "where the group begins it"
    FIRST = "the first offset kept: its topic was recreated"
    OUT_OF_RANGE = "why it ends before the known offset"


@dataclass(frozen=True, slots=True)
class PendingStart:
    """A partition that is about to be fetched."""

    partition: TopicPartition
    need: Lookup
    offset: int = 0  # the known or the wanted offset
    seen: bool = False  # records up to `offset` were fetched of the current topic


@dataclass(frozen=True, slots=True)
class StartPosition:
    """The offset where a partition begins."""

    partition: TopicPartition
    offset: int
    cut: bool = False  # it is the end of a truncated log


class Locator:
    """Starts partitions in the intake, at the right offsets.

    Attributes:
        topic_ids: Topic -> its id when its first partition was started; None if it has no id.
    """

    def __init__(
        self,
        intake: Intake,
        *,
        from_latest: bool,
        on_located: Callable[[StartPosition, Lookup], None],
        on_recreated: Callable[[str, str | None], None],
    ) -> None:
        """Read through `intake`.

        Args:
            intake: Starts partitions and answers queries about them.
            from_latest: Whether a partition without a committed offset begins at its end.
            on_located: Called with a start position; it must begin the partition by `start`.
            on_recreated: Called with a topic and its new id; it must call `restart_topic`.
        """
        self.topic_ids: dict[str, str | None] = {}
        self._intake, self._from_latest = intake, from_latest
        self._on_located, self._on_recreated = on_located, on_recreated
        self._pending: dict[TopicPartition, PendingStart] = {}
        self._tasks: dict[tuple[str, bool], asyncio.Task[None]] = {}
        self._failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def start(self, partition: TopicPartition, offset: int) -> None:
        """Fetch the partition from `offset` on, as soon as the topic's id is known."""
        self._enqueue(PendingStart(partition, Lookup.NOTHING, offset))

    def locate(self, partition: TopicPartition) -> None:
        """Find where the group begins it: at its committed offset, else at the first or the end."""
        self._enqueue(PendingStart(partition, Lookup.BEGIN))

    def resolve_out_of_range(self, partition: TopicPartition, offset: int, *, seen: bool) -> None:
        """Find out why a partition ends before `offset`, and where to continue."""
        self._enqueue(PendingStart(partition, Lookup.OUT_OF_RANGE, offset, seen=seen))

    def restart_topic(
        self, topic: str, topic_id: str | None, partitions: Collection[TopicPartition]
    ) -> None:
        """Begin a recreated topic at the first offsets kept."""
        log.error("topic.recreated", topic=topic, was=self.topic_ids.get(topic), topic_id=topic_id)
        self.topic_ids[topic] = topic_id
        for partition in sorted(partitions):
            self._enqueue(PendingStart(partition, Lookup.FIRST))

    def forget(self, partition: TopicPartition, *, last: bool) -> None:
        """Drop a partition; `last`: no other partition of its topic is read here."""
        self._pending.pop(partition, None)
        if last:
            self.topic_ids.pop(partition.topic, None)

    async def run(self) -> None:
        """Raise an unexpected error of any task; cancel the tasks when cancelled."""
        try:
            await self._failed
        finally:
            for task in self._tasks.values():
                task.cancel()

    # --- one topic's tasks -----------------------------------------------------------------------

    def _enqueue(self, pending: PendingStart) -> None:
        self._pending[pending.partition] = pending
        key = pending.partition.topic, pending.need is Lookup.NOTHING
        if key not in self._tasks:
            self._tasks[key] = task = asyncio.create_task(self._run_topic(*key))
            task.add_done_callback(self._ended)

    def _ended(self, task: "asyncio.Task[None]") -> None:
        if not task.cancelled() and (exc := task.exception()) and not self._failed.done():
            self._failed.set_exception(exc)

    async def _run_topic(self, topic: str, known: bool) -> None:
        pause = Backoff()
        while batch := self._batch(topic, known=known):
            try:
                if topic not in self.topic_ids:
                    self.topic_ids.setdefault(topic, await self._intake.topic_id(topic))
                await (self._start_all(batch) if known else self._locate_all(topic, batch))
            except (BrokerUnavailable, TopicMissing) as exc:
                delayed = sorted(str(entry.partition) for entry in batch if self._is_current(entry))
                if delayed:
                    log.warning("partition.delayed", partitions=delayed, reason=str(exc))
                    await self._wait_to_retry(topic, known=known, pause_s=pause.next())
            else:
                pause.reset()
        del self._tasks[topic, known]

    async def _wait_to_retry(self, topic: str, *, known: bool, pause_s: float) -> None:
        """Wait `pause_s`, or until another partition is pending."""
        before = set(self._batch(topic, known=known))
        until = asyncio.get_running_loop().time() + pause_s
        while (left_s := until - asyncio.get_running_loop().time()) > 0:
            if set(self._batch(topic, known=known)) - before:
                return
            await asyncio.sleep(min(max(left_s, SHORTEST_S), POLL_S))

    def _batch(self, topic: str, *, known: bool) -> list[PendingStart]:
        return [
            entry
            for p, entry in sorted(self._pending.items(), key=lambda item: item[0])
            if p.topic == topic and (entry.need is Lookup.NOTHING) == known
        ]

    def _is_current(self, pending: PendingStart) -> bool:
        return self._pending.get(pending.partition) is pending

    async def _start_all(self, batch: Collection[PendingStart]) -> None:
        fault: Exception | None = None
        for pending in batch:
            if not self._is_current(pending):
                continue
            try:
                await self._intake.start(pending.partition, pending.offset)
            except (BrokerUnavailable, TopicMissing) as exc:
                fault = exc  # other partitions may exist
                continue
            if self._is_current(pending):
                del self._pending[pending.partition]
                log.info(
                    "partition.started", partition=str(pending.partition), offset=pending.offset
                )
        if fault:
            raise fault

    async def _locate_all(self, topic: str, batch: Collection[PendingStart]) -> None:
        existing = set(await self._intake.partitions(topic))
        begin = [
            entry
            for entry in batch
            if entry.need is not Lookup.OUT_OF_RANGE and entry.partition in existing
        ]
        await self._locate_starts(topic, begin)
        for pending in batch:
            if pending.need is Lookup.OUT_OF_RANGE and self._is_current(pending):
                await self._locate_out_of_range(topic, pending)
        if missing := [
            entry.partition
            for entry in batch
            if entry.partition not in existing and self._is_current(entry)
        ]:
            raise TopicMissing(f"no such partitions: {', '.join(map(str, missing))}")

    def _resolve(self, pending: PendingStart, offset: int, *, cut: bool = False) -> None:
        if self._is_current(pending):
            del self._pending[pending.partition]
            self._on_located(StartPosition(pending.partition, offset, cut), pending.need)

    async def _locate_starts(self, topic: str, batch: Collection[PendingStart]) -> None:
        by_group = [entry.partition for entry in batch if entry.need is Lookup.BEGIN]
        committed = await self._intake.committed(by_group) if by_group else {}
        bounds = await self._intake.bounds([entry.partition for entry in batch]) if batch else {}
        for pending in batch:
            begin, end = bounds[pending.partition]
            last = committed.get(pending.partition)
            if last is None or not same_topic(last.topic_id, self.topic_ids.get(topic)):
                latest = self._from_latest and pending.need is Lookup.BEGIN
                self._resolve(pending, end if latest else begin)
            elif last.offset <= end:
                self._resolve(pending, last.offset)
            elif self._is_current(pending):
                self.resolve_out_of_range(
                    pending.partition, last.offset, seen=last.topic_id is not None
                )

    async def _locate_out_of_range(self, topic: str, pending: PendingStart) -> None:
        """Distinguish a recreated topic from a truncated log and from a lagging broker."""
        found = await self._intake.topic_id(topic)
        if not same_topic(found, self.topic_ids.get(topic)):
            self._on_recreated(topic, found)
            return
        begin, end = await self._confirmed_bounds(pending)
        bound = log.bind(partition=str(pending.partition), wanted=pending.offset, end=end)
        if end >= pending.offset:
            self._resolve(pending, pending.offset)
        elif pending.seen or await self._landed_beyond(pending, end):
            bound.error(
                "log.cut", missing=pending.offset - end, then="reading continues at its end"
            )
            self._resolve(pending, end, cut=True)
        else:
            bound.error("offset.unknown", then="reading begins at the first offset kept")
            self._resolve(pending, begin)

    async def _confirmed_bounds(self, pending: PendingStart) -> tuple[int, int]:
        """Return first and end offset; check an end before the wanted offset twice."""
        partition = pending.partition
        begin, end = (await self._intake.bounds([partition]))[partition]
        if end < pending.offset:
            await asyncio.sleep(RECHECK_S)
            _, later = (await self._intake.bounds([partition]))[partition]
            if later < end:
                raise BrokerUnavailable(f"the end of {partition} decreases, from {end} to {later}")
            end = later if later >= pending.offset else end  # records after the first look are read
        return begin, end

    async def _landed_beyond(self, pending: PendingStart, end: int) -> bool:
        """Return whether the group landed offsets of this topic id beyond its present end."""
        last = (await self._intake.committed([pending.partition])).get(pending.partition)
        if last is None or last.topic_id is None:
            return False
        return last.topic_id == self.topic_ids.get(pending.partition.topic) and last.offset > end
