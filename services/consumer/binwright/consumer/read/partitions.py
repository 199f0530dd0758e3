"""The partitions that a consumer reads: owns each from its assignment until its rows are taken.

A partition is located, fetched into the buffer, and moved when its log was truncated or its topic
recreated. Lookups run in tasks of each topic, which retry until they succeed: a missing or refused
topic delays its own partitions only, and no command waits for them.
"""

import asyncio
from collections.abc import Callable, Collection, Mapping

from binwright.consumer.decide.buffer import NO_ENDS, BatchConfig, Buffer, TakenRows, over_share
from binwright.consumer.decide.land.chain import same_topic
from binwright.consumer.decide.land.landing import TOPIC_RECREATED
from binwright.consumer.events import Emit, PositionFound
from binwright.consumer.read.backlog import Backlog
from binwright.consumer.read.meters import Meter
from binwright.consumer.read.start_offsets import (
    Lookup,
    PendingStart,
    StartOffsets,
    StartPosition,
    TopicRecreated,
    successor,
)
from binwright.consumer.read.undecodable import UndecodableBatches
from binwright.protocol.errors import BrokerUnavailable, TopicMissing
from binwright.protocol.landing import OffsetRange
from binwright.protocol.log_events import LogEvent
from binwright.protocol.model import TopicPartition
from binwright.protocol.ports.kafka import DataReader, UndecodableBatch
from binwright.runtime.backoff import Backoff, until_set
from binwright.runtime.clock import loop_s
from binwright.runtime.logs import log
from binwright.runtime.run import must_not_end
from binwright.tables.ports import PartitionOffsets, Staging

PARTITION_STOPPED = LogEvent.info("partition.stopped", "The consumer stopped reading a partition.")
FETCH_FAILED = LogEvent.warning("fetch.failed", "Records cannot be fetched.")
FETCH_RECOVERED = LogEvent.info("fetch.recovered", "Records can be fetched again.")
RECORDS_LOST = LogEvent.error(
    "records.lost",
    "Retention deleted records before they were read: they are missing in the table.",
)
FETCHING_PAUSED = LogEvent.info(
    "fetching.paused",
    "Topics hold more than their share of memory; the consumer pauses fetching them.",
)
PARTITION_DELAYED = LogEvent.warning(
    "partition.delayed", "Kafka does not return where partitions begin or end; their start waits."
)
PARTITION_STARTED = LogEvent.info(
    "partition.started", "The consumer reads a partition from this offset on."
)

FETCH_BYTES = 8 << 20
FETCH_WAIT_S = 0.5
RETRY_S = 1.0
POLL_S, SHORTEST_S = 0.5, 0.01  # within a pause, checks for partitions added since
IDLE_S = 5.0  # between checks for rows that are due


class AssignedPartitions:
    """Reads the assigned partitions into a buffer, while it has room and table writers keep up.

    Attributes:
        lost_offsets: How many offsets retention deleted before they were read, or could not be
            decoded.
        waiting: Seconds spent waiting for room in the buffer, or for staged files to land.
        held_s: Of them, those for files to land.
        paused_topics: Those that use more than their share of the buffer or of the staging.
    """

    def __init__(
        self,
        *,
        reader: DataReader,
        config: BatchConfig,
        from_latest: bool,
        staging: Staging,
        backlog: Backlog,
        emit: Emit,
        is_masked: Callable[[str], bool] = lambda _: False,
        reclaimed: Callable[[TopicPartition], None] = lambda _: None,
        beat: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.lost_offsets, self.waiting, self.held_s = 0, Meter(), 0.0
        self._reader, self._backlog, self._emit, self._beat = reader, backlog, emit, beat
        self._buffer = Buffer(config, backlog.late_s)
        self._undecodable = UndecodableBatches(
            staging,
            step_over=self._step_over,
            decode=self._decode_large,
            is_masked=is_masked,
        )
        self._starts = StartOffsets(reader, from_latest=from_latest, is_current=self._is_current)
        self._assigned: set[TopicPartition] = set()
        self._lent: set[TopicPartition] = set()  # of them, those that are read in parts
        self._reclaimed = reclaimed  # called when a lent partition is stopped
        self._pending: dict[TopicPartition, PendingStart] = {}
        self._begun_at: dict[TopicPartition, int] = {}  # the offset where reading began
        self._lost: dict[str, dict[TopicPartition, OffsetRange]] = {}  # by topic, until `announced`
        self._topic_ids: dict[str, str | None] = {}  # when the topic's first partition was started
        self._taken: dict[str, int] = {}  # topic -> bytes of its rows that are being staged
        self.paused_topics = self._held_topics = frozenset[str]()  # held: those that do not land
        self._lookups: dict[tuple[str, bool], asyncio.Task[None]] = {}
        self._failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._room, self._rows = asyncio.Event(), asyncio.Event()  # there may be some
        self._failing = False

    # --- from assigned to stopped ----------------------------------------------------------------

    def read(self, partition: TopicPartition, offset: int | None) -> None:
        """Read the partition from `offset` on; None: from where the group begins it.

        That is the group's committed offset, else the first offset or the end.
        """
        self._assigned.add(partition)
        if offset is None:
            self._enqueue(PendingStart(partition, Lookup.BEGIN))
        else:
            self._begin(partition, offset)

    def stop(self, partition: TopicPartition) -> None:
        """Stop reading at once; drop buffered rows that are not taken."""
        self._drop(partition)
        self._assigned.discard(partition)
        self._pending.pop(partition, None)
        if all(p.topic != partition.topic for p in self._assigned):
            self._topic_ids.pop(partition.topic, None)
        log(PARTITION_STOPPED, partition=str(partition))

    def lend(self, partition: TopicPartition) -> tuple[int, str | None] | None:
        """Stop fetching, and keep what is buffered, until `give_back`.

        Returns:
            The next offset to fetch, and the topic's id; None: it does not get on, or just began.
        """
        begun_at, taken = self._begun_at.get(partition), self._buffer.taken_before(partition)
        if begun_at is None or taken is None or taken <= begun_at:  # a cut is announced first (†)
            return None
        stands = partition in self._pending or partition in self._reader.stuck()
        position = self._buffer.next_offset(partition)
        if stands or partition.topic in self.paused_topics or position is None:
            return None
        self._reader.stop(partition)
        self._undecodable.forget(partition)
        del self._begun_at[partition]
        self._lent.add(partition)
        return position, self._topic_ids.get(partition.topic)

    def give_back(self, partition: TopicPartition, offset: int) -> None:
        """Fetch it again, from this offset on."""
        self._lent.discard(partition)
        self._begin(partition, offset)

    async def run(self) -> None:
        """Read until cancelled; raise an unexpected error of any lookup."""
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(must_not_end(self._fetch_all()))
                tasks.create_task(must_not_end(self._undecodable.run()))
                await self._failed
        finally:
            for task in self._lookups.values():
                task.cancel()

    @property
    def faults(self) -> Mapping[str, str]:
        """Return the topics of which a partition does not get on, and why."""
        return {
            p.topic: f"{p} stands at offset {self._buffer.next_offset(p)}: {why}"
            for p, why in sorted(self._reader.stuck().items())
        }

    def _begin(self, partition: TopicPartition, offset: int, *, cut: bool = False) -> None:
        self._undecodable.forget(partition)
        self._begun_at[partition] = offset
        self._buffer.begin(partition, offset, cut=cut)
        self._enqueue(PendingStart(partition, Lookup.KNOWN, offset))
        self._room.set()

    def _drop(self, partition: TopicPartition) -> None:
        if partition in self._lent:
            self._lent.remove(partition)
            self._reclaimed(partition)
        self._reader.stop(partition)
        self._undecodable.forget(partition)
        self._buffer.drop(partition)
        self._begun_at.pop(partition, None)
        self._room.set()

    # --- taking rows -----------------------------------------------------------------------------

    def take_due(self) -> TakenRows | None:
        """Take the rows of a topic that are due, of which nothing is being staged; None: not yet.

        The topic's next rows are taken after `release`.
        """
        topic = self._buffer.due(loop_s(), self._taken, self._ends())
        oldest_at = self._buffer.oldest_at(topic) if topic is not None else None
        if topic is None or oldest_at is None:
            return None
        ranges = self._buffer.take_ranges(topic)
        self._taken[topic] = size = sum(part.bytes for part in ranges.values())
        return TakenRows(topic, self._topic_ids.get(topic), ranges, oldest_at, size)

    async def wait_for_rows(self) -> None:
        """Wait until rows are due by their age, or others were fetched or released."""
        due_in = self._buffer.due_in(loop_s(), self._taken, self._ends())
        self._rows.clear()
        await until_set(self._rows, IDLE_S if due_in is None else max(due_in, SHORTEST_S))

    def _ends(self) -> PartitionOffsets:
        """Return where partitions end, if it matters: there may be thousands."""
        if not self._buffer.may_wait:
            return NO_ENDS
        return {p: end for p, (_, end) in self._reader.progress().offsets.items()}

    async def check_topic(self, topic: str, topic_id: str | None) -> bool:
        """Whether rows are of the topic that exists, by its id; else its successor is read.

        Rows of a topic that was deleted count as current.
        """
        recreated = await successor(self._reader, topic, topic_id)
        if recreated is not None:
            self._restart_topic(topic, recreated.topic_id)
        return recreated is None

    def lost(self, topic: str) -> Mapping[TopicPartition, OffsetRange]:
        """Return what retention deleted of a topic before it was read: it may be staged (†)."""
        return dict(self._lost.get(topic, {}))

    def announced(self, topic: str, lost: Mapping[TopicPartition, OffsetRange]) -> None:
        """Apply that what is staged of `lost` is announced."""
        left = {p: at for p, at in self._lost.pop(topic, {}).items() if lost.get(p) != at}
        if left:
            self._lost[topic] = left

    def decoded(self, topic: str) -> None:
        """Say that the rows that were taken last of a topic are decoded, for all its tables."""
        self._undecodable.decoded(topic, self._buffer.taken_before)

    def release(self, topic: str) -> None:
        """Free the memory of the rows that were taken last of a topic: they are staged."""
        del self._taken[topic]
        self._room.set()
        self._rows.set()

    # --- fetching --------------------------------------------------------------------------------

    async def _fetch_all(self) -> None:
        while True:
            self._beat("fetch")
            self._pause_over_share()
            room = self._free_bytes()
            if room <= 0 or all(p.topic in self.paused_topics for p in self._begun_at):
                began = loop_s()
                self._room.clear()
                await until_set(self._room, FETCH_WAIT_S)
                if self._begun_at:
                    self.waiting.add(loop_s(), loop_s() - began)
                    if self._backlog.full or self._held_topics:
                        self.held_s += loop_s() - began
                continue
            await self._fetch(min(room, FETCH_BYTES))

    def _free_bytes(self) -> int:
        return 0 if self._backlog.full else self._buffer.free_bytes - sum(self._taken.values())

    async def _fetch(self, most: int) -> None:
        try:
            fetched = await self._reader.fetch(most, FETCH_WAIT_S)
        except (BrokerUnavailable, TopicMissing) as exc:
            if not self._failing:
                log(FETCH_FAILED, reason=str(exc), then="tried again every second")
            self._failing = True
            await asyncio.sleep(RETRY_S)
            return
        # No await from here on: a stop of a partition must not come in between.
        now = loop_s()
        for partition, records in fetched.items():
            self._buffer.add(partition, records, now)
        self._apply_jumps()
        passed = self._reader.passed()
        for partition, position in passed.items():
            self._buffer.advance(partition, position, now)
        for partition, batch in self._reader.undecodable().items():
            self._undecodable.add(partition, batch)
        if fetched or passed:
            if self._failing:
                log(FETCH_RECOVERED)
            self._failing = False
            self._rows.set()

    def _apply_jumps(self) -> None:
        for partition, (wanted, first) in self._reader.jumps().items():
            if partition not in self._begun_at:
                continue
            if first >= wanted:
                self.lost_offsets += first - wanted
                lost = self._lost.setdefault(partition.topic, {})
                begin = lost[partition].first if partition in lost else wanted
                lost[partition] = OffsetRange(min(begin, wanted), first)
                self._buffer.advance(partition, first, loop_s())
                log(
                    RECORDS_LOST,
                    partition=str(partition),
                    wanted=wanted,
                    first=first,
                    reason="retention deleted them before they were read",
                )
            else:
                seen = wanted > self._begun_at[partition]
                self._enqueue(PendingStart(partition, Lookup.OUT_OF_RANGE, wanted, seen=seen))

    def _step_over(self, partition: TopicPartition, batch: UndecodableBatch) -> None:
        self.lost_offsets += batch.next - batch.first
        self._buffer.advance(partition, batch.next, loop_s())
        self._rows.set()
        self._enqueue(PendingStart(partition, Lookup.KNOWN, batch.next))

    def _decode_large(self, partition: TopicPartition, batch: UndecodableBatch) -> None:
        self._reader.allow_large(partition, batch.next)
        self._enqueue(PendingStart(partition, Lookup.KNOWN, batch.first))

    def _pause_over_share(self) -> None:
        """Pause fetching of topics that use more than their share of the buffer or of the staging.

        Else one topic whose files cannot be staged, or do not land, would stop all topics.
        """
        sizes = self._buffer.sizes
        topics = {p.topic for p in (*self._begun_at, *self._lent)}
        buffered = {t: sizes.get(t, 0) + self._taken.get(t, 0) for t in topics}
        paused = over_share(self._buffer.config.cap_bytes, buffered)
        self._held_topics = self._backlog.over_share(topics)
        paused |= self._held_topics
        if paused - self.paused_topics:
            log(FETCHING_PAUSED, topics=sorted(paused - self.paused_topics))
        for partition in self._partitions_of(paused):
            self._reader.stop(partition)
        for partition in self._partitions_of(self.paused_topics - paused):
            if (offset := self._buffer.next_offset(partition)) is not None:
                self._enqueue(PendingStart(partition, Lookup.KNOWN, offset))
        self.paused_topics = paused

    def _partitions_of(self, topics: Collection[str]) -> list[TopicPartition]:
        return [p for p in self._begun_at if p.topic in topics] if topics else []

    # --- lookups and starts, in tasks of each topic ----------------------------------------------

    def _enqueue(self, pending: PendingStart) -> None:
        self._pending[pending.partition] = pending
        key = pending.partition.topic, pending.need is Lookup.KNOWN
        if key not in self._lookups:
            self._lookups[key] = task = asyncio.create_task(self._run_topic(*key))
            task.add_done_callback(self._ended)

    def _ended(self, task: "asyncio.Task[None]") -> None:
        if not task.cancelled() and (exc := task.exception()) and not self._failed.done():
            self._failed.set_exception(exc)

    async def _run_topic(self, topic: str, known: bool) -> None:
        pause = Backoff()
        while batch := self._batch(topic, known=known):
            try:
                if topic not in self._topic_ids:
                    self._topic_ids.setdefault(topic, await self._reader.topic_id(topic))
                await (self._start_all(batch) if known else self._locate_all(topic, batch))
            except (BrokerUnavailable, TopicMissing) as exc:
                delayed = sorted(str(entry.partition) for entry in batch if self._is_current(entry))
                if delayed:
                    log(PARTITION_DELAYED, partitions=delayed, reason=str(exc))
                    await self._wait_to_retry(topic, known=known, pause_s=pause.next())
            else:
                pause.reset()
        del self._lookups[topic, known]

    async def _wait_to_retry(self, topic: str, *, known: bool, pause_s: float) -> None:
        """Wait `pause_s`, or until another partition is pending."""
        before = set(self._batch(topic, known=known))
        until = loop_s() + pause_s
        while (left_s := until - loop_s()) > 0:
            if set(self._batch(topic, known=known)) - before:
                return
            await asyncio.sleep(min(max(left_s, SHORTEST_S), POLL_S))

    def _batch(self, topic: str, *, known: bool) -> list[PendingStart]:
        entries = (
            entry
            for p, entry in self._pending.items()
            if p.topic == topic and (entry.need is Lookup.KNOWN) == known
        )
        return sorted(entries, key=lambda entry: entry.partition)

    def _is_current(self, pending: PendingStart) -> bool:
        return self._pending.get(pending.partition) is pending

    async def _start_all(self, batch: Collection[PendingStart]) -> None:
        fault: Exception | None = None
        for pending in batch:
            if not self._is_current(pending):
                continue
            try:
                await self._reader.start(pending.partition, pending.offset)
            except (BrokerUnavailable, TopicMissing) as exc:
                fault = exc  # other partitions may exist
                continue
            if self._is_current(pending):
                del self._pending[pending.partition]
                log(PARTITION_STARTED, partition=str(pending.partition), offset=pending.offset)
        if fault:
            raise fault

    async def _locate_all(self, topic: str, batch: Collection[PendingStart]) -> None:
        async for result in self._starts.find(topic, self._topic_ids.get(topic), batch):
            match result:
                case StartPosition(pending=pending) if self._is_current(pending):
                    self._apply_position(result)
                case PendingStart():
                    self._enqueue(result)
                case TopicRecreated(topic_id=topic_id):
                    self._restart_topic(topic, topic_id)

    def _apply_position(self, position: StartPosition) -> None:
        partition, offset, cut = position.pending.partition, position.offset, position.cut
        del self._pending[partition]
        out_of_range = position.pending.need is Lookup.OUT_OF_RANGE and not cut
        if out_of_range and self._buffer.next_offset(partition) == offset:
            # The offset exists: a broker lagged. What is buffered stays.
            self._enqueue(PendingStart(partition, Lookup.KNOWN, offset))
            return
        self._begin(partition, offset, cut=cut)
        self._emit(PositionFound(partition, offset, cut))

    def _restart_topic(self, topic: str, topic_id: str | None) -> None:
        """Drop what was read of a deleted topic, and begin the one recreated under its name."""
        if same_topic(topic_id, self._topic_ids.get(topic)):
            return  # already restarted
        log(TOPIC_RECREATED, topic=topic, was=self._topic_ids.get(topic), topic_id=topic_id)
        self._topic_ids[topic] = topic_id
        for partition in sorted(p for p in self._assigned if p.topic == topic):
            self._drop(partition)
            self._enqueue(PendingStart(partition, Lookup.FIRST))
