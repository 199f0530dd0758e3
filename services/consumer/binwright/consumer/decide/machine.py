"""The consumer's side of the hand-over: which partitions it reads, which tables it writes.

Pure: the service fetches, stages and publishes. It passes commands and outcomes to these functions,
and carries out the actions that they return, in order. No row depends on any of this: the tables'
writers land each offset once, from whichever consumer staged it.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from binwright.protocol.commands import (
    Command,
    Leave,
    SplitReading,
    StartReading,
    StartWriting,
    StateQuery,
    StopReading,
    StopWriting,
)
from binwright.protocol.landing import OffsetRange
from binwright.protocol.metadata import Goodbye, Started, Stopped
from binwright.protocol.model import Slot, TopicPartition

# --- actions -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Reply:
    """Publish this to metadata partition 0."""

    message: Stopped | Started | Goodbye


@dataclass(frozen=True, slots=True)
class ReportNow:
    """Publish a `Report` at once."""


@dataclass(frozen=True, slots=True)
class Fetch:
    """Read from `offset` on; None: from where the group begins it, then call `located`."""

    partition: TopicPartition
    offset: int | None
    revision: int


@dataclass(frozen=True, slots=True)
class StopFetching:
    """Stop fetching this partition, and drop its rows that are not being staged."""

    partition: TopicPartition


@dataclass(frozen=True, slots=True)
class StartWriter:
    """Become the writer of these tables."""

    topics: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class StopWriter:
    """Wait for the commit in flight, stop writing these tables, and call `writing_stopped`."""

    topics: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Exit:
    """End the process, without any further message."""

    reason: str


@dataclass(frozen=True, slots=True)
class Share:
    """Split these partitions, with these consumers, and no others."""

    partitions: Mapping[TopicPartition, tuple[Slot, ...]]  # -> the owner, then its helpers


Action = Reply | ReportNow | Fetch | StopFetching | Share | StartWriter | StopWriter | Exit


# --- state -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Reading:
    """A partition that this consumer reads."""

    revision: int  # of the `StartReading`
    next: int | None  # offset to stage; None: the service is looking up where to begin


@dataclass(frozen=True, slots=True)
class Consumer:
    """The state of one process of a slot."""

    slot: Slot
    epoch: int
    term: int = 0  # the highest seen
    ready: bool = False  # it can write staged files
    leaving: bool = False  # draining: it continues until its partitions and tables have moved
    ended: bool = False  # stopped for good; its Goodbye is sent, or waits for what is in flight
    partitions: Mapping[TopicPartition, Reading] = field(default_factory=dict)
    tables: Mapping[str, int] = field(default_factory=dict)  # -> revision of the start
    closing: Mapping[str, int] = field(default_factory=dict)  # -> revision of the stop
    staging: Mapping[TopicPartition, tuple[int, int]] = field(default_factory=dict)
    """Files being written: partition -> (next offset once announced, revision of its start)."""

    def next_offsets(self) -> dict[TopicPartition, int]:
        """Return partition -> next offset to stage, where it is known."""
        return {p: part.next for p, part in self.partitions.items() if part.next is not None}

    @property
    def busy(self) -> bool:
        """Whether it still has partitions or tables, or something in flight."""
        return bool(self.partitions or self.tables or self.closing or self.staging)


Step = tuple[Consumer, tuple[Action, ...]]


def staging_ready(consumer: Consumer) -> Step:
    """Become ready: staged files can be written, so partitions and tables may be assigned."""
    return replace(consumer, ready=True), (ReportNow(),)


def handle_command(consumer: Consumer, command: Command, now_ms: int) -> Step:
    """Apply a command; one of a lower term, or to an older process, is ignored."""
    if command.term < consumer.term:
        return consumer, ()
    consumer = replace(consumer, term=command.term)
    if isinstance(command, StateQuery):
        return consumer, (ReportNow(),)
    if command.epoch != consumer.epoch:
        newer = command.epoch > consumer.epoch
        return consumer, (Exit(f"superseded by epoch {command.epoch}"),) if newer else ()
    step: Step
    match command:
        case Leave():
            step = consumer, (Exit("commanded to leave: declared dead, or superseded"),)
        case StopReading():
            step = _stop_reading(consumer, command, now_ms)
        case StartReading():
            step = _start_reading(consumer, command)
        case SplitReading():
            step = consumer, (Share(command.partitions), ReportNow())
        case StopWriting():
            step = _stop_writing(consumer, command)
        case _:
            step = _start_writing(consumer, command)
    return step


# --- reading -----------------------------------------------------------------------------------


def _stop_reading(consumer: Consumer, command: StopReading, now_ms: int) -> Step:
    """Stop at once. Files being written are still announced, so the reply includes them."""
    parts, actions = dict(consumer.partitions), list[Action]()
    next_offsets: dict[TopicPartition, int | None] = {}
    for partition in command.partitions:
        part = parts.pop(partition, None)
        next_offsets[partition] = None if part is None else _next_offset(consumer, partition, part)
        if part is not None:
            actions.append(StopFetching(partition))
    stopped = Stopped(
        slot=consumer.slot,
        epoch=consumer.epoch,
        revision=command.revision,
        next=next_offsets,
        stopped_ms=now_ms,
    )
    return _exit_if_done(replace(consumer, partitions=parts), (*actions, Reply(stopped)))


def _next_offset(consumer: Consumer, partition: TopicPartition, part: Reading) -> int | None:
    """Return the next offset to stage once the file that is being written is announced."""
    end, revision = consumer.staging.get(partition, (None, -1))
    return end if revision == part.revision else part.next


def _start_reading(consumer: Consumer, command: StartReading) -> Step:
    """Begin, or continue at another offset; a start that is received again changes nothing."""
    if consumer.ended:
        return consumer, ()  # the Goodbye will be the reply
    parts, actions = dict(consumer.partitions), list[Action]()
    started: dict[TopicPartition, int] = {}
    for partition, offset in sorted(command.offsets.items()):
        part = parts.get(partition)
        if part is not None and (part.revision == command.revision or offset is None):
            if part.next is None:
                parts[partition] = replace(part, revision=command.revision)  # `located` replies
            else:
                started[partition] = part.next  # it is already being read
            continue
        if part is not None:
            actions.append(StopFetching(partition))
        parts[partition] = Reading(command.revision, offset)
        actions.append(Fetch(partition, offset, command.revision))
        if offset is not None:
            started[partition] = offset
    consumer = replace(consumer, partitions=parts)
    return consumer, (*actions, *_started(consumer, command.revision, started))


def _started(
    consumer: Consumer,
    revision: int,
    offsets: Mapping[TopicPartition, int],
    tables: tuple[str, ...] = (),
) -> tuple[Reply, ...]:
    if not (offsets or tables):
        return ()
    message = Started(
        slot=consumer.slot,
        epoch=consumer.epoch,
        revision=revision,
        offsets=offsets,
        tables=tables,
    )
    return (Reply(message),)


def position_found(
    consumer: Consumer, partition: TopicPartition, offset: int, *, cut: bool = False
) -> Step:
    """Apply where the service reads a partition: it was looked up, or its log has changed."""
    part = consumer.partitions.get(partition)
    if part is not None and part.next is None:
        return located(consumer, partition, offset)
    return offset_reset(consumer, partition, offset, cut=cut), ()


def located(consumer: Consumer, partition: TopicPartition, offset: int) -> Step:
    """Reply that reading began where it was looked up, unless the partition was stopped."""
    part = consumer.partitions.get(partition)
    if part is None or part.next is not None or consumer.ended:
        return consumer, ()
    parts = {**consumer.partitions, partition: replace(part, next=offset)}
    consumer = replace(consumer, partitions=parts)
    return consumer, _started(consumer, part.revision, {partition: offset})


def offset_reset(
    consumer: Consumer, partition: TopicPartition, offset: int, *, cut: bool = False
) -> Consumer:
    """Continue at another offset, because the log was truncated (`cut`) or the topic recreated.

    A file of the partition that is being written no longer advances the position. After a cut the
    old position is reported until the file that announces the cut is out: a new owner that takes
    over before that must detect the cut itself (†).
    """
    part = consumer.partitions.get(partition)
    if part is None:
        return consumer
    parts = {**consumer.partitions, partition: part if cut else replace(part, next=offset)}
    staged = {p: (end, -1 if p == partition else r) for p, (end, r) in consumer.staging.items()}
    return replace(consumer, partitions=parts, staging=staged)


def staging_started(consumer: Consumer, ends: Mapping[TopicPartition, int]) -> Consumer:
    """Record that a file with rows up to these offsets is being written; one per partition."""
    new = {p: (end, consumer.partitions[p].revision) for p, end in ends.items()}
    return replace(consumer, staging={**consumer.staging, **new})


def file_announced(consumer: Consumer, partitions: Collection[TopicPartition]) -> Step:
    """Advance past the rows of a file that is staged and announced.

    Partitions that were stopped or restarted since then do not change.
    """
    parts, left = dict(consumer.partitions), dict(consumer.staging)
    for partition in partitions:
        end, revision = left.pop(partition)
        part = parts.get(partition)
        if part is not None and part.revision == revision:
            parts[partition] = replace(part, next=end)
    return _exit_if_done(replace(consumer, partitions=parts, staging=left), ())


def part_announced(consumer: Consumer, partition: TopicPartition, offsets: OffsetRange) -> Consumer:
    """Advance past a piece of a split partition, if it joins on to what is staged (†)."""
    part = consumer.partitions.get(partition)
    if part is None or part.next != offsets.first:
        return consumer
    parts = {**consumer.partitions, partition: replace(part, next=offsets.next)}
    return replace(consumer, partitions=parts)


def dropped(consumer: Consumer, partitions: Collection[TopicPartition]) -> Step:
    """Forget a file that is not staged, because the topic of its rows no longer exists."""
    left = {p: end for p, end in consumer.staging.items() if p not in partitions}
    return _exit_if_done(replace(consumer, staging=left), ())


# --- writing -----------------------------------------------------------------------------------


def _start_writing(consumer: Consumer, command: StartWriting) -> Step:
    if consumer.ended:
        return consumer, ()
    new = tuple(t for t in command.tables if t not in consumer.tables)
    tables = {**consumer.tables, **dict.fromkeys(command.tables, command.revision)}
    closing = {t: r for t, r in consumer.closing.items() if t not in tables}
    consumer = replace(consumer, tables=tables, closing=closing)
    write = (StartWriter(new),) if new else ()
    return consumer, (*write, *_started(consumer, command.revision, {}, command.tables))


def _stop_writing(consumer: Consumer, command: StopWriting) -> Step:
    """Stop after the commit in flight; reply at once for tables that are not written here."""
    owned = tuple(t for t in command.tables if t in consumer.tables or t in consumer.closing)
    unowned = tuple(t for t in command.tables if t not in owned)
    ending = tuple(t for t in owned if t in consumer.tables)
    tables = {t: r for t, r in consumer.tables.items() if t not in owned}
    closing = {**consumer.closing, **dict.fromkeys(owned, command.revision)}
    consumer = replace(consumer, tables=tables, closing=closing)
    stop = (StopWriter(ending),) if ending else ()
    reply = (_stopped_writing(consumer, command.revision, unowned),) if unowned else ()
    return consumer, (*stop, *reply)


def _stopped_writing(consumer: Consumer, revision: int, tables: tuple[str, ...]) -> Reply:
    slot, epoch = consumer.slot, consumer.epoch
    return Reply(Stopped(slot=slot, epoch=epoch, revision=revision, next={}, tables=tables))


def writing_stopped(consumer: Consumer, topics: Collection[str]) -> Step:
    """Reply to the commands that stopped these tables: they are no longer written."""
    ended: dict[int, list[str]] = {}
    for topic in sorted(topics):
        if (revision := consumer.closing.get(topic)) is not None:
            ended.setdefault(revision, []).append(topic)
    closing = {t: r for t, r in consumer.closing.items() if t not in topics}
    consumer = replace(consumer, closing=closing)
    replies = (_stopped_writing(consumer, r, tuple(tables)) for r, tables in ended.items())
    return _exit_if_done(consumer, tuple(replies))


def table_lost(consumer: Consumer, topic: str) -> Step:
    """Give up a table that another writer has claimed; the next report leaves it out."""
    tables = {t: r for t, r in consumer.tables.items() if t != topic}
    consumer, actions = writing_stopped(replace(consumer, tables=tables), {topic})
    return consumer, (*actions, ReportNow())


# --- exit --------------------------------------------------------------------------------------


def leave(consumer: Consumer) -> Step:
    """Begin a graceful exit: report it, and continue until the controller has moved everything.

    The `Goodbye` follows once nothing is left. If no controller moves anything, `drain` ends it.
    """
    if consumer.leaving:
        return consumer, ()
    if not consumer.ready:
        return consumer, (Exit("shutdown requested before the consumer was ready"),)
    return _exit_if_done(replace(consumer, leaving=True), (ReportNow(),) if consumer.busy else ())


def drain(consumer: Consumer) -> Step:
    """Stop everything, and exit once nothing is in flight; for when no controller moves it."""
    if consumer.ended:
        return consumer, ()
    if not consumer.ready:
        return consumer, (Exit("shutdown requested before the consumer was ready"),)
    stops = tuple(StopFetching(p) for p in sorted(consumer.partitions))
    topics = tuple(sorted(consumer.tables))
    ended = replace(
        consumer,
        leaving=True,
        ended=True,
        tables={},
        closing={**consumer.closing, **consumer.tables},
    )
    writes = (StopWriter(topics),) if topics else ()
    return _exit_if_done(ended, (*stops, *writes))


def _exit_if_done(consumer: Consumer, actions: tuple[Action, ...]) -> Step:
    """Send the Goodbye and exit if nothing is left: when draining at once, nothing in flight."""
    if not consumer.leaving or consumer.staging or consumer.closing:
        return consumer, actions
    if not consumer.ended and consumer.busy:
        return consumer, actions
    goodbye = Goodbye(slot=consumer.slot, epoch=consumer.epoch, next=consumer.next_offsets())
    gone = replace(consumer, ended=True, partitions={})
    return gone, (*actions, Reply(goodbye), Exit("shutdown requested"))
