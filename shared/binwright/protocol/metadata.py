"""The records of metadata partition 0, of which a group's state is made.

`docs/design/protocol.md` describes which process sends each one, and when.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Literal, NamedTuple

from binwright.protocol.fields import (
    Amount,
    Epoch,
    FieldName,
    KnownOffsets,
    Number,
    Offset,
    Offsets,
    Partition,
    Rate,
    Revision,
    SlotNumber,
    Term,
)
from binwright.protocol.model import Slot, TopicPartition
from binwright.protocol.names import TopicName
from binwright.protocol.wire import Decode, decoder

# --- a controller ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A controller starts to lead; the record's offset is its term."""

    controller: str  # unique to the process and this claim, so that it recognises its own
    limit: Rate  # bytes/s that a consumer sustains; for people: no consumer acts on it
    slot_limits: tuple[tuple[SlotNumber, Rate], ...] = ()  # of slots with another limit
    measured: bool = False  # the limits of the last `LimitsMeasured` hold, if there is one
    kind: Literal["claim/2"] = "claim/2"


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitsMeasured:
    """What consumers sustain, as measured: it holds until the next one, for the next leader too."""

    term: Term
    limit: Rate  # bytes/s, of slots that are not named
    slot_limits: tuple[tuple[SlotNumber, Rate], ...] = ()  # of slots with another limit
    kind: Literal["limits-measured/1"] = "limits-measured/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class CatchingUp:
    """What backlogs count for: it holds until the next one, for the next leader too."""

    term: Term
    needs: Mapping[Partition, Rate]  # bytes/s beside the rate; of others no backlog counts
    kind: Literal["catching-up/1"] = "catching-up/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Dead:
    """A consumer process is declared dead: its `Hello` counts no more."""

    slot: SlotNumber
    epoch: Epoch  # of the process that is meant
    term: Term
    kind: Literal["dead/2"] = "dead/2"
    KEY: ClassVar = "dead/{0.slot}"


# --- plans ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """A plan goes ahead. For people and for the next controller: no consumer acts on it."""

    term: Term
    reasons: tuple[str, ...]  # what triggers the plan or what it saves, then what it costs
    consumers: Number  # how many have partitions afterwards
    moves: Mapping[Partition, SlotNumber]  # to the new owner; first starts are not moves
    rscore: Amount  # bytes/s moved, in units of capacity (eq. 11 of the paper)
    rates: Mapping[Partition, Rate]  # bytes/s that the plan was made for
    targets: Mapping[Partition, SlotNumber]  # the owner of each partition afterwards
    keeps: Offset | None = None  # number of the approved plan that it restores; null: none
    moved: tuple[tuple[Number, Number], ...] = ()  # moves of plans: minute since 1970, how many
    kind: Literal["planned/1"] = "planned/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposed:
    """A plan is shown and not carried out; the record's offset is its number."""

    term: Term
    reasons: tuple[str, ...]  # what triggers the plan or what it saves, then what it costs
    consumers: Number  # how many would have partitions
    rscore: Amount  # bytes/s moved, in units of capacity (eq. 11 of the paper)
    owners: Mapping[Partition, SlotNumber]  # the owner of each partition when it was made
    targets: Mapping[Partition, SlotNumber]  # the owner that each partition would have
    waits: bool  # for an approval (mode approve); else it is only shown (mode observe)
    kind: Literal["proposed/1"] = "proposed/1"

    @property
    def moves(self) -> dict[TopicPartition, tuple[Slot, Slot]]:
        """Return what would change hands -> from, to; first starts are not moves."""
        return {
            p: (self.owners[p], owner)
            for p, owner in self.targets.items()
            if self.owners.get(p, owner) != owner
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepted:
    """An approved plan goes ahead, and is restored after failures until another is accepted."""

    term: Term
    plan: Offset  # its number
    targets: Mapping[Partition, SlotNumber]  # the owner of each partition
    kind: Literal["accepted/1"] = "accepted/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Withdrawn:
    """A proposed plan is out of date."""

    term: Term
    plan: Offset  # its number
    reason: str  # what has changed
    kind: Literal["withdrawn/1"] = "withdrawn/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """What a controller does not do at present, because orders or settings hold it back."""

    term: Term
    reasons: tuple[str, ...]  # a sentence each, for people; none: nothing is held back
    kind: Literal["held/1"] = "held/1"


# --- a consumer to the controllers ----------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Hello:
    """A consumer process has started; the record's offset is its epoch."""

    slot: SlotNumber
    process: str  # host/pid/random: unique to the process
    version: str  # of its software
    sent_ms: Number = 0  # wall clock of its machine, ms since 1970; 0: unknown
    kind: Literal["hello/2"] = "hello/2"
    KEY: ClassVar = "hello/{0.slot}"


@dataclass(frozen=True, slots=True, kw_only=True)
class TableCompaction:
    """The small files of a table, and what its writer has merged of them, and sorted."""

    small_files: Number = 0  # that can be merged with others, about
    small_bytes: Number = 0  # in these
    seconds: Amount = 0.0  # that this took on the Spark server; merges run one task at a time
    files_read: Number = 0  # that were merged, or whose rows were sorted by `cluster_by`
    bytes_read: Number = 0  # in these
    files_written: Number = 0  # that replaced them
    bytes_written: Number = 0  # in these
    fault: str = ""  # why the last merge failed; empty: it did not


@dataclass(frozen=True, slots=True, kw_only=True)
class TableRegistration:
    """The name that a table has, or is to have, in a catalog."""

    name: str  # `schema.name`, or `catalog.schema.name`
    registered: bool = False  # since its writer has the role
    fault: str = ""  # why it is not; empty: it was not tried yet


OUTCOMES: Mapping[str, tuple[str, ...]] = {
    "replay": ("moved", "left", "skipped", "masked"),
    "erase": ("erased", "bad_erased", "bad_left"),
    "backfill": ("rows", "bad", "skipped", "gone", "to_go"),
}
"""Work -> what becomes of records by it: fields of `TableOperation`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableOperation:
    """The work on a table that a person ordered last, and how far its writer is with it."""

    id: str  # of the order
    work: str  # replay: bad records are decoded again; erase: rows go; backfill: earlier ones land
    by: str = ""  # who ordered it, for people
    reason: str = ""  # why, for people
    at_ms: Number = 0  # when, wall clock, ms since 1970
    dry_run: bool = False  # nothing changes but these counts
    state: Literal["running", "done", "failed"]  # whether it has ended
    fault: str = ""  # why it has failed, or does not go on; empty: it does
    moved: Mapping[str, Number] = field(default_factory=dict)  # class -> that became rows
    left: Mapping[str, Number] = field(default_factory=dict)  # class -> that are bad still
    skipped: Number = 0  # that are in no table now, as the settings want
    rows: Number = 0  # rows of records from before the table's beginning
    bad: Number = 0  # bad records from before it
    gone: Number = 0  # offsets that are left out: Kafka has them no more, or their log was cut
    to_go: Number = 0  # offsets from before it that are to be read
    masked: Number = 0  # bad records whose values are masked: they are not decoded again
    erased: Number = 0  # rows that were deleted
    bad_erased: Number = 0  # bad records that were deleted
    bad_left: Number = 0  # bad records that the condition cannot be applied to
    ended_ms: Number = 0  # when rows were deleted, wall clock, ms since 1970; 0: none were
    files_until_ms: Number = 0  # until when older versions have rows that were deleted; 0: none

    @property
    def outcomes(self) -> Mapping[str, int]:
        """Return what became of records -> of how many."""
        counts = {name: getattr(self, name) for name in OUTCOMES.get(self.work, ())}
        return {n: c if isinstance(c, int) else sum(c.values()) for n, c in counts.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class TableReport:
    """One table as its writer sees it, in the `Report` of the writer's consumer."""

    topic: TopicName | None = None  # whose records it takes; null: the topic of the table's name
    topics: tuple[TopicName, ...] = ()  # whose records it takes, if they are several
    state: Literal["claiming", "landing", "paused", "refused"]  # refused: it takes no commit
    committed: Offsets  # the next offset to land
    age_s: Amount = 0.0  # age of the oldest staged row that has not landed; 0: none
    pending_bytes: Number = 0  # in files that are announced and have not landed
    rows: Number = 0  # landed by this writer
    bad: Number = 0  # of them: bad records, in their own table
    skipped: Number = 0  # records that are in no table, as `tombstones` and `where` want
    commits: Number = 0  # made by this writer
    newest_ms: Number | None = None  # the highest timestamp of records that it has landed
    fault: str = ""  # why nothing lands at the moment; empty: it does
    appended: str = ""  # why Spark writes its rows again; empty: its files become the table's
    compaction: TableCompaction | None = None  # null: the table is not compacted, nor sorted
    registration: TableRegistration | None = None  # null: the table is not to be registered
    operation: TableOperation | None = None  # null: none was ordered

    def topics_of(self, name: str) -> tuple[str, ...]:
        """Return the topics whose records it takes; `name` is the table's."""
        return self.topics or (self.topic or name,)

    def freshness_s(self, now_ms: int) -> float | None:
        """Return the age of the newest record that has landed, s; None: not known."""
        return None if self.newest_ms is None else max(0, now_ms - self.newest_ms) / 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredCapacity:
    """What a consumer could read and stage, by its last minutes with work."""

    bytes_per_s: Rate  # as stored on the brokers
    spread: Amount  # half of what the middle half of its measurements differs, as a share
    used: Amount  # the highest share of its time that it used, 0 to 1
    seconds: Amount  # that it measured


class StagedShare(NamedTuple):
    """What one consumer has staged of a split partition."""

    slot: SlotNumber  # the consumer's
    rows: Number  # since the partition was split


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """A consumer's state: every second, and at once after a `StateQuery`."""

    slot: SlotNumber
    epoch: Epoch
    term: Term  # the highest that it has seen
    ready: bool  # it can write to its staging directory, and so may be given partitions
    reading: KnownOffsets  # what it reads, with the next offset to stage; null: it looks that up
    writing: Mapping[TopicName, TableReport]  # by name: all tables of the topics that it writes
    rate: Amount = 0.0  # bytes/s that it stages, keys and values as read
    busy: Amount = 0.0  # share of the time in which fetching waited for staging, 0 to 1
    capacity: MeasuredCapacity | None = None  # null: it has not measured enough
    staged_rows: Number = 0  # rows that this process has staged
    staged_bytes: Number = 0  # in its staged files that have not landed
    lost_offsets: Number = 0  # that retention deleted unread, or that could not be decoded
    faults: Mapping[TopicName, str] = field(default_factory=dict)  # topics that stand, and why
    new_fields: Mapping[TopicName, tuple[FieldName, ...]] = field(  # table -> without a column
        default_factory=dict
    )
    leaving: bool = False  # asked to end: it works until its partitions and tables have moved
    zone: str | None = None  # where it runs; null: not known
    splits: Mapping[Partition, tuple[StagedShare, ...]] = field(default_factory=dict)  # owner first
    kind: Literal["report/3"] = "report/3"
    KEY: ClassVar = "report/{0.slot}"

    @property
    def written_topics(self) -> frozenset[str]:
        """Return the topics whose tables it writes."""
        return frozenset(t for name, table in self.writing.items() for t in table.topics_of(name))


@dataclass(frozen=True, slots=True, kw_only=True)
class Stopped:
    """The reply to `StopReading` (at once) or `StopWriting` (its commit in flight has ended)."""

    slot: SlotNumber
    epoch: Epoch
    revision: Revision
    next: KnownOffsets  # the next offset to stage; null: it did not read this partition
    tables: tuple[TopicName, ...] = ()  # topics whose tables it no longer writes
    stopped_ms: Number = 0  # wall clock when fetching stopped, ms since 1970; measures the pause
    kind: Literal["stopped/3"] = "stopped/3"
    KEY: ClassVar = "stopped/{0.slot}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    """The reply to `StartReading` or `StartWriting`."""

    slot: SlotNumber
    epoch: Epoch
    revision: Revision
    offsets: Offsets  # where reading begins
    tables: tuple[TopicName, ...] = ()  # topics whose tables it writes now
    kind: Literal["started/2"] = "started/2"
    KEY: ClassVar = "started/{0.slot}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """A table's writer lacks what comes next of these partitions: read them again from there."""

    slot: SlotNumber  # the writer's
    epoch: Epoch
    committed: Offsets  # the next offset to land
    kind: Literal["gap/1"] = "gap/1"
    KEY: ClassVar = "gap/{0.slot}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Goodbye:
    """A consumer exits: all that it read is staged and announced; it sends nothing after this."""

    slot: SlotNumber
    epoch: Epoch
    next: Offsets  # the next offset to stage, of what it still read
    kind: Literal["goodbye/2"] = "goodbye/2"
    KEY: ClassVar = "goodbye/{0.slot}"


# --- all of them ----------------------------------------------------------------------------------

Inbound = (
    Claim
    | LimitsMeasured
    | CatchingUp
    | Hello
    | Report
    | Stopped
    | Gap
    | Started
    | Goodbye
    | Dead
    | Planned
    | Proposed
    | Accepted
    | Withdrawn
    | Held
)
"""Records of metadata partition 0."""

_RETIRED = {
    "hello/1": (
        "hello/1 is of a consumer of an older version: it waits for commands in GROUP.metadata, "
        "and controllers write them to GROUP.commands. If it still runs, end it, and start one of "
        "this version"
    ),
    **dict.fromkeys(
        (
            *("approved/1", "cordon/1", "freeze/1", "pin/1", "savings/1", "scale/1"),
            "table-order/1",
        ),
        "orders and approvals are followed in GROUP.group-orders alone, where the first controller "
        "of this version has put what was given before. Whoever wrote this one later has an older "
        "version, or no right to give orders",
    ),
}
"""Kinds that older versions had in a topic that is read, and what a person has to do about them."""

decode_inbound: Decode[Inbound] = decoder(Inbound, retired=_RETIRED)
