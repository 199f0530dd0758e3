"""The staging storage and the lake: consumers write files, which commits land in Delta tables."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from binwright.protocol.landing import Staged
from binwright.protocol.model import TopicPartition
from binwright.protocol.ports.kafka import Record, Records
from binwright.tables.columns import Columns
from binwright.tables.conditions import Condition
from binwright.tables.operations import Cursor, Places

Ranges = Mapping[int, tuple[int, int]]
"""Number of a partition -> (first, next): all records with offsets in [first, next)."""
PartitionOffsets = Mapping[TopicPartition, int]
"""Partition -> an offset, of one topic or of several."""
CutFiles = Mapping[TopicPartition, tuple[str, ...]]
"""Partition -> the files whose range began after a cut of its log, and that have landed."""


@dataclass(frozen=True, slots=True)
class Footer:
    """What a staged file says of itself, beside its announcement."""

    topic_id: str | None  # of the topic that the rows were read from
    rows: int
    ranges: Ranges
    columns: Columns | None = None  # into which values were decoded; None: raw records
    bad: int = 0  # rows whose record could not be decoded
    fault: str = ""  # of the first of them: where it is, and what is wrong with it
    decoded_by: str = ""  # the settings by which values were decoded
    newest_ms: int | None = None  # the highest timestamp of its records; None: none has a valid one
    skipped: int = 0  # records of its ranges that are in no table, as the settings want
    deleted: int = 0  # rows that say that one was deleted
    topic: str | None = None  # whose records it has; None: the topic of its table's name
    proposed: Columns = ()  # for fields of its records that no column has
    as_table: bool = False  # its decoded rows are laid out as the table's; bad ones are beside it
    masked_by: str = ""  # the settings of what is masked; "": nothing is, or an older version wrote
    cut: frozenset[int] | None = None
    """Partitions whose range begins after a cut of their log; None: an older version wrote it."""

    def agrees(self, staged: Staged) -> bool:
        """Whether an announcement says the same of the file (†)."""
        return (
            self.topic in {None, staged.topic}
            and self.topic_id == staged.topic_id
            and self.rows + self.skipped == staged.rows
            and self.ranges == {p.partition: (r.first, r.next) for p, r in staged.ranges.items()}
            and self.cut in {None, frozenset(p.partition for p in staged.cut)}
        )


class ValueDecoder(Protocol):
    """Decodes values of records into columns; some decode their keys, too."""

    columns: Columns
    """Of the rows; none, if all values are bad."""
    settings: str
    """By which it decodes: where they differ, so may what a value becomes."""

    @property
    def proposed(self) -> Columns:
        """Return columns for fields of what it has decoded, of those that no column has."""

    def decode(self, values: Any, headers: Any = None, keys: Any = None, /) -> tuple[Any, Any]:
        """Return rows and bad records: Arrow arrays of structs, of which both have one per value.

        A row is NULL where the record is bad; a bad record is NULL where it is not. Where both are
        NULL the record is skipped: it is in no table.

        Args:
            values: An Arrow array of binary; NULL is a tombstone, whose row has NULL everywhere.
            headers: Those of the records, as many lists of `key` and `value`; None: no record has
                one that names a schema.
            keys: Those of the records, like `values`; None: all are NULL.
        """

    def memory(self, values: Any, keys: Any = None, /) -> int:
        """Return how much memory these take at most while they are decoded, bytes; see `decode`.

        The estimate is cheap. A value that takes more by itself than it may is bad.
        """


class RecordMask(Protocol):
    """Masks what decoders do not: keys and headers, and values that land as bytes."""

    def __call__(self, records: Any, /) -> Any:
        """Return an Arrow batch of records, or of decoded ones, with these columns masked.

        Raises:
            MaskUnavailable: They cannot be masked.
        """


class Staging(Protocol):
    """A directory or object-store prefix, with one directory per table.

    `directory` is a table's name; what could not be decoded is kept in its topic's.
    """

    async def prepare(self, owner: str = "") -> None:
        """Verify that it can be written, and that it is this owner's from now on.

        Raises:
            StagingUnavailable: It cannot be written, or is another's.
        """

    async def write(
        self,
        directory: str,
        name: str,
        rows: Mapping[TopicPartition, Sequence[Records]],
        footer: Footer,
        decoder: ValueDecoder | None = None,
        *,
        mask: RecordMask | None = None,
        by_day: bool = False,
        encoded: Callable[[], None] = lambda: None,
    ) -> int:
        """Write a file atomically and durably; return its bytes. Raise `StagingUnavailable`.

        Columns and bad values are those of `decoder`, whatever `footer` says of them, and the rest
        of the records is what `mask` leaves of it. `by_day`: of a table that is partitioned so.
        `encoded` is called when the rows are decoded and encoded, before anything is written.
        """

    async def keep(self, directory: str, name: str, content: bytes) -> None:
        """Write a file that no collection deletes. Raise `StagingUnavailable`."""

    async def content(self, directory: str, name: str) -> bytes | None:
        """Return what `keep` has written; None: there is no such file.

        Raises:
            StagingUnavailable: The storage does not reply, or refuses.
        """

    async def delete(self, directory: str, names: Collection[str]) -> None:
        """Delete files, also if some do not exist. Raise `StagingUnavailable`."""

    async def readable(self, directory: str, names: Collection[str]) -> Collection[str]:
        """Return those of these files that are complete and readable.

        Raises:
            StagingUnavailable: The storage does not reply, or refuses: nothing is known of them.
        """

    async def footers(self, directory: str, names: Collection[str]) -> Mapping[str, Footer]:
        """Return the footers of these files, without those that are missing or damaged.

        The number of good rows is that of the file, not what it says. Only the files' ends are
        read, two requests each to an object store. Raise `StagingUnavailable`.
        """

    async def existing(self, directory: str, names: Collection[str]) -> Collection[str]:
        """Return those of these files that exist and are not empty; cheap: may be incomplete.

        Raises:
            StagingUnavailable: The storage does not reply, refuses, or is gone.
        """

    async def directories(self) -> Collection[str]:
        """Return the names of directories. Raise `StagingUnavailable`."""

    async def sizes(self, directory: str) -> Mapping[str, int]:
        """Return the bytes of its staged files. Raise `StagingUnavailable`."""

    async def older(self, directory: str, age_s: float) -> Collection[str]:
        """Return its files of this age or older, and those that were never finished.

        Raises:
            StagingUnavailable: The storage does not reply, or refuses.
        """

    async def write_lease(self, directory: str, lease: str) -> None:
        """Write a file of this name without rows. Raise `StagingUnavailable`."""

    async def delete_other_leases(self, directory: str, lease: str) -> None:
        """Delete all of its leases but this one. Raise `StagingUnavailable`."""


@dataclass(frozen=True, slots=True)
class FileSlice:
    """The part of one staged file that a batch lands."""

    file: str  # its name in the table's staging directory
    ranges: Ranges
    whole: bool  # the file holds no other rows: none needs to be filtered out
    bytes: int  # of the whole file
    topic: str  # whose records it has
    announced: Staged | None = None  # what its announcement says; None: it was not announced

    @property
    def partitions(self) -> tuple[TopicPartition, ...]:
        """Return the partitions of its ranges."""
        return tuple(TopicPartition(self.topic, number) for number in self.ranges)


@dataclass(frozen=True, slots=True)
class Batch:
    """What one commit lands; one without slices only writes a stamp."""

    slices: tuple[FileSlice, ...] = ()
    ends: PartitionOffsets = field(default_factory=dict)  # the next offset afterwards
    rows: int = 0  # an estimate: a slice counts all rows of its file
    bytes: int = 0
    topic_ids: Mapping[str, str | None] = field(default_factory=dict)
    """Topic -> id of the one that its rows were read from."""
    columns: Columns | None = None  # of its files, all together; None: raw records
    bad: int = 0  # rows of its files that could not be decoded
    deletes: bool = False  # rows of its files may say that one was deleted
    landed_in_part: bool = False
    """Some of its bad records may have landed before, when its rows did not: they are left out."""
    as_table: frozenset[str] = frozenset()
    """Those of its files whose decoded rows are laid out as the table's."""
    beside: frozenset[str] = frozenset()
    """Those of them that have bad records: in files beside them."""
    work: str = ""
    """The work of which it is a portion, as ordered; empty: its files are announced."""

    @property
    def files(self) -> tuple[str, ...]:
        """Return the names of the staged files."""
        return tuple(part.file for part in self.slices)


class BadPlace(NamedTuple):
    """Names a bad record: another one at the same offset has another topic id or timestamp."""

    topic_id: str | None
    partition: TopicPartition
    offset: int
    timestamp_ms: int  # -1: it has none


@dataclass(frozen=True, slots=True)
class BadRow:
    """A bad record, as its table has it."""

    place: BadPlace
    record: Record
    kind: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BadQuery:
    """Which bad records are read: some of those that nothing lands again."""

    topic_ids: Mapping[str, str | None]  # of the topics that are meant, not of earlier ones
    below: PartitionOffsets  # only those before what the table has committed (†)
    but: Places = field(default_factory=dict)  # none of these (†)
    after: Cursor | None = None  # only those behind it
    classes: tuple[str, ...] = ()  # empty: all of them
    since_ms: int = 0  # only those that landed then or later
    most_rows: int = 10_000
    most_bytes: int = 8 << 20  # of keys and values; at least one record is read


@dataclass(frozen=True, slots=True)
class BadPortion:
    """The first bad records that a query is of, in order of their places."""

    rows: Sequence[BadRow] = ()  # of one topic
    masked: int = 0  # how many it leaves out without values; counted by a query from the beginning


@dataclass(frozen=True, slots=True, kw_only=True)
class ErasedQuery:
    """Which rows are erased."""

    operation: str  # its id
    where: Condition | None  # of rows; None: none are
    bad_where: Condition | None  # of bad records; None: none are
    topic_ids: Mapping[str, str | None]  # of the topics that the table takes
    below: PartitionOffsets
    """Bad records of these topics only before what is committed: those behind may land again."""
    ordered_ms: int = 0  # when a person did, wall clock, ms since 1970; 0: not known


class ErasedCounts(NamedTuple):
    """How many rows are erased."""

    rows: int
    bad: int  # bad records
    left: int = 0  # bad records that no condition is of


@dataclass(frozen=True, slots=True)
class Table:
    """A table of a topic, or of several, and its owner."""

    topic: str  # whose records it takes; of several: the first of them
    group: str
    cluster: str  # the id of the Kafka cluster
    columns: Columns | None = None  # of its values; None: they land as bytes
    cluster_by: tuple[str, ...] = ()  # columns or fields: the paths by which `cluster` sorts
    statistics: tuple[str, ...] = ()  # further ones of which files have statistics
    by_date: bool = False  # partitioned by the day of its records
    widen: bool = False  # its columns may become wider
    primary_key: tuple[str, ...] = ()  # columns or fields; none: each record is a row
    sequence_by: tuple[str, ...] = ()  # columns or fields by which its changes are ordered
    skips_tombstones: bool = False  # records without a value are in no table
    where: tuple[str, ...] = ()  # comparisons: records for which one does not hold are in no table
    keep_s: float = 0.0  # for which it keeps rows, by their timestamps; 0: for ever
    register_as: str = ""  # its name in a catalog; "": it is not registered
    named: str | None = None  # None: by its topic
    more_topics: tuple[str, ...] = ()  # whose records it takes, too
    unnamed_topic: str | None = None  # of stamps that name none, from older versions; None: `topic`

    @property
    def name(self) -> str:
        """Return the table's name."""
        return self.named or self.topic

    @property
    def topics(self) -> tuple[str, ...]:
        """Return the topics whose records it takes."""
        return self.topic, *self.more_topics


@dataclass(frozen=True, slots=True)
class Commit:
    """One version of a table's history."""

    version: int
    metadata: str | None  # `userMetadata`: the stamp, if a binwright writer committed it


@dataclass(frozen=True, slots=True)
class History:
    """The newest commits of a table, newest first."""

    commits: Sequence[Commit]
    complete: bool  # these are all that the table still has; older ones may have been cleaned up


@dataclass(frozen=True, slots=True)
class SmallFiles:
    """The small files of a part of a table, of which a compaction makes larger ones."""

    sizes: Sequence[int]  # bytes
    day: str | None = None  # of their rows, where the table is partitioned by it
    bad: bool = False  # they are those of its bad records


@dataclass(frozen=True, slots=True)
class Portion:
    """What is merged at a time: the files of one part of a table that are below a size."""

    below_bytes: int
    day: str | None = None  # as of `SmallFiles`
    bad: bool = False  # likewise
    excess: int = 0  # files of that part that a reader does not open once all of it is merged


@dataclass(frozen=True, slots=True)
class NotInPlace:
    """Files cannot be committed as they are; an append of their rows can do it."""

    reason: str
    of_table: bool  # true of any file: of the table, or of its server


@dataclass(frozen=True, slots=True)
class Compaction:
    """The result of a compaction."""

    removed: int  # small files
    added: int  # the files that replace them
    removed_bytes: int = 0
    added_bytes: int = 0
    copied: int = 0  # of those removed, whose rows were not written again

    def __add__(self, other: "Compaction") -> "Compaction":
        """Return both together."""
        return Compaction(
            self.removed + other.removed,
            self.added + other.added,
            self.removed_bytes + other.removed_bytes,
            self.added_bytes + other.added_bytes,
            self.copied + other.copied,
        )


@dataclass(frozen=True, slots=True)
class ColumnsThere:
    """The columns that a table has."""

    names: frozenset[str]
    commented: Columns  # those with the comment that was asked for, of types that we write


class Lake(Protocol):
    """The Delta tables; each by its name: its topic's, unless the settings give it another.

    Callers make one call at a time for a table, except that one of `register`, `small_files`,
    `compact`, `cluster` and `vacuum` may run beside another call.
    """

    async def open(self, table: Table) -> str:
        """Create the table unless it exists, and verify that this group owns it.

        A table of columns gets those that it has not, and a table of bad records beside it. How it
        is clustered and what it has statistics of follow, as far as it has these columns.

        Returns:
            The topic of stamps that name none: the first that it took.

        Raises:
            LakeUnavailable: Spark does not reply; try again.
            TableRefused: The path cannot be written, holds something else, or is another group's.
        """

    async def claim(self, table: str, writer: str, stamp: str) -> None:
        """Commit the writer's id to the table's metadata; first to that of its bad records.

        Delta refuses each append that took its snapshot before and would commit after it.

        Raises:
            WriteConflict: Another commit came first; this one is not committed.
            WriteUnclear: The result is unknown.
            TableRefused: The server refused it before anything was committed.
        """

    async def append(self, table: str, batch: Batch, lease: str, stamp: str) -> None:
        """Append the batch's rows of its staged files in one commit, without bad records.

        The tasks that read the staged files also read the lease, after the commit's snapshot (†).

        Raises:
            StagedUnreadable: A staged file or the lease is missing or truncated; this call
                committed nothing.
            WriteConflict, WriteUnclear, TableRefused: As of `claim`.
        """

    async def add_files(
        self, table: str, batch: Batch, lease: str, stamp: str
    ) -> NotInPlace | None:
        """Commit the batch's staged files as they are: all of their rows, none is written again.

        The lease is opened after the commit's snapshot (†). The staged files stay where they are.

        Returns:
            Why these files cannot land so, and nothing was committed; None: they have landed.

        Raises:
            StagedUnreadable, WriteConflict, WriteUnclear: As of `append`.
        """

    async def append_bad(self, table: str, batch: Batch, lease: str, stamp: str) -> None:
        """Append the batch's bad records to their own table in one commit; like `append`."""

    async def note_deleted(self, table: str, batch: Batch, lease: str, stamp: str) -> None:
        """Note the keys of what the batch deletes, in a table of their own, in one commit.

        It may be repeated, and needs no fence: what is noted is true of the topic. Reads the lease
        and raises like `append`.
        """

    async def merge(self, table: str, batch: Batch, lease: str, number: int, stamp: str) -> None:
        """Apply the batch's changes to the rows of their keys in one commit: the newest of each.

        A change that is older than the row of its key, or than what is noted of its deletion,
        changes nothing. Rows of a batch for some `work` are older than later ones of their
        partition; else they are newer than all that the table has of it.

        Args:
            table: Its name.
            batch: What it reads, as `append` does.
            lease: Read as by `append`.
            number: Above those of earlier commits under this lease, as of `commit_stamp`.
            stamp: Committed in any case.

        Raises:
            StagedUnreadable, WriteConflict, WriteUnclear, TableRefused: As of `append`.
        """

    async def bad_portion(self, table: str, query: BadQuery) -> BadPortion:
        """Return bad records, of which none is masked; none: there are no more.

        Raises:
            LakeUnavailable: Spark does not reply.
            TableRefused: There is no table of bad records.
        """

    async def change_bad(
        self, table: str, removed: Sequence[BadPlace], changed: Sequence[BadRow], note: str
    ) -> None:
        """Remove bad records, and give others their new kind, reason and value, in one commit.

        It may be repeated: what is gone, or is as wanted, stays so.

        Args:
            table: Its name.
            removed: Those that go: the table has their rows, or they are in none.
            changed: Those that stay.
            note: What the commit says of itself, for people.

        Raises:
            WriteConflict, WriteUnclear, TableRefused: As of `claim`.
        """

    async def landed_bad(self, table: str, places: Places) -> Sequence[BadPlace]:
        """Return the bad records at these offsets of which the table has the rows.

        Raises:
            LakeUnavailable: Spark does not reply.
        """

    async def note_erased(
        self, table: str, query: ErasedQuery, note: str, *, dry_run: bool
    ) -> ErasedCounts:
        """Note the places of what is to be erased, in a table of its own; return all noted for it.

        It may be repeated: what is gone already, and noted, counts as before.

        Args:
            table: Its name.
            query: What is erased.
            note: What the commit says of itself, for people.
            dry_run: Count only.

        Raises:
            TableRefused: A condition does not fit the columns or their values, or the table is not
                changed so, or is younger than the order, which was of an earlier one; the text
                quotes neither the condition nor values.
            LakeUnavailable, WriteConflict, WriteUnclear: As of `claim`.
        """

    async def erase_noted(self, table: str, operation: str, note: str) -> None:
        """Delete the rows, and the bad records, of the places that an operation has noted.

        Their files are written again without them: no mark in a file's stead hides them. It may be
        repeated. Raises like `change_bad`.
        """

    async def columns(self, table: str, comment: str) -> ColumnsThere:
        """Return the table's columns, and which of them have this comment.

        Raises:
            LakeUnavailable: Spark does not reply.
            TableRefused: There is no table.
        """

    async def add_columns(self, table: str, columns: Columns, comment: str = "") -> None:
        """Add those of these columns, and of their fields, that the table has not.

        A whole column gets the comment. Those that it has with a narrower type become wider, if
        its settings want that.

        Raises:
            TableRefused: The table has one of another type.
            WriteConflict, WriteUnclear: As of `claim`.
        """

    async def highest_bad_offsets(
        self, table: str, since: PartitionOffsets
    ) -> Mapping[str | None, PartitionOffsets]:
        """Return the highest offsets of bad records: topic id -> partition -> offset.

        Args:
            table: Its name.
            since: Partition -> offset: those below it, and of other partitions, may be left out.
        """

    async def commit_stamp(self, table: str, lease: str, number: int, stamp: str) -> None:
        """Commit no rows; `number` is above those of earlier stamps under this lease.

        Reads the lease and raises like `append`.
        """

    async def check(self, table: str, columns: Columns) -> None:
        """Check that the table is as it was left, and that of its bad records is there.

        Args:
            table: Its name.
            columns: Of values, that it had or was given.

        Raises:
            LakeUnavailable: Spark does not reply.
            TableRefused: One of them is not there, or the table has other columns: names them.
        """

    async def history(self, table: str, limit: int) -> History:
        """Return the newest `limit` commits; raise `LakeUnavailable`, `TableRefused`."""

    async def highest_offsets(self, table: str) -> PartitionOffsets:
        """Return the highest offset of each partition that has rows, or had some that were erased.

        It is slow: it scans the table.
        """

    async def lowest_offsets(self, table: str) -> PartitionOffsets:
        """Return the lowest offset of each partition that has rows, or had some that were erased.

        It is slow: it scans the table. Raises like `history`.
        """

    async def lowest_bad_offsets(self, table: str) -> PartitionOffsets:
        """Return the lowest offset of each partition that has bad records; raise like `history`."""

    async def small_files(self, table: str) -> tuple[SmallFiles, ...] | None:
        """Return the table's small files, and those of its bad records.

        None: this server does not list them. Raises like `history`.
        """

    async def compact(self, table: str, portion: Portion | None = None) -> Compaction:
        """Merge small files into larger ones; raises like `history`.

        Args:
            table: Its name.
            portion: What is merged; None: all small files, also of bad records. Row groups that
                can be copied, which is cheap, are of any small files of the table, or of its bad
                records.
        """

    async def cluster(self, table: str) -> Compaction:
        """Sort the rows of files by the table's `cluster_by`. Raises like `history`."""

    async def expire(self, table: str, keep_s: float) -> int:
        """Delete rows whose record is older than `keep_s`, also of bad records.

        Rows without a timestamp stay. Returns how many were deleted; raises like `history`.
        """

    async def register(self, table: str, name: str) -> None:
        """Register the table by this name, and its bad records by this one with `__bad`.

        A name that it has already stays as it is. Nothing is committed to the table.

        Raises:
            TableRefused: The catalog refuses, or has something else of this name.
            LakeUnavailable: Spark or the catalog does not reply.
        """

    async def vacuum(self, table: str) -> None:
        """Delete files that no retained version needs. Raises like `history`."""

    async def release(self, table: str) -> None:
        """Drop all state that is cached for this table."""
