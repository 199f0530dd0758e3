"""The messages of a group's topics, and the union of all messages; `wire` encodes and decodes them.

`docs/design/protocol.md` describes which process sends each one, and when;
`docs/reference/messages.md` is generated from the docstrings and the comments behind the fields.
Every message has a versioned `kind`: increase the version when a field changes its meaning. Readers
skip unknown kinds.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, Protocol

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
from binwright.protocol.group_orders import FormerOrders, GroupOrder, Held
from binwright.protocol.group_plans import GroupPlan
from binwright.protocol.measurements import Measurement, Needs
from binwright.protocol.model import Slot, TopicPartition
from binwright.protocol.names import FileName, TopicName
from binwright.protocol.savings import Savings
from binwright.protocol.splits import SplitReading, StagedShare
from binwright.protocol.table_orders import TableOrder

# --- a controller, in metadata partition 0 --------------------------------------------------------


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


# --- plans, in metadata partition 0 ---------------------------------------------------------------


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


# --- people, in the orders topic ------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Approved:
    """A person approves exactly this plan."""

    plan: Offset  # its number
    by: str  # a name for people; it proves nothing
    kind: Literal["approved/1"] = "approved/1"


OrderRecord = GroupOrder | Approved | TableOrder | Savings | FormerOrders
"""Records of the orders topic."""


# --- a consumer to the controllers, in metadata partition 0 ---------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Hello:
    """A consumer process has started; the record's offset is its epoch."""

    slot: SlotNumber
    process: str  # host/pid/random: unique to the process
    version: str  # of its software
    sent_ms: Number = 0  # wall clock of its machine, ms since 1970; 0: unknown
    kind: Literal["hello/2"] = "hello/2"


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
    skipped: Number = 0  # records that are in no table, as `tombstones = "skip"` wants
    commits: Number = 0  # made by this writer
    newest_ms: Number | None = None  # the highest timestamp of records that it has landed
    fault: str = ""  # why nothing lands at the moment; empty: it does

    def topics_of(self, name: str) -> tuple[str, ...]:
        """Return the topics whose records it takes; `name` is the table's."""
        return self.topics or (self.topic or name,)


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredCapacity:
    """What a consumer could read and stage, by its last minutes with work."""

    bytes_per_s: Rate  # as stored on the brokers
    spread: Amount  # half of what the middle half of its measurements differs, as a share
    used: Amount  # the highest share of its time that it used, 0 to 1
    seconds: Amount  # that it measured


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    """The reply to `StartReading` or `StartWriting`."""

    slot: SlotNumber
    epoch: Epoch
    revision: Revision
    offsets: Offsets  # where reading begins
    tables: tuple[TopicName, ...] = ()  # topics whose tables it writes now
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


# --- a controller to slot i, in partition i of the commands topic ---------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class StateQuery:
    """Asks for a `Report`: after it, the consumer takes no command of an older term."""

    term: Term  # the controller's that asks
    kind: Literal["state-query/1"] = "state-query/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class StopReading:
    """Stop fetching these, drop what is not staged, and reply at once."""

    term: Term
    revision: Revision
    epoch: Epoch  # of the process that it is for
    partitions: tuple[Partition, ...]  # not one of them is fetched after this
    kind: Literal["stop-reading/1"] = "stop-reading/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class StartReading:
    """Read these from these offsets on, also those that it reads already."""

    term: Term
    revision: Revision
    epoch: Epoch  # of the process that it is for
    offsets: KnownOffsets  # where to begin; null: at the committed offset, else by consumer.start
    kind: Literal["start-reading/1"] = "start-reading/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class StopWriting:
    """Stop being the writer of these tables once the commit in flight has ended."""

    term: Term
    revision: Revision
    epoch: Epoch  # of the process that it is for
    tables: tuple[TopicName, ...]  # by their topics
    kind: Literal["stop-writing/1"] = "stop-writing/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class StartWriting:
    """Become the writer of these tables: claim each, then land what is staged."""

    term: Term
    revision: Revision
    epoch: Epoch  # of the process that it is for
    tables: tuple[TopicName, ...]  # by their topics
    kind: Literal["start-writing/1"] = "start-writing/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Leave:
    """This process was declared dead, or a newer one has its slot: exit."""

    term: Term
    epoch: Epoch  # of the process that it is for
    kind: Literal["leave/1"] = "leave/1"


_ToReaders = StopReading | StartReading | SplitReading
Command = StateQuery | _ToReaders | StopWriting | StartWriting | Leave


# --- a consumer to a table's writer, in the landing topic -----------------------------------------


class OffsetRange(NamedTuple):
    """Offsets from `first` up to, not including, `next`."""

    first: Offset  # the first in the range
    next: Offset  # the first behind it


@dataclass(frozen=True, slots=True, kw_only=True)
class Staged:
    """A staged file is complete and durable. It holds every record of these ranges, once (†)."""

    topic: TopicName  # whose records are in it
    table: TopicName | None = None  # that takes them; null: the table of the topic's name
    topic_id: str | None  # Kafka's id of the topic; null: the brokers have none
    file: FileName  # its name in the table's staging directory
    rows: Number  # in the file
    bytes: Number  # of the file
    ranges: Mapping[Partition, OffsetRange]  # the offsets in it
    slot: SlotNumber
    epoch: Epoch
    age_s: Amount = 0.0  # since the oldest row was fetched, when this was sent
    cut: tuple[Partition, ...] = ()  # whose log was cut: the range begins at the end it had then
    kind: Literal["staged/1"] = "staged/1"

    @property
    def target(self) -> str:
        """Return the table that takes its rows."""
        return self.table or self.topic


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
StateRecord = Inbound | OrderRecord
"""What a group's state is made of, for its controllers and for views."""


Message = StateRecord | Command | Staged | Measurement | Needs | GroupPlan
"""Messages that several programs know."""


class AnyMessage(Protocol):
    """A frozen dataclass with a versioned kind: one of these, or a program's own."""

    @property
    def kind(self) -> str:
        """Return the message's name and version."""
