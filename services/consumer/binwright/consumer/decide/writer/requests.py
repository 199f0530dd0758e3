"""The requests that a table's writer makes, their outcomes, and its other effects."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from binwright.protocol.ports.lake import Batch, Commit, Table


@dataclass(frozen=True, slots=True, kw_only=True)
class WriterConfig:
    """A writer's identity and settings; times in seconds."""

    table: Table
    writer: str  # unique to this grant of the role
    term: int = 0  # of the controller that granted it
    from_latest: bool = False  # partitions begin at their end, if the group is new to the table
    freshness_s: float = 5.0  # how old rows may be when they land
    batch_bytes: int = 256_000_000  # of staged files in one commit
    gap_s: float = 5.0  # that a range waits for the offsets before it
    check_s: float = 15.0  # from one comparison with Kafka's end offsets to the next
    refused_s: float = 10.0  # from a refusal to the next try
    full_stamp_every: int = 32  # commits
    idle_stamp_s: float = 43_200.0  # an idle table gets a new stamp, before its log is cleaned up
    max_history: int = 1 << 16  # commits that are read at most


# --- requests ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ReadHistory:
    """Read the newest commits. Outcome: `HistoryRead`."""

    limit: int


@dataclass(frozen=True, slots=True)
class Claim:
    """Commit no rows under this version.

    Outcomes: `Committed`, `Skipped`, `Conflict` or `Unclear`.
    """

    app: str
    version: int
    stamp: str


@dataclass(frozen=True, slots=True)
class Fence:
    """Claim under the app id of a consumer of version 0.1, so that it can no longer commit."""

    app: str
    version: int


@dataclass(frozen=True, slots=True)
class QueryKafka:
    """Ask Kafka for the topic's state. Outcome: `TopicState`."""


@dataclass(frozen=True, slots=True)
class ReadLandedOffsets:
    """Read the highest offsets from the rows, and the group's offsets; slow.

    Outcome: `LandedOffsets`.
    """


@dataclass(frozen=True, slots=True)
class Append:
    """Commit a batch. Outcomes: as of `Claim`, and `Unreadable` or `Refused`."""

    batch: Batch
    app: str
    version: int
    stamp: str


Request = ReadHistory | Claim | Fence | QueryKafka | ReadLandedOffsets | Append


# --- outcomes ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class HistoryRead:
    """The newest commits, newest first; `complete` if the table has no older ones."""

    commits: Collection[Commit]
    complete: bool


@dataclass(frozen=True, slots=True)
class TopicState:
    """The topic and the landing topic, by Kafka's metadata."""

    topic_id: str | None
    bounds: Mapping[int, tuple[int, int]]  # partition -> (first retained offset, end offset)
    landing_id: str | None
    landing_end: int | None = None  # of the table's partition of it; None: unknown


@dataclass(frozen=True, slots=True)
class LandedOffsets:
    """The highest landed offset of each partition, and the group's committed offsets."""

    highest_offsets: Mapping[int, int]
    group: Mapping[int, int]


@dataclass(frozen=True, slots=True)
class Committed:
    """The commit is in the table."""


@dataclass(frozen=True, slots=True)
class Skipped:
    """The table already had this or a higher version of the app id; proves nothing by itself."""


@dataclass(frozen=True, slots=True)
class Conflict:
    """Another commit of this app id came first; proves nothing."""

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
class Refused:
    """The table rejects the batch; this call committed nothing."""

    reason: str = ""


Outcome = (
    HistoryRead
    | TopicState
    | LandedOffsets
    | Committed
    | Skipped
    | Conflict
    | Unclear
    | Unreadable
    | Refused
)


# --- effects -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ReadAnnouncements:
    """Read the landing topic from this record on."""

    offset: int


@dataclass(frozen=True, slots=True)
class DeleteFiles:
    """Delete staged files of which nothing is left to land."""

    files: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CommitOffsets:
    """Commit these offsets under the group's name: partition -> next offset to land."""

    committed: Mapping[int, int]


@dataclass(frozen=True, slots=True)
class RereadPartitions:
    """Have these partitions read again: partition -> offset to begin at."""

    committed: Mapping[int, int]


@dataclass(frozen=True, slots=True)
class Log:
    """Log an event."""

    event: str
    facts: Mapping[str, object] = field(default_factory=dict)
    fault: bool = False  # an operator should look at it


Effect = ReadAnnouncements | DeleteFiles | CommitOffsets | RereadPartitions | Log
