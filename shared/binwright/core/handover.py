"""The consumer's side of the hand-over: what to answer, what to read, what to call landed.

Pure: the shell fetches, writes and publishes; it hands over commands and outcomes, and does what
the actions say, in order. The rules are those of `docs/protocol.md`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from binwright.core.messages import (
    Command,
    Fence,
    Goodbye,
    Landed,
    Leave,
    StartConsuming,
    Started,
    StateQuery,
    StopConsuming,
    Stopped,
)
from binwright.core.model import Slot, TopicPartition

# --- where a partition is, here ----------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Active:
    """It is read; everything before `landed` is in the table."""

    landed: int


@dataclass(frozen=True, slots=True)
class Opening:
    """A start was obeyed; its fences go up, then its offset is resolved."""

    revision: int
    fences: tuple[Fence, ...]


@dataclass(frozen=True, slots=True)
class Ahead:
    """It is read from `offset` on, but the rows before are still on their way: land nothing."""

    offset: int


@dataclass(frozen=True, slots=True)
class Closing:
    """A stop was obeyed; its rows in the write in flight are not settled yet."""

    revision: int
    landed: int  # before that write


Part = Active | Opening | Ahead | Closing


# --- what the shell must do --------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Reply:
    """Publish this to partition 0."""

    message: Stopped | Landed | Started | Goodbye


@dataclass(frozen=True, slots=True)
class ReportNow:
    """Publish a `Report` without waiting for its turn."""


@dataclass(frozen=True, slots=True)
class Fetch:
    """Read this partition from `offset` on."""

    partition: TopicPartition
    offset: int


@dataclass(frozen=True, slots=True)
class Quit:
    """Fetch no more of it, and drop what is not handed to Spark yet."""

    partition: TopicPartition


@dataclass(frozen=True, slots=True)
class Land:
    """What was read ahead of it may land."""

    partition: TopicPartition


@dataclass(frozen=True, slots=True)
class Open:
    """Raise the fences on these partitions' tables, then resolve where to begin; say `opened`."""

    revision: int
    partitions: tuple[TopicPartition, ...]
    fences: tuple[Fence, ...]


@dataclass(frozen=True, slots=True)
class Exit:
    """End the process; publish nothing more."""

    reason: str


Deed = Reply | ReportNow | Fetch | Quit | Land | Open | Exit


@dataclass(frozen=True, slots=True)
class Consumer:
    """One process of a slot."""

    slot: Slot
    epoch: int
    term: int = 0  # the highest seen
    ready: bool = False  # its claims stand on every table
    leaving: bool = False  # asked to end: reads on until its partitions have been moved away
    ended: bool = False  # reads nothing more; its Goodbye is said, or waits for the write in flight
    parts: Mapping[TopicPartition, Part] = field(default_factory=dict)
    flying: Mapping[TopicPartition, int] = field(default_factory=dict)  # -> end, in the one write

    def landed(self) -> dict[TopicPartition, int]:
        """Return, of what is read, the next offset to land: what stamps and hints may name."""
        return {p: part.landed for p, part in self.parts.items() if isinstance(part, Active)}

    def reading(self) -> frozenset[TopicPartition]:
        """Return what is to be fetched."""
        return frozenset(p for p, part in self.parts.items() if isinstance(part, Active | Ahead))

    def among(self, kind: type[Opening | Ahead | Closing]) -> tuple[TopicPartition, ...]:
        """Return the partitions that are in this state, sorted."""
        return tuple(sorted(p for p, part in self.parts.items() if isinstance(part, kind)))


Done = tuple[Consumer, tuple[Deed, ...]]


def claimed(consumer: Consumer) -> Done:
    """Every table's claim stands: partitions may come."""
    return replace(consumer, ready=True), (ReportNow(),)


def obey(consumer: Consumer, command: Command, now_ms: int) -> Done:
    """Take a command; one of a lower term, or for an older process, is dropped."""
    if command.term < consumer.term:
        return consumer, ()
    consumer = replace(consumer, term=command.term)
    match command:
        case StateQuery():
            return consumer, (ReportNow(),)
        case _ if command.epoch < consumer.epoch:
            return consumer, ()
        case Leave() | StopConsuming() | StartConsuming() if command.epoch > consumer.epoch:
            return consumer, (Exit(f"superseded by epoch {command.epoch}"),)
        case Leave():
            return consumer, (Exit("told to leave: declared dead, or superseded"),)
        case StopConsuming():
            return _stop(consumer, command, now_ms)
        case _:
            return _start(consumer, command)


def _stop(consumer: Consumer, command: StopConsuming, now_ms: int) -> Done:
    parts, quits = dict(consumer.parts), list[Deed]()
    following: dict[TopicPartition, int | None] = dict.fromkeys(command.partitions)
    for partition in command.partitions:
        part = parts.pop(partition, None)
        if isinstance(part, Active | Ahead):
            quits.append(Quit(partition))
        if isinstance(part, Active | Closing):
            following[partition] = consumer.flying.get(partition, part.landed)
            if partition in consumer.flying:
                parts[partition] = Closing(command.revision, part.landed)
    stopped = Stopped(
        slot=consumer.slot,
        epoch=consumer.epoch,
        revision=command.revision,
        next=following,
        quit_ms=now_ms,
        unsettled=tuple(p for p in sorted(following) if p in parts),
    )
    return _relieved(replace(consumer, parts=parts), (*quits, Reply(stopped)))


def _start(consumer: Consumer, command: StartConsuming) -> Done:
    if consumer.ended:
        return consumer, ()  # the Goodbye to come is the answer
    parts, begun, deeds = dict(consumer.parts), dict[TopicPartition, int](), list[Deed]()
    opening = dict[tuple[Fence, ...], list[TopicPartition]]()
    for partition, offset in sorted(command.offsets.items()):
        part = parts.get(partition)
        match part:
            case Active(landed=landed) | Closing(landed=landed):
                begun[partition] = landed  # a start of what is held changes nothing (†)
                continue
            case Opening(revision=command.revision):
                continue  # said again: it is being opened, and that will be the answer
            case Ahead(offset=begin) if begin != offset:
                deeds.append(Quit(partition))  # read too far, or from elsewhere
            case Ahead() if not command.ahead:
                deeds.append(Land(partition))
            case _:
                pass
        if offset is None:
            # Fences of an earlier start that is not done yet stay owed.
            old = part.fences if isinstance(part, Opening) else ()
            fences = tuple(sorted({*old, *command.fences}, key=lambda f: (f.slot, f.number)))
            parts[partition] = Opening(command.revision, fences)
            opening.setdefault(fences, []).append(partition)
        else:
            parts[partition] = Ahead(offset) if command.ahead else Active(offset)
            begun[partition] = offset
            if part != Ahead(offset):
                deeds.append(Fetch(partition, offset))
    consumer = replace(consumer, parts=parts)
    opens = [Open(command.revision, tuple(ps), fences) for fences, ps in opening.items()]
    return consumer, (*deeds, *_started(consumer, command.revision, begun, ()), *opens)


def _started(
    consumer: Consumer,
    revision: int,
    offsets: Mapping[TopicPartition, int],
    fences: tuple[Fence, ...],
) -> tuple[Reply, ...]:
    if not offsets:
        return ()
    message = Started(
        slot=consumer.slot,
        epoch=consumer.epoch,
        revision=revision,
        offsets=offsets,
        fences=fences,
    )
    return (Reply(message),)


def opened(consumer: Consumer, done: Open, offsets: Mapping[TopicPartition, int]) -> Done:
    """Take a resolve's outcome; what was stopped or started anew meanwhile is dropped."""
    if consumer.ended:
        return consumer, ()  # what is not read when the exit begins never will be
    valid = {
        p: offset
        for p, offset in sorted(offsets.items())
        if consumer.parts.get(p) == Opening(done.revision, done.fences)
    }
    active = {p: Active(offset) for p, offset in valid.items()}
    consumer = replace(consumer, parts={**consumer.parts, **active})
    fetches = tuple(Fetch(p, offset) for p, offset in valid.items())
    return consumer, (*fetches, *_started(consumer, done.revision, valid, done.fences))


def handed(consumer: Consumer, ends: Mapping[TopicPartition, int]) -> Consumer:
    """A write of rows up to these offsets goes to Spark; only what is read may be in it."""
    if consumer.flying or not ends.keys() <= consumer.landed().keys():
        raise ValueError("one write at a time, and only of partitions that are read")
    return replace(consumer, flying=dict(ends))


def settled(consumer: Consumer) -> Done:
    """The write in flight has landed, and is known to have: whoever was told of it is told so."""
    parts, closed = dict(consumer.parts), dict[int, dict[TopicPartition, int]]()
    for partition, end in sorted(consumer.flying.items()):
        match parts.get(partition):
            case Active():
                parts[partition] = Active(end)
            case Closing(revision=revision):
                del parts[partition]
                closed.setdefault(revision, {})[partition] = end
            case _:
                raise ValueError(f"{partition} was in flight, but is neither read nor closing")
    consumer = replace(consumer, parts=parts, flying={})
    slot, epoch = consumer.slot, consumer.epoch
    replies = tuple(
        Reply(Landed(slot=slot, epoch=epoch, revision=revision, landed=landed))
        for revision, landed in closed.items()
    )
    if consumer.ended:
        return consumer, (*replies, *_farewell(consumer))
    return _relieved(consumer, replies)


def leave(consumer: Consumer) -> Done:
    """Begin a graceful exit: say so, and read on until the controller has moved everything away.

    It says Goodbye once it has nothing any more. Nobody is obliged to move anything: `drain` is
    for who waits in vain.
    """
    if consumer.leaving:
        return consumer, ()
    if not consumer.ready:
        # A Goodbye says that no older epoch can write: only claims that stand can promise it.
        return consumer, (Exit("asked to, before it was ready"),)
    consumer = replace(consumer, leaving=True)
    return _relieved(consumer, (ReportNow(),) if consumer.parts else ())


def _relieved(consumer: Consumer, deeds: tuple[Deed, ...]) -> Done:
    """Let who is leaving go, once it has nothing any more."""
    if not consumer.leaving or consumer.ended or consumer.parts:
        return consumer, deeds
    return replace(consumer, ended=True), (*deeds, *_farewell(consumer))


def drain(consumer: Consumer) -> Done:
    """Quit everything at once, and say Goodbye once nothing is in flight."""
    if consumer.ended:
        return consumer, ()
    if not consumer.ready:
        return consumer, (Exit("asked to, before it was ready"),)
    consumer = replace(consumer, leaving=True, ended=True)
    quits = tuple(Quit(p) for p in sorted(consumer.reading()))
    return consumer, quits if consumer.flying else (*quits, *_farewell(consumer))


def _farewell(consumer: Consumer) -> tuple[Deed, ...]:
    goodbye = Goodbye(slot=consumer.slot, epoch=consumer.epoch, landed=consumer.landed())
    return Reply(goodbye), Exit("asked to")
