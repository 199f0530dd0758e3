"""What a table's writer asks of the world, what it is answered, and what it causes beside."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from binwright.core.ports import Commit, Table
from binwright.core.writer.batch import Batch


@dataclass(frozen=True, slots=True, kw_only=True)
class WriterRules:
    """Whose writer it is, and what it goes by; times in seconds."""

    table: Table
    writer: str  # unique to this grant of the role
    term: int = 0  # of the controller that granted it
    from_latest: bool = False  # where partitions begin when the group first claims the table
    freshness_s: float = 5.0  # how old rows may be when they land
    batch_bytes: int = 256_000_000  # of staged files in one commit
    gap_s: float = 5.0  # so long a range waits for what is before it
    check_s: float = 15.0  # from one comparison with Kafka's end offsets to the next
    refused_s: float = 10.0  # until a table that refused is tried again
    full_stamp_every: int = 32  # commits
    idle_stamp_s: float = 43_200.0  # an idle table is stamped anew, before its log is cleaned
    most_history: int = 1 << 16  # commits


# --- requests ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ReadHistory:
    """Read the newest commits: `Told`."""

    limit: int


@dataclass(frozen=True, slots=True)
class Claim:
    """Append nothing under this version: `Committed`, `Skipped`, `Conflict` or `Unclear`."""

    app: str
    version: int
    stamp: str


@dataclass(frozen=True, slots=True)
class Fence:
    """The same for a consumer of version 0.1, which can commit nothing afterwards."""

    app: str
    version: int


@dataclass(frozen=True, slots=True)
class AskKafka:
    """Ask what there is of the topic: `Facts`."""


@dataclass(frozen=True, slots=True)
class ReadRows:
    """Ask the rows and the group's offsets what has landed: `Rows`. Slow."""


@dataclass(frozen=True, slots=True)
class Append:
    """Commit a batch: like `Claim`, and `Unreadable` or `Refused`."""

    batch: Batch
    app: str
    version: int
    stamp: str


Request = ReadHistory | Claim | Fence | AskKafka | ReadRows | Append


# --- outcomes ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Told:
    """The newest commits, newest first; `complete` when nothing older is left to ask for."""

    commits: Collection[Commit]
    complete: bool


@dataclass(frozen=True, slots=True)
class Facts:
    """What Kafka says of the topic, and of the landing topic."""

    topic_id: str | None
    bounds: Mapping[int, tuple[int, int]]  # partition -> first offset kept, end offset
    landing_id: str | None
    landing_end: int | None = None  # of the table's partition of it; None: not known


@dataclass(frozen=True, slots=True)
class Rows:
    """The highest landed offset of each partition, and the group's committed offsets."""

    newest: Mapping[int, int]
    group: Mapping[int, int]


@dataclass(frozen=True, slots=True)
class Committed:
    """It is in the table."""


@dataclass(frozen=True, slots=True)
class Skipped:
    """As high a version stood already. Proves nothing by itself."""


@dataclass(frozen=True, slots=True)
class Conflict:
    """Another commit of this app id came between. Proves nothing."""

    reason: str = ""


@dataclass(frozen=True, slots=True)
class Unclear:
    """No answer, or none that counts."""

    reason: str = ""


@dataclass(frozen=True, slots=True)
class Unreadable:
    """Staged files are gone or torn; this call committed nothing."""

    files: frozenset[str]
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Refused:
    """The table does not take it; this call committed nothing."""

    reason: str = ""


Outcome = Told | Facts | Rows | Committed | Skipped | Conflict | Unclear | Unreadable | Refused


# --- effects -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ReadAnnouncements:
    """Read the landing topic from this record on."""

    offset: int


@dataclass(frozen=True, slots=True)
class Delete:
    """Nothing is left to land of these staged files."""

    files: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Offsets:
    """Commit these under the group's name: partition -> next offset to land."""

    committed: Mapping[int, int]


@dataclass(frozen=True, slots=True)
class ReadAgain:
    """Have these partitions read again: partition -> from where."""

    committed: Mapping[int, int]


@dataclass(frozen=True, slots=True)
class Log:
    """Log an event for people."""

    event: str
    facts: Mapping[str, object] = field(default_factory=dict)
    fault: bool = False  # somebody should look at it


Effect = ReadAnnouncements | Delete | Offsets | ReadAgain | Log
