"""What the services say to each other: one frozen dataclass per message (`wire` encodes them).

`docs/protocol.md` tells who says what when. Every message has a versioned `kind`; bump the version
when a field changes its meaning. Readers skip kinds they do not know.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

from binwright.core.fields import (
    Amount,
    Epoch,
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
from binwright.core.model import BytesPerSecond, Slot, TopicPartition

# --- to partition 0: what controllers read -----------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A controller begins its reign; the record's offset is its term."""

    controller: str  # unique to the process and this claim, so that it knows its own
    kind: Literal["claim/1"] = "claim/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Hello:
    """A consumer process is there; the record's offset is its epoch."""

    slot: SlotNumber
    process: str  # host/pid/random: unique to the process
    version: str
    sent_ms: Number = 0  # wall clock of its machine; 0: not told
    kind: Literal["hello/1"] = "hello/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class TableReport:
    """One table as its writer sees it, in the `Report` of the writer's consumer."""

    state: Literal["claiming", "landing", "refused"]
    committed: Offsets  # the next offset to land
    age_s: Amount = 0.0  # of the oldest staged row that has not landed
    pending_bytes: Number = 0  # staged, announced, not landed
    rows: Number = 0  # landed by this writer
    commits: Number = 0  # made by this writer
    fault: str = ""  # why the table takes nothing at the moment


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """A consumer's state, every second and at once when asked."""

    slot: SlotNumber
    epoch: Epoch
    term: Term  # the highest seen
    ready: bool  # its staging place can be written
    reading: KnownOffsets  # -> next to stage; None: it looks where to begin
    writing: Mapping[str, TableReport]  # topics whose table it writes
    rate: Amount = 0.0  # bytes/s staged, values and keys as read
    busy: Amount = 0.0  # share of the time in which fetching waited for staging, 0 to 1
    staged_rows: Number = 0  # by this epoch
    staged_bytes: Number = 0  # in files of this epoch that have not landed
    lost_offsets: Number = 0  # that retention took before they were read
    leaving: bool = False  # asked to end: it works on until its partitions and tables have moved
    kind: Literal["report/3"] = "report/3"


@dataclass(frozen=True, slots=True, kw_only=True)
class Stopped:
    """The answer to `StopReading` (at once) or `StopWriting` (its commit in flight has ended)."""

    slot: SlotNumber
    epoch: Epoch
    revision: Revision
    next: KnownOffsets  # the next to stage; None: not read here
    tables: tuple[str, ...] = ()  # topics whose table it writes no more
    quit_ms: Number = 0  # wall clock when fetching ended; measures the pause
    kind: Literal["stopped/3"] = "stopped/3"


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    """The answer to `StartReading` or `StartWriting`."""

    slot: SlotNumber
    epoch: Epoch
    revision: Revision
    offsets: Offsets  # where reading began
    tables: tuple[str, ...] = ()  # topics whose table it writes now
    kind: Literal["started/2"] = "started/2"


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """A table's writer misses what comes next of these partitions: read them again from there."""

    slot: SlotNumber  # the writer's
    epoch: Epoch
    committed: Offsets  # -> the next offset to land
    kind: Literal["gap/1"] = "gap/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Goodbye:
    """A graceful exit: everything read is staged and announced, and nothing follows."""

    slot: SlotNumber
    epoch: Epoch
    next: Offsets  # the next to stage, of what it still read
    kind: Literal["goodbye/2"] = "goodbye/2"


@dataclass(frozen=True, slots=True, kw_only=True)
class Dead:
    """Voids one `Hello`, whoever wrote this."""

    slot: SlotNumber
    epoch: Epoch  # which process is meant
    term: Term
    kind: Literal["dead/2"] = "dead/2"


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """For people: a plan that goes ahead, with its reasons. Nobody obeys it."""

    term: Term
    reasons: tuple[str, ...]
    consumers: Number
    moves: Mapping[Partition, SlotNumber]  # -> the heir; first starts are not moves
    rscore: Amount  # bytes/s moved, in units of capacity (eq. 11)
    rates: Mapping[Partition, Rate]
    targets: Mapping[Partition, SlotNumber]
    keeps: Offset | None = None  # the approved plan that it brings back; None: nobody was asked
    kind: Literal["planned/1"] = "planned/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposed:
    """A plan that is shown and not carried out; the record's offset is its number."""

    term: Term
    reasons: tuple[str, ...]
    consumers: Number
    rscore: Amount  # bytes/s moved, in units of capacity (eq. 11)
    owners: Mapping[Partition, SlotNumber]  # who read what when it was made
    targets: Mapping[Partition, SlotNumber]
    waits: bool  # for an approval; else it is only shown
    kind: Literal["proposed/1"] = "proposed/1"

    @property
    def moves(self) -> dict[TopicPartition, tuple[Slot, Slot]]:
        """Return what would change hands -> from, to; first starts are not moves."""
        return {
            p: (self.owners[p], heir)
            for p, heir in self.targets.items()
            if self.owners.get(p, heir) != heir
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Approved:
    """A person wants exactly this plan; said by whoever may write here."""

    plan: Offset
    by: str  # for people
    kind: Literal["approved/1"] = "approved/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepted:
    """An approved plan goes ahead, and is kept true until another is accepted."""

    term: Term
    plan: Offset
    targets: Mapping[Partition, SlotNumber]
    kind: Literal["accepted/1"] = "accepted/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Withdrawn:
    """A proposed plan is out of date."""

    term: Term
    plan: Offset
    reason: str
    kind: Literal["withdrawn/1"] = "withdrawn/1"


Inbound = (
    Claim
    | Hello
    | Report
    | Stopped
    | Gap
    | Started
    | Goodbye
    | Dead
    | Planned
    | Proposed
    | Approved
    | Accepted
    | Withdrawn
)  # what stands in metadata partition 0


# --- to partition i + 1: what consumer i obeys -------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class StateQuery:
    """The barrier of a take-over: once answered, no older term commands this consumer."""

    term: Term
    kind: Literal["state-query/1"] = "state-query/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class StopReading:
    """Stop fetching these, drop what is not staged, and answer at once."""

    term: Term
    revision: Revision
    epoch: Epoch  # whom it addresses
    partitions: tuple[Partition, ...]
    kind: Literal["stop-reading/1"] = "stop-reading/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class StartReading:
    """Read these from here on, also what is read already from elsewhere.

    An offset of None means: from the group's committed offset, else by the start rule.
    """

    term: Term
    revision: Revision
    epoch: Epoch  # whom it addresses
    offsets: KnownOffsets
    kind: Literal["start-reading/1"] = "start-reading/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class StopWriting:
    """Give up writing these tables once the commit in flight has ended."""

    term: Term
    revision: Revision
    epoch: Epoch  # whom it addresses
    tables: tuple[str, ...]  # by their topics
    kind: Literal["stop-writing/1"] = "stop-writing/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class StartWriting:
    """Be the writer of these tables: claim, then land what is staged."""

    term: Term
    revision: Revision
    epoch: Epoch  # whom it addresses
    tables: tuple[str, ...]  # by their topics
    kind: Literal["start-writing/1"] = "start-writing/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Leave:
    """This epoch is voided or superseded: exit."""

    term: Term
    epoch: Epoch
    kind: Literal["leave/1"] = "leave/1"


Command = StateQuery | StopReading | StartReading | StopWriting | StartWriting | Leave


# --- the landing topic: consumers to tables' writers --------------------------------------------


class OffsetRange(NamedTuple):
    """Offsets from `first` up to, not including, `next`."""

    first: Offset
    next: Offset


@dataclass(frozen=True, slots=True, kw_only=True)
class Staged:
    """A staged file is complete and durable. It holds every record of these ranges, once (†)."""

    topic: str
    topic_id: str | None  # which topic of this name; None: the brokers do not tell
    file: str  # its name in the table's staging directory
    rows: Number
    bytes: Number
    ranges: Mapping[Partition, OffsetRange]
    slot: SlotNumber
    epoch: Epoch
    age_s: Amount = 0.0  # of the oldest row since it was fetched, when this was sent
    cut: tuple[Partition, ...] = ()  # whose log was cut: the range begins at what was its end
    kind: Literal["staged/1"] = "staged/1"


# --- the metrics topic -------------------------------------------------------------------------


Quality = Literal["measured", "estimated", "warming", "stale"]
"""How far a rate can be trusted.

measured: from sizes. estimated: more than a tenth of it is records times bytes per record.
warming: over less than half the window, or not known yet. stale: this pass brought no sample.
"""


class PartitionRate(NamedTuple):
    """One partition in a `Measurement`; on the wire an array of these values, in this order."""

    partition: Number
    rate: Rate | None  # bytes/s as stored; None: not known yet, or nobody leads it
    window_s: Amount  # what the rate was measured over
    end: Offset
    start: Offset  # with tiered storage that of the whole log, remote part and all
    bytes_per_record: Amount | None  # lately
    records_per_s: Amount | None = None  # offsets used up: control records count
    size: Number | None = None  # bytes kept, when last told; with tiered storage the local part
    quality: Quality = "measured"
    age_s: Amount = 0.0  # of the sample that this rests on
    leader: Number | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """One topic at one pass of a monitor, or some of its partitions: large topics come in parts."""

    topic: str
    at_ms: Number  # wall clock
    monitor: str  # unique to the process: two may speak of one topic
    number: Number  # of the pass; grows
    interval_s: Amount  # when the next is to be expected
    count: Number  # partitions the topic has, in all parts together; 0: it is gone
    partitions: tuple[PartitionRate, ...]
    kind: Literal["measurement/2"] = "measurement/2"

    def rates(self) -> dict[TopicPartition, BytesPerSecond]:
        """Return the partitions whose rate is known."""
        return {
            TopicPartition(self.topic, p.partition): p.rate
            for p in self.partitions
            if p.rate is not None
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Needs:
    """What a group wants measured. Its controller repeats it; the last one of a group counts."""

    group: str
    at_ms: Number  # wall clock
    topics: tuple[str, ...]
    patterns: tuple[str, ...]  # regular expressions for whole names
    kind: Literal["needs/1"] = "needs/1"


Message = Inbound | Command | Staged | Measurement | Needs
