"""The states of a table's writer, its requests with their outcomes, and its other effects."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from enum import Enum

from binwright.consumer.decide.land.chain import Chain
from binwright.consumer.decide.land.commits import Resolved
from binwright.protocol.landing import OffsetRange, Staged
from binwright.protocol.log_events import Log
from binwright.protocol.model import TopicPartition
from binwright.protocol.names import lease_name
from binwright.tables.columns import Columns
from binwright.tables.conditions import Condition
from binwright.tables.operations import Counts, Cursor, Operation, Places
from binwright.tables.ports import (
    BadQuery,
    Batch,
    ColumnsThere,
    Commit,
    ErasedCounts,
    ErasedQuery,
    FileSlice,
    Footer,
    NotInPlace,
    PartitionOffsets,
    Table,
)
from binwright.tables.stamp import Stamp

FIRST_LOOK, LONGER = 128, 16
"""How many commits of the history are read at first; by how much that is multiplied each time."""
FIRST_GUESS_S = 1.0  # duration of a commit, before one was measured
FIRST_SPAN = 1_000  # offsets of the first range of a back-fill: how large records are is not known


@dataclass(frozen=True, slots=True, kw_only=True)
class WriterConfig:
    """A writer's identity and settings; times in seconds."""

    table: Table
    writer: str  # unique to this grant of the role: 32 hex digits
    from_latest: bool = False  # partitions begin at their end, if the group is new to the table
    freshness_s: float = 5.0  # how old rows may be when they land
    staging_s: float = 0.0  # from one time at which consumers stage to the next; 0: unknown
    batch_bytes: int = 256_000_000  # of staged files in one commit
    bad_share: float = 1.0  # of the newest records, above which nothing lands
    fixed: Columns | None = None
    """The columns of its settings, beside which it gets some for new fields; None: it gets none."""
    decoding: str = ""  # the settings by which values are decoded
    keying: str = ""  # how `decoding` ends, of a table of keys
    masking: str = ""  # those by which records are masked; "": files may have any mask
    in_place: bool = False  # files are committed as they are, where that can be
    small_file_bytes: int = 32_000_000  # a table's file below that is merged by compaction
    gap_s: float = 5.0  # that a range waits for the offsets before it
    check_s: float = 15.0  # from one comparison with Kafka's end offsets to the next
    refused_s: float = 10.0  # from a refusal to the next try
    full_stamp_every: int = 32  # commits
    idle_stamp_s: float = 43_200.0  # an idle table gets a new stamp, before its log is cleaned up
    max_history: int = 1 << 16  # commits that are read at most
    retention_s: float = 0.0  # for which a vacuum leaves the files of older versions
    from_earliest: bool = False  # a new table is back-filled at once
    made_ms: int = 0  # when this was made, wall clock, ms since 1970


# --- requests ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class WriteLease:
    """Write the claim's lease beside the staged files. Outcomes: `Done`, `Unclear`."""

    lease: str


@dataclass(frozen=True, slots=True)
class DeleteOtherLeases:
    """Delete all leases of the table but this one. Outcomes: `Done`, `Unclear`."""

    lease: str


@dataclass(frozen=True, slots=True)
class ClaimTable:
    """Commit the writer's id to the table's metadata. Outcomes: as of `Append`."""

    writer: str
    stamp: str


@dataclass(frozen=True, slots=True)
class ReadHistory:
    """Read the newest commits. Outcome: `HistoryRead`."""

    limit: int


@dataclass(frozen=True, slots=True)
class QueryKafka:
    """Ask Kafka for the state of topics. Outcome: `KafkaState`."""

    topics: frozenset[str]
    begins_of: frozenset[str]  # those whose committed offsets are asked for, too


@dataclass(frozen=True, slots=True)
class ReadLandedOffsets:
    """Read the highest offsets from the rows, and the group's offsets; slow.

    Outcome: `LandedOffsets`.
    """


@dataclass(frozen=True, slots=True)
class Append:
    """Commit a batch; one without files commits its stamp alone.

    Outcomes: `Committed`, `Conflict`, `Refused`, `Unclear`, `Unreadable` or `LeaseGone`.
    """

    batch: Batch
    lease: str
    number: int  # of the commit under this lease
    stamp: str
    late: bool = False  # its oldest row is older than wanted


@dataclass(frozen=True, slots=True)
class CheckLease:
    """Look whether a lease is still there. Outcomes: `Done`, `LeaseGone`, `Unclear`."""

    lease: str


@dataclass(frozen=True, slots=True)
class ReadFooters:
    """Read what staged files say of themselves. Outcomes: `FootersRead`, `Unclear`."""

    files: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ReadColumns:
    """Read the table's columns, and which of them have a comment.

    Outcomes: `ColumnsRead`, `Refused`, `Unclear`.
    """

    comment: str


@dataclass(frozen=True, slots=True)
class AddColumns:
    """Give the table those of these columns that it has not.

    Outcomes: `Done`, `Refused`, `Conflict`, `Unclear`.
    """

    columns: Columns
    comment: str = ""


@dataclass(frozen=True, slots=True)
class PublishColumns:
    """Publish which columns the table got for new fields. Outcomes: `Done`, `Unclear`."""

    columns: Columns


@dataclass(frozen=True, slots=True)
class FindBadOffsets:
    """Find the highest offsets of bad records from these offsets on.

    Outcomes: `BadOffsetsFound`, `Refused`, `Unclear`.
    """

    since: PartitionOffsets


@dataclass(frozen=True, slots=True)
class FindLowestBad:
    """Find the lowest offsets of bad records. Outcomes: `LowestBadFound`, `Refused`, `Unclear`."""


@dataclass(frozen=True, slots=True)
class AppendBad:
    """Commit a batch's bad records to their own table.

    Outcomes: `Committed`, `Unreadable` with the files that are suspected, `Conflict`, `Refused` or
    `Unclear`.
    """

    batch: Batch
    lease: str
    stamp: str


@dataclass(frozen=True, slots=True)
class AddFiles:
    """Commit a batch's files as they are. Outcomes: as of `AppendBad`, or `NotInPlace`."""

    batch: Batch
    lease: str
    stamp: str


@dataclass(frozen=True, slots=True)
class AppendRows:
    """Commit a batch's rows, without bad records. Outcomes: as of `AppendBad`."""

    batch: Batch
    lease: str
    stamp: str


@dataclass(frozen=True, slots=True)
class NoteDeleted:
    """Note the keys of what a batch deletes. Outcomes: as of `AppendBad`."""

    batch: Batch
    lease: str
    stamp: str


@dataclass(frozen=True, slots=True)
class MergeRows:
    """Commit what a batch changes of the rows of its keys. Outcomes: as of `AppendBad`."""

    batch: Batch
    lease: str
    number: int  # of the commit under this lease
    stamp: str


@dataclass(frozen=True, slots=True)
class CommitStamp:
    """Commit a stamp alone. Outcomes: as of `AppendBad`."""

    lease: str
    number: int  # of the commit under this lease
    stamp: str


@dataclass(frozen=True, slots=True)
class FindReadable:
    """Find which of these staged files can be read. Outcomes: `FilesFound`, `Unclear`."""

    files: frozenset[str]


@dataclass(frozen=True, slots=True)
class StagePortion:
    """Decode bad records again, and stage the rows of those that decode.

    Outcomes: `PortionStaged`, `Refused`, `Unclear`.
    """

    query: BadQuery
    dry_run: bool  # nothing is staged


@dataclass(frozen=True, slots=True)
class ChangeBad:
    """Remove a portion's records from the bad ones, but for those that are bad still.

    Outcomes: `Done`, `Conflict`, `Refused`, `Unclear`: it may be repeated.
    """

    note: str  # for people, in the commit


@dataclass(frozen=True, slots=True)
class SettleBad:
    """Remove the bad records at these offsets of which the table has the rows.

    Outcomes: as of `ChangeBad`.
    """

    places: Places
    note: str  # as of `ChangeBad`


@dataclass(frozen=True, slots=True)
class NoteErased:
    """Note the places of what is to be erased, or count them.

    Outcomes: `ErasedNoted`, `Refused`, `Conflict`, `Unclear`.
    """

    query: ErasedQuery
    note: str  # as of `ChangeBad`
    dry_run: bool  # nothing is noted


@dataclass(frozen=True, slots=True)
class EraseNoted:
    """Delete the rows, and the bad records, whose places an operation has noted.

    Outcomes: `RowsErased`, `Conflict`, `Refused`, `Unclear`: it may be repeated.
    """

    operation: str  # its id
    note: str  # as of `ChangeBad`


@dataclass(frozen=True, slots=True)
class FindEarlier:
    """Find what Kafka has of before the table's beginning, and where that is.

    Outcomes: `EarlierFound`, `Refused`, `Unclear`.
    """

    topics: frozenset[str]
    scan: bool  # whether the table is asked: it is once Kafka describes what is meant
    since_ms: int  # find the first records of then or later, too; 0: that is not asked
    keep_s: float  # as if `since_ms` were so long ago at least; 0: it need not be


@dataclass(frozen=True, slots=True)
class StageEarlier:
    """Read a range of offsets from Kafka, and stage its rows.

    Outcomes: `EarlierStaged`, `ReaderBusy`, `TooLarge`, `TopicGone`, `Refused`,
    `Unclear`.
    """

    partition: TopicPartition
    range: OffsetRange
    most_bytes: int | None  # of records in memory; None: however many


OperationRequest = (
    StagePortion | ChangeBad | SettleBad | NoteErased | EraseNoted | FindEarlier | StageEarlier
)
"""The steps of an operation, beside the append of what is staged."""
CHANGES = (ChangeBad, SettleBad, NoteErased, EraseNoted)
"""Those of them that may change a table."""

AppendRequest = (
    CheckLease
    | ReadFooters
    | ReadColumns
    | AddColumns
    | PublishColumns
    | QueryKafka
    | FindBadOffsets
    | FindLowestBad
    | AppendBad
    | AddFiles
    | AppendRows
    | NoteDeleted
    | MergeRows
    | CommitStamp
    | FindReadable
)
"""The parts of an `Append`: see `append`."""

Request = (
    WriteLease
    | DeleteOtherLeases
    | ClaimTable
    | ReadHistory
    | QueryKafka
    | ReadLandedOffsets
    | Append
    | OperationRequest
)


# --- outcomes ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Done:
    """The lease is written, or the others are deleted."""


@dataclass(frozen=True, slots=True)
class HistoryRead:
    """The newest commits, newest first; `complete` if the table has no older ones."""

    commits: Collection[Commit]
    complete: bool


@dataclass(frozen=True, slots=True)
class KafkaState:
    """The table's topics and the landing topic, by Kafka's metadata."""

    topic_ids: Mapping[str, str | None]  # of the topics that are known to exist
    bounds: Mapping[TopicPartition, tuple[int, int]]  # first retained offset, end offset
    landing_id: str | None
    landing_end: int | None = None  # of the table's partition of it; None: unknown
    leaderless: frozenset[TopicPartition] = frozenset()  # whose bounds are unknown
    unknown: frozenset[str] = frozenset()  # topics of which nothing is known for now
    readable: PartitionOffsets = field(default_factory=dict)
    """Up to where there is something to read, if that is not the end: an open transaction."""
    group: PartitionOffsets = field(default_factory=dict)
    """The group's committed offsets, of `QueryKafka.begins_of`."""


@dataclass(frozen=True, slots=True)
class LandedOffsets:
    """The highest landed offset of each partition, and the group's committed offsets."""

    highest_offsets: PartitionOffsets
    group: PartitionOffsets


@dataclass(frozen=True, slots=True)
class Committed:
    """The commit is in the table."""

    bad: int = 0  # of its rows: bad records, which are in their own table
    skipped: int = 0  # records that are in no table, as the settings want
    newest_ms: int | None = None  # the highest timestamp of its records; None: not known


@dataclass(frozen=True, slots=True)
class Conflict:
    """The commit is not in the table, because another one came first; it may be sent again."""

    reason: str = ""


@dataclass(frozen=True, slots=True)
class Unclear:
    """The result is unknown."""

    reason: str = ""


@dataclass(frozen=True, slots=True)
class Unreadable:
    """Staged files are missing or truncated; this call committed nothing."""

    files: frozenset[str]
    reason: str = ""


@dataclass(frozen=True, slots=True)
class LeaseGone:
    """Another writer deleted the lease; this call committed nothing."""


@dataclass(frozen=True, slots=True)
class Refused:
    """The table rejects the batch; this call committed nothing."""

    reason: str = ""


@dataclass(frozen=True, slots=True)
class FootersRead:
    """The footers of the files that can be read."""

    footers: Mapping[str, Footer]
    at_ms: int  # when they were read, by the wall clock


@dataclass(frozen=True, slots=True)
class ColumnsRead:
    """The table's columns."""

    there: ColumnsThere


@dataclass(frozen=True, slots=True)
class BadOffsetsFound:
    """The highest offsets of bad records: topic id -> partition -> offset."""

    highest: Mapping[str | None, PartitionOffsets]


@dataclass(frozen=True, slots=True)
class LowestBadFound:
    """The lowest offsets of bad records, whichever topic of the name they are of."""

    offsets: PartitionOffsets


@dataclass(frozen=True, slots=True)
class FilesFound:
    """The files that can be read."""

    files: Collection[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Portion:
    """Some bad records, decoded again."""

    after: Cursor | None = None  # the last of them; None: there are no more records
    file: str = ""  # with the rows of those that decode; empty: it is not written
    bytes: int = 0  # of the file
    rows: int = 0  # in the file
    places: Places = field(default_factory=dict)  # of these rows
    moved: Counts = field(default_factory=dict)  # that decode, by the class that they had
    left: Counts = field(default_factory=dict)  # that do not, likewise
    skipped: int = 0  # that are in no table, as the settings want
    masked: int = 0  # bad records that have no value; counted once


@dataclass(frozen=True, slots=True)
class PortionStaged:
    """A portion is decoded; what became of each of its records is kept until the next one."""

    portion: Portion


@dataclass(frozen=True, slots=True)
class EarlierFound:
    """Where the table begins, by its rows, and what Kafka has."""

    lowest: PartitionOffsets | None
    """Of rows, also of those that were erased; None: the table was not asked. Bad records may have
    landed without their batch (†)."""
    kafka: KafkaState
    since: PartitionOffsets | None = None
    """The first records of the time that was asked for, where there are some; None: none was."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EarlierPortion:
    """Records of one partition that end where the table begins."""

    partition: TopicPartition
    first: int  # the table begins here once they are in it
    slices: tuple[FileSlice, ...] = ()  # without files that have no rows
    rows: int = 0  # in the files, without bad records
    bad: int = 0
    skipped: int = 0
    bytes: int = 0  # of records in memory


@dataclass(frozen=True, slots=True)
class EarlierStaged:
    """A portion is staged, of the topic that Kafka has afterwards; where its log begins and ends.

    Of what the log had no more before it was read, nothing is in it.
    """

    portion: EarlierPortion
    kafka: KafkaState


@dataclass(frozen=True, slots=True)
class TopicGone:
    """There is no such topic: Kafka has nothing of it."""


@dataclass(frozen=True, slots=True)
class ReaderBusy:
    """The process reads a range for another table: nothing is done."""


@dataclass(frozen=True, slots=True)
class TooLarge:
    """The range has more bytes than may be read: nothing is staged."""


@dataclass(frozen=True, slots=True)
class ErasedNoted:
    """The places are noted: of so many rows and bad records; the time as of `RowsErased`."""

    counts: ErasedCounts
    at_ms: int


@dataclass(frozen=True, slots=True)
class RowsErased:
    """The newest version has none of the rows; the time is the wall clock's, ms since 1970."""

    at_ms: int


Outcome = (
    Done
    | HistoryRead
    | KafkaState
    | LandedOffsets
    | Committed
    | Conflict
    | Unclear
    | Unreadable
    | LeaseGone
    | Refused
    | FootersRead
    | ColumnsRead
    | BadOffsetsFound
    | LowestBadFound
    | FilesFound
    | NotInPlace
    | PortionStaged
    | EarlierFound
    | EarlierStaged
    | TooLarge
    | TopicGone
    | ReaderBusy
    | ErasedNoted
    | RowsErased
)


# --- effects -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ReadAnnouncements:
    """Read the landing topic from this record on."""

    offset: int


@dataclass(frozen=True, slots=True)
class DeleteFiles:
    """Delete staged files of which nothing is left to land.

    Of `unproven` ones nothing has landed here: such a file goes only if its footer agrees (†).
    """

    files: tuple[str, ...]
    unproven: tuple[Staged, ...] = ()


@dataclass(frozen=True, slots=True)
class CommitOffsets:
    """Commit these offsets under the group's name: partition -> next offset to land."""

    committed: PartitionOffsets


@dataclass(frozen=True, slots=True)
class RereadPartitions:
    """Have these partitions read again: partition -> offset to begin at."""

    committed: PartitionOffsets


def by_name(offsets: PartitionOffsets) -> Mapping[str, int]:
    """Return offsets by the names of their partitions, for logs."""
    return {str(p): offset for p, offset in sorted(offsets.items())}


Effect = ReadAnnouncements | DeleteFiles | CommitOffsets | RereadPartitions | Log


# --- states ------------------------------------------------------------------------------------


class ClaimStep(Enum):
    """The steps of a claim, in their order (†)."""

    WRITE_LEASE = "write the lease"
    DELETE_OTHERS = "delete the other leases"
    COMMIT = "commit the metadata"


@dataclass(frozen=True, slots=True)
class Claiming:
    """Claims the table: each step is repeated until it is done."""

    step: ClaimStep = ClaimStep.WRITE_LEASE


@dataclass(frozen=True, slots=True)
class Resolving:
    """The claim is committed. What is in the table is read only now (†)."""

    kafka: KafkaState | None = None
    limit: int = FIRST_LOOK
    resolved: Resolved | None = None  # from the history, if it does not reach back far enough


@dataclass(frozen=True, slots=True)
class InFlightCommit:
    """A commit that was sent and whose result is not known yet."""

    batch: Batch
    after: Chain
    stamp: Stamp
    sent_at: float  # s, monotonic


@dataclass(frozen=True, slots=True)
class Erasure:
    """What is to be erased, by the order: no stamp has it, since it may name a person."""

    where: Condition | None  # rows; None: none
    bad_where: Condition | None  # bad records; None: none
    begun: PartitionOffsets | None = None
    """Where the logs ended since it was ordered; None: not known yet."""
    announced: int = 0
    """The announcement before which is what was announced by then."""
    noted: ErasedCounts | None = None


@dataclass(frozen=True, slots=True)
class Landing:
    """A writer's state while it lands batches; times in seconds, monotonic."""

    chain: Chain
    writer: str  # in its stamps
    lease: str  # of the claim
    landing_id: str | None = None
    sequence: int = 0
    flight: InFlightCommit | None = None
    stamp_due: bool = False  # the chain has a decision that no stamp holds yet
    since_full: int = 0  # commits since the last full stamp; 0: none under this claim
    begin_at_end: frozenset[TopicPartition] = frozenset()
    """Partitions without bounds, where `latest` counts."""
    doubted: Mapping[TopicPartition, int] = field(default_factory=dict)
    """Partition that has landed beyond the end of its log, by the stamp of this version: nothing
    lands or is deleted until an announcement says that its log was cut (†)."""
    doubted_from: int = 0  # the announcement from which all are read again then
    undecided: PartitionOffsets = field(default_factory=dict)
    """Partition -> its first record, of those that begin there or with what is announced of them,
    which is not read yet."""
    undecided_until: int = 0
    """The announcement before which there may be some of them, or of cuts before the claim."""
    begins: PartitionOffsets = field(default_factory=dict)  # of those, as decided under this claim
    ends: PartitionOffsets = field(default_factory=dict)  # of the logs, when last asked
    reread_requests: Mapping[TopicPartition, tuple[int, float]] = field(default_factory=dict)
    """Partition -> (offset, when it was requested)."""
    behind: PartitionOffsets = field(default_factory=dict)
    """Partition -> committed offset, where that is below Kafka's end offset."""
    landing_end: int | None = None  # of the table's partition of it, when Kafka was last asked
    commit_s: float = FIRST_GUESS_S  # mean duration of a commit
    commit_spread_s: float = 0.0  # mean difference from it
    checked_at: float = 0.0  # when Kafka was last asked
    asking_from: int = 0  # the chain's `next_announcement` when Kafka was last asked
    asked_from: int = 0  # the same, when Kafka was asked last that has answered (†)
    full_at: float = 0.0  # when the last full stamp was committed, or the claim resolved
    looked_at: float = float("-inf")  # when no range joined
    joins: bool = True  # a pending range joined, when last looked
    retry_at: float = 0.0
    paused: str = ""  # who paused the table, when and why; empty: it lands
    operation: Operation | None = None  # the last that a person ordered, and how far it is
    portion: Portion | EarlierPortion | None = None
    """That is staged, and not in the table, or among bad records yet."""
    span: int = FIRST_SPAN  # offsets of a range that is back-filled
    turn: TopicPartition | None = None  # of which a range was back-filled last
    described: bool = False  # whether Kafka has described what is to be back-filled
    failing: Mapping[TopicPartition, tuple[str, float]] = field(default_factory=dict)
    """Partition -> (why it is not back-filled, when that is tried again)."""
    erasure: Erasure | None = None  # of the operation; None: its order is not read yet
    asked: OperationRequest | None = None  # the step of the operation under way
    asked_at: float = 0.0
    step_s: float = FIRST_GUESS_S  # mean duration of a step
    step_at: float = 0.0  # when the next one may begin
    resolved_at: float = 0.0  # after which other writers commit nothing more
    fault: str = ""  # why the table refuses batches; empty: it does not
    late: bool = False  # commits take longer than `freshness_s`
    rows: int = 0  # landed under this claim
    bad: int = 0  # of them: bad records
    skipped: int = 0  # records that are in no table, under this claim
    newest_ms: int | None = None  # the highest timestamp of records that landed under this claim
    commits: int = 0  # under this claim

    def has_room(self, most: int) -> bool:
        """Whether more announcements are read, where `most` pending ranges are many.

        What does not join may wait for a later announcement (†). A paused table reads no further:
        a long pause takes no memory.
        """
        return not self.paused and (len(self.chain.pending) < most or not self.joins)


@dataclass(frozen=True, slots=True)
class Contradicted:
    """What has landed is not of these topics, or known to a later version: a person must decide."""

    reason: str


@dataclass(frozen=True, slots=True)
class Lost:
    """Another writer has claimed the table: this writer has ended."""

    reason: str


Phase = Claiming | Resolving | Landing | Contradicted | Lost


@dataclass(frozen=True, slots=True)
class Writer:
    """A table's writer, from the grant of the role until it loses it or stops."""

    config: WriterConfig
    phase: Phase = Claiming()
    claim: int = 1  # the number of its claim: each has a lease of its own
    last: Landing | None = None  # before it claimed anew, for reports

    @property
    def lease(self) -> str:
        """Return the name of the claim's lease."""
        return lease_name(self.config.writer, self.claim)

    @property
    def name(self) -> str:
        """Return the writer's id in stamps and metadata, unique to the claim."""
        return f"{self.config.writer}-{self.claim}"

    @property
    def chain(self) -> Chain | None:
        """Return what is committed and pending; None before the writer has resolved it."""
        return self.phase.chain if isinstance(self.phase, Landing) else None
