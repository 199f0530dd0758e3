"""What the services say to each other: one frozen dataclass per message (`wire` encodes them).

`docs/protocol.md` tells who says what when. Every message has a versioned `kind`; bump the version
when a field changes its meaning. Readers skip kinds they do not know.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Literal, NamedTuple

from pydantic import BeforeValidator, Field

from binwright.core.model import BytesPerSecond, Slot, TopicPartition


def _partition(value: object) -> TopicPartition:
    return TopicPartition.parse(value if isinstance(value, str) else "")


_Number = Annotated[int, Field(ge=0, le=2**63 - 1)]  # what Kafka and our JSON can hold
_Amount = Annotated[float, Field(ge=0, allow_inf_nan=False)]

Epoch = _Number
"""Which process of a slot: the offset of its `Hello` in metadata partition 0."""
Term = _Number
"""Which controller: the offset of its `Claim` in metadata partition 0."""
Offset = _Number
Revision = _Number
SlotNumber = Annotated[Slot, Field(ge=0, le=2**31 - 2)]  # its partition is one higher
Partition = Annotated[TopicPartition, BeforeValidator(_partition)]
Rate = Annotated[BytesPerSecond, Field(ge=0, allow_inf_nan=False)]


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
    process: str  # unique to the process, so that it knows its own
    version: str
    kind: Literal["hello/1"] = "hello/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """A consumer's state, every second and at once when asked."""

    slot: SlotNumber
    epoch: Epoch
    term: Term  # the highest seen
    ready: bool  # claims stand on every table
    held: Mapping[Partition, Offset]  # -> landed: the next offset to land
    opening: tuple[Partition, ...] = ()  # start obeyed, its offset is not known yet
    ahead: tuple[Partition, ...] = ()  # read, but not landed before the old owner's write has
    closing: tuple[Partition, ...] = ()  # stop obeyed, the last write is not settled yet
    rate: _Amount = 0.0  # bytes/s landed, values and keys as read
    landed_rows: _Number = 0  # by this epoch
    holes: _Number = 0  # offsets that retention took before we read them
    writing: bool = False
    leaving: bool = False  # asked to end: it reads on, and wishes its partitions moved away
    kind: Literal["report/2"] = "report/2"


@dataclass(frozen=True, slots=True, kw_only=True)
class Stopped:
    """The answer to `StopConsuming`, at once: what is in flight of `unsettled` is not known yet."""

    slot: SlotNumber
    epoch: Epoch
    revision: Revision
    next: Mapping[Partition, Offset | None]  # the next to read; None: not held
    quit_ms: _Number  # wall clock when fetching ended; measures the pause
    unsettled: tuple[Partition, ...] = ()  # rows before `next` are on their way; `Landed` follows
    kind: Literal["stopped/2"] = "stopped/2"


@dataclass(frozen=True, slots=True, kw_only=True)
class Landed:
    """The last write of these, which a `Stopped` left unsettled, is in the table."""

    slot: SlotNumber
    epoch: Epoch
    revision: Revision  # of the stop
    landed: Mapping[Partition, Offset]
    kind: Literal["landed/1"] = "landed/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fence:
    """What an heir raises: claim the dead slot's app id with the number of its `Dead` record."""

    slot: SlotNumber
    number: Offset


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    """The answer to `StartConsuming`: these partitions are read now; these fences stand."""

    slot: SlotNumber
    epoch: Epoch
    revision: Revision
    offsets: Mapping[Partition, Offset]  # where reading began
    fences: tuple[Fence, ...] = ()
    kind: Literal["started/1"] = "started/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Goodbye:
    """A graceful exit: nothing is in flight or unclear, and nothing follows."""

    slot: SlotNumber
    epoch: Epoch
    landed: Mapping[Partition, Offset]
    kind: Literal["goodbye/1"] = "goodbye/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Dead:
    """Voids every `Hello` of the slot before this record, whoever wrote it."""

    slot: SlotNumber
    term: Term
    kind: Literal["dead/1"] = "dead/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fenced:
    """A fence that a `Started` confirmed, for controllers to come."""

    slot: SlotNumber
    number: Offset
    topic: str
    kind: Literal["fenced/1"] = "fenced/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """For people: a plan that goes ahead, with its reasons. Nobody obeys it."""

    term: Term
    reasons: tuple[str, ...]
    consumers: _Number
    moves: Mapping[Partition, SlotNumber]  # -> the heir; first starts are not moves
    rscore: _Amount  # bytes/s moved, in units of capacity (eq. 11)
    rates: Mapping[Partition, Rate]
    targets: Mapping[Partition, SlotNumber]
    keeps: Offset | None = None  # the approved plan that it brings back; None: nobody was asked
    kind: Literal["planned/1"] = "planned/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposed:
    """A plan that is shown and not carried out; the record's offset is its number."""

    term: Term
    reasons: tuple[str, ...]
    consumers: _Number
    rscore: _Amount  # bytes/s moved, in units of capacity (eq. 11)
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
    | Landed
    | Started
    | Goodbye
    | Dead
    | Fenced
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
class StopConsuming:
    """Quit fetching, and answer, at once; say `Landed` when what is in flight is settled."""

    term: Term
    revision: Revision
    epoch: Epoch  # whom it addresses
    partitions: tuple[Partition, ...]
    kind: Literal["stop-consuming/1"] = "stop-consuming/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class StartConsuming:
    """Read these. An offset of None means: raise the fences, then resolve.

    `ahead`: land nothing of them before a second start, without it, says so.
    """

    term: Term
    revision: Revision
    epoch: Epoch  # whom it addresses
    offsets: Mapping[Partition, Offset | None]
    fences: tuple[Fence, ...] = ()
    ahead: bool = False
    kind: Literal["start-consuming/2"] = "start-consuming/2"

    def __post_init__(self) -> None:
        """Refuse an offset beside fences: whoever fences must resolve, or it reads too early."""
        if self.fences and any(offset is not None for offset in self.offsets.values()):
            raise ValueError("a start with fences must not carry offsets")
        if self.ahead and None in self.offsets.values():
            raise ValueError("who reads ahead must be told from where")


@dataclass(frozen=True, slots=True, kw_only=True)
class Leave:
    """This epoch is voided or superseded: exit."""

    term: Term
    epoch: Epoch
    kind: Literal["leave/1"] = "leave/1"


Command = StateQuery | StopConsuming | StartConsuming | Leave


# --- the metrics topic -------------------------------------------------------------------------


Quality = Literal["measured", "estimated", "warming", "stale"]
"""How far a rate can be trusted.

measured: from sizes. estimated: more than a tenth of it is records times bytes per record.
warming: over less than half the window, or not known yet. stale: this pass brought no sample.
"""


class PartitionRate(NamedTuple):
    """One partition in a `Measurement`; on the wire an array of these values, in this order."""

    partition: _Number
    rate: Rate | None  # bytes/s as stored; None: not known yet, or nobody leads it
    window_s: _Amount  # what the rate was measured over
    end: Offset
    start: Offset  # with tiered storage that of the whole log, remote part and all
    bytes_per_record: _Amount | None  # lately
    records_per_s: _Amount | None = None  # offsets used up: control records count
    size: _Number | None = None  # bytes kept, when last told; with tiered storage the local part
    quality: Quality = "measured"
    age_s: _Amount = 0.0  # of the sample that this rests on
    leader: _Number | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """One topic at one pass of a monitor, or some of its partitions: large topics come in parts."""

    topic: str
    at_ms: _Number  # wall clock
    monitor: str  # unique to the process: two may speak of one topic
    number: _Number  # of the pass; grows
    interval_s: _Amount  # when the next is to be expected
    count: _Number  # partitions the topic has, in all parts together; 0: it is gone
    partitions: tuple[PartitionRate, ...]
    kind: Literal["measurement/2"] = "measurement/2"

    def rates(self) -> dict[TopicPartition, BytesPerSecond]:
        """Return the partitions whose rate is known."""
        return {
            TopicPartition(self.topic, p.partition): p.rate
            for p in self.partitions
            if p.rate is not None
        }


Message = Inbound | Command | Measurement
