"""What a consumer publishes to the controllers, in metadata partition 0."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from binwright.protocol.fields import (
    Amount,
    Epoch,
    KnownOffsets,
    Number,
    Offsets,
    Revision,
    SlotNumber,
    Term,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Hello:
    """A consumer process has started; the record's offset is its epoch."""

    slot: SlotNumber
    process: str  # host/pid/random: unique to the process
    version: str  # of its software
    sent_ms: Number = 0  # wall clock of its machine, ms since 1970; 0: unknown
    kind: Literal["hello/1"] = "hello/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class TableReport:
    """One table as its writer sees it, in the `Report` of the writer's consumer."""

    state: Literal["claiming", "landing", "refused"]  # refused: the table takes no commit
    committed: Offsets  # the next offset to land
    age_s: Amount = 0.0  # age of the oldest staged row that has not landed; 0: none
    pending_bytes: Number = 0  # in files that are announced and have not landed
    rows: Number = 0  # landed by this writer
    commits: Number = 0  # made by this writer
    fault: str = ""  # why nothing lands at the moment; empty: it does


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """A consumer's state: every second, and at once after a `StateQuery`."""

    slot: SlotNumber
    epoch: Epoch
    term: Term  # the highest that it has seen
    ready: bool  # it can write to its staging directory, and so may be given partitions
    reading: KnownOffsets  # what it reads, with the next offset to stage; null: it looks that up
    writing: Mapping[str, TableReport]  # by topic: the tables whose writer it is
    rate: Amount = 0.0  # bytes/s that it stages, keys and values as read
    busy: Amount = 0.0  # share of the time in which fetching waited for staging, 0 to 1
    staged_rows: Number = 0  # rows that this process has staged
    staged_bytes: Number = 0  # in its staged files that have not landed
    lost_offsets: Number = 0  # offsets that retention deleted before they were read
    leaving: bool = False  # asked to end: it works until its partitions and tables have moved
    kind: Literal["report/3"] = "report/3"


@dataclass(frozen=True, slots=True, kw_only=True)
class Stopped:
    """The reply to `StopReading` (at once) or `StopWriting` (its commit in flight has ended)."""

    slot: SlotNumber
    epoch: Epoch
    revision: Revision
    next: KnownOffsets  # the next offset to stage; null: it did not read this partition
    tables: tuple[str, ...] = ()  # topics whose table it no longer writes
    quit_ms: Number = 0  # wall clock when fetching stopped, ms since 1970; measures the pause
    kind: Literal["stopped/3"] = "stopped/3"


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    """The reply to `StartReading` or `StartWriting`."""

    slot: SlotNumber
    epoch: Epoch
    revision: Revision
    offsets: Offsets  # where reading begins
    tables: tuple[str, ...] = ()  # topics whose table it writes now
    kind: Literal["started/2"] = "started/2"


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """A table's writer lacks what comes next of these partitions: read them again from there."""

    slot: SlotNumber  # the writer's
    epoch: Epoch
    committed: Offsets  # the next offset to land
    kind: Literal["gap/1"] = "gap/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Goodbye:
    """A consumer exits: all that it read is staged and announced; it sends nothing after this."""

    slot: SlotNumber
    epoch: Epoch
    next: Offsets  # the next offset to stage, of what it still read
    kind: Literal["goodbye/2"] = "goodbye/2"
