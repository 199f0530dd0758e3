"""The consumer's side of the hand-over: what it reads, which tables it writes, what it answers.

Pure: the shell fetches, stages and publishes; it hands over commands and outcomes, and carries out
the actions that are returned, in order. No row depends on any of this: the tables' writers land
each offset once, whoever staged it.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from binwright.core.messages import (
    Command,
    Goodbye,
    Leave,
    Started,
    StartReading,
    StartWriting,
    StateQuery,
    Stopped,
    StopReading,
    StopWriting,
)
from binwright.core.model import Slot, TopicPartition


@dataclass(frozen=True, slots=True)
class Reading:
    """A partition that is read here."""

    revision: int  # of the start that is obeyed
    next: int | None  # the next offset to stage; None: not known yet where to begin


# --- what the shell must do --------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Reply:
    """Publish this to partition 0."""

    message: Stopped | Started | Goodbye


@dataclass(frozen=True, slots=True)
class ReportNow:
    """Publish a `Report` without waiting for its turn."""


@dataclass(frozen=True, slots=True)
class Fetch:
    """Read this partition from `offset` on, or find out where to begin and call `located`."""

    partition: TopicPartition
    offset: int | None
    revision: int


@dataclass(frozen=True, slots=True)
class StopFetching:
    """Fetch no more of it, and drop what is not being staged yet."""

    partition: TopicPartition


@dataclass(frozen=True, slots=True)
class Write:
    """Be the writer of these tables."""

    topics: tuple[str, ...]
    term: int  # of the controller that grants it


@dataclass(frozen=True, slots=True)
class StopWrite:
    """Let the commit in flight end, write these tables no more, and call `written`."""

    topics: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Exit:
    """End the process; publish nothing more."""

    reason: str


Action = Reply | ReportNow | Fetch | StopFetching | Write | StopWrite | Exit


@dataclass(frozen=True, slots=True)
class Consumer:
    """One process of a slot."""

    slot: Slot
    epoch: int
    term: int = 0  # the highest seen
    ready: bool = False  # its staging place can be written
    leaving: bool = False  # asked to end: works on until its partitions and tables have moved
    ended: bool = False  # reads nothing more; its Goodbye is sent, or waits for what is in flight
    parts: Mapping[TopicPartition, Reading] = field(default_factory=dict)
    tables: Mapping[str, int] = field(default_factory=dict)  # -> revision of the start
    closing: Mapping[str, int] = field(default_factory=dict)  # -> revision of the stop
    staging: Mapping[TopicPartition, tuple[int, int]] = field(default_factory=dict)
    """In files being written: partition -> (next offset once announced, revision of its start)."""

    def next_offsets(self) -> dict[TopicPartition, int]:
        """Return the next offset to stage of what is read, where it is known."""
        return {p: part.next for p, part in self.parts.items() if part.next is not None}

    @property
    def busy(self) -> bool:
        """Tell whether it still has anything that others wait for."""
        return bool(self.parts or self.tables or self.closing or self.staging)


Step = tuple[Consumer, tuple[Action, ...]]


def prepared(consumer: Consumer) -> Step:
    """Take that the staging place can be written: partitions and tables may come."""
    return replace(consumer, ready=True), (ReportNow(),)


def obey(consumer: Consumer, command: Command, now_ms: int) -> Step:
    """Take a command; one of a lower term, or for an older process, is dropped."""
    if command.term < consumer.term:
        return consumer, ()
    consumer = replace(consumer, term=command.term)
    if isinstance(command, StateQuery):
        return consumer, (ReportNow(),)
    if command.epoch != consumer.epoch:
        newer = command.epoch > consumer.epoch
        return consumer, (Exit(f"superseded by epoch {command.epoch}"),) if newer else ()
    match command:
        case Leave():
            return consumer, (Exit("told to leave: declared dead, or superseded"),)
        case StopReading():
            return _stop_reading(consumer, command, now_ms)
        case StartReading():
            return _start_reading(consumer, command)
        case StopWriting():
            return _stop_writing(consumer, command)
        case _:
            return _start_writing(consumer, command)


# --- reading -----------------------------------------------------------------------------------


def _stop_reading(consumer: Consumer, command: StopReading, now_ms: int) -> Step:
    """Stop at once. What is being staged now is announced all the same: the answer counts it."""
    parts, actions = dict(consumer.parts), list[Action]()
    following: dict[TopicPartition, int | None] = {}
    for partition in command.partitions:
        part = parts.pop(partition, None)
        following[partition] = None if part is None else _next(consumer, partition, part)
        if part is not None:
            actions.append(StopFetching(partition))
    stopped = Stopped(
        slot=consumer.slot,
        epoch=consumer.epoch,
        revision=command.revision,
        next=following,
        quit_ms=now_ms,
    )
    return _farewell(replace(consumer, parts=parts), (*actions, Reply(stopped)))


def _next(consumer: Consumer, partition: TopicPartition, part: Reading) -> int | None:
    end, revision = consumer.staging.get(partition, (None, -1))
    return end if revision == part.revision else part.next


def _start_reading(consumer: Consumer, command: StartReading) -> Step:
    """Begin, or go to another offset; the same start sent again changes nothing."""
    if consumer.ended:
        return consumer, ()  # the Goodbye to come is the answer
    parts, actions = dict(consumer.parts), list[Action]()
    begun: dict[TopicPartition, int] = {}
    for partition, offset in sorted(command.offsets.items()):
        part = parts.get(partition)
        if part is not None and (part.revision == command.revision or offset is None):
            if part.next is None:
                parts[partition] = replace(part, revision=command.revision)  # `located` answers
            else:
                begun[partition] = part.next  # it is read already: that is the answer
            continue
        if part is not None:
            actions.append(StopFetching(partition))
        parts[partition] = Reading(command.revision, offset)
        actions.append(Fetch(partition, offset, command.revision))
        if offset is not None:
            begun[partition] = offset
    consumer = replace(consumer, parts=parts)
    return consumer, (*actions, *_started(consumer, command.revision, begun))


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


def located(consumer: Consumer, fetch: Fetch, offset: int) -> Step:
    """Take where a partition begins; what was stopped or started anew meanwhile is dropped."""
    part = consumer.parts.get(fetch.partition)
    if part is None or part.next is not None or consumer.ended:
        return consumer, ()
    parts = {**consumer.parts, fetch.partition: replace(part, next=offset)}
    consumer = replace(consumer, parts=parts)
    begin = Fetch(fetch.partition, offset, part.revision)
    return consumer, (begin, *_started(consumer, part.revision, {fetch.partition: offset}))


def moved(
    consumer: Consumer, partition: TopicPartition, offset: int, *, cut: bool = False
) -> Consumer:
    """Take that reading goes on elsewhere by itself: the log was cut, or made anew.

    What is being staged of it does not count any more. Of a cut nobody is told an offset until the
    file that says so is announced: whoever takes over before that is to see the cut, too (†).
    """
    part = consumer.parts.get(partition)
    if part is None:
        return consumer
    parts = {**consumer.parts, partition: part if cut else replace(part, next=offset)}
    staged = {p: (end, -1 if p == partition else r) for p, (end, r) in consumer.staging.items()}
    return replace(consumer, parts=parts, staging=staged)


def staging(consumer: Consumer, ends: Mapping[TopicPartition, int]) -> Consumer:
    """Take that a file with rows up to these offsets is being written; one file of a partition."""
    new = {p: (end, consumer.parts[p].revision) for p, end in ends.items()}
    return replace(consumer, staging={**consumer.staging, **new})


def announced(consumer: Consumer, partitions: Collection[TopicPartition]) -> Step:
    """Take that the file with rows of these is staged and announced.

    Of what was stopped or told to begin elsewhere meanwhile nothing changes.
    """
    parts, left = dict(consumer.parts), dict(consumer.staging)
    for partition in partitions:
        end, revision = left.pop(partition)
        part = parts.get(partition)
        if part is not None and part.revision == revision:
            parts[partition] = replace(part, next=end)
    return _farewell(replace(consumer, parts=parts, staging=left), ())


def dropped(consumer: Consumer, partitions: Collection[TopicPartition]) -> Step:
    """Take that the file with rows of these is not staged: they are of a topic that is no more."""
    left = {p: end for p, end in consumer.staging.items() if p not in partitions}
    return _farewell(replace(consumer, staging=left), ())


# --- writing -----------------------------------------------------------------------------------


def _start_writing(consumer: Consumer, command: StartWriting) -> Step:
    if consumer.ended:
        return consumer, ()
    new = tuple(t for t in command.tables if t not in consumer.tables)
    tables = {**consumer.tables, **dict.fromkeys(command.tables, command.revision)}
    closing = {t: r for t, r in consumer.closing.items() if t not in tables}
    consumer = replace(consumer, tables=tables, closing=closing)
    write = (Write(new, command.term),) if new else ()
    return consumer, (*write, *_started(consumer, command.revision, {}, command.tables))


def _stop_writing(consumer: Consumer, command: StopWriting) -> Step:
    """End after the commit in flight; what is not written here is answered at once."""
    here = tuple(t for t in command.tables if t in consumer.tables or t in consumer.closing)
    others = tuple(t for t in command.tables if t not in here)
    ending = tuple(t for t in here if t in consumer.tables)
    tables = {t: r for t, r in consumer.tables.items() if t not in here}
    closing = {**consumer.closing, **dict.fromkeys(here, command.revision)}
    consumer = replace(consumer, tables=tables, closing=closing)
    stop = (StopWrite(ending),) if ending else ()
    reply = (_stopped_writing(consumer, command.revision, others),) if others else ()
    return consumer, (*stop, *reply)


def _stopped_writing(consumer: Consumer, revision: int, tables: tuple[str, ...]) -> Reply:
    slot, epoch = consumer.slot, consumer.epoch
    return Reply(Stopped(slot=slot, epoch=epoch, revision=revision, next={}, tables=tables))


def written(consumer: Consumer, topics: Collection[str]) -> Step:
    """Take that these tables are written no more, as a stop asked for."""
    ended: dict[int, list[str]] = {}
    for topic in sorted(topics):
        if (revision := consumer.closing.get(topic)) is not None:
            ended.setdefault(revision, []).append(topic)
    closing = {t: r for t, r in consumer.closing.items() if t not in topics}
    consumer = replace(consumer, closing=closing)
    replies = (_stopped_writing(consumer, r, tuple(found)) for r, found in ended.items())
    return _farewell(consumer, tuple(replies))


def lost(consumer: Consumer, topic: str) -> Step:
    """Take that another writer has this table: the next report says so by leaving it out."""
    tables = {t: r for t, r in consumer.tables.items() if t != topic}
    consumer, actions = written(replace(consumer, tables=tables), {topic})
    return consumer, (*actions, ReportNow())


# --- leaving -----------------------------------------------------------------------------------


def leave(consumer: Consumer) -> Step:
    """Begin a graceful exit: say so, and work on until the controller has moved everything away.

    It says Goodbye once it has nothing any more. Nobody is obliged to move anything: `drain` is
    for when nobody does.
    """
    if consumer.leaving:
        return consumer, ()
    if not consumer.ready:
        return consumer, (Exit("asked to, before it was ready"),)
    return _farewell(replace(consumer, leaving=True), (ReportNow(),) if consumer.busy else ())


def drain(consumer: Consumer) -> Step:
    """Stop everything, and say Goodbye once nothing is in flight."""
    if consumer.ended:
        return consumer, ()
    if not consumer.ready:
        return consumer, (Exit("asked to, before it was ready"),)
    stops = tuple(StopFetching(p) for p in sorted(consumer.parts))
    topics = tuple(sorted(consumer.tables))
    ended = replace(
        consumer,
        leaving=True,
        ended=True,
        tables={},
        closing={**consumer.closing, **consumer.tables},
    )
    writes = (StopWrite(topics),) if topics else ()
    return _farewell(ended, (*stops, *writes))


def _farewell(consumer: Consumer, actions: tuple[Action, ...]) -> Step:
    """Say Goodbye when nothing is left that others wait for, or nothing is in flight any more."""
    if not consumer.leaving or consumer.staging or consumer.closing:
        return consumer, actions
    if not consumer.ended and consumer.busy:
        return consumer, actions
    goodbye = Goodbye(slot=consumer.slot, epoch=consumer.epoch, next=consumer.next_offsets())
    gone = replace(consumer, ended=True, parts={})
    return gone, (*actions, Reply(goodbye), Exit("asked to"))
