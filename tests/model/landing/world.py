"""The world as a value: Kafka, the staged files, tables of topics, and the processes."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple

from binwright.consumer.decide.buffer import Buffer
from binwright.consumer.decide.land.append import TableKnowledge
from binwright.consumer.decide.land.states import Append, KafkaState, Outcome, Writer
from binwright.consumer.decide.machine import Consumer
from binwright.protocol.landing import Staged
from binwright.protocol.model import TopicPartition
from binwright.protocol.ports.kafka import GroupOffset
from binwright.tables.columns import Columns
from binwright.tables.ports import Batch, Commit, Footer, PartitionOffsets, Table

TOPIC = "t"
TOPICS = (TOPIC, "v")
"""A world has the first of them, or both: then each has one partition, and both one table."""
TABLES = tuple(Table(TOPIC, "g", "c", named=name) for name in (None, "u"))
"""The topic's tables: a world has the first of them, or both."""
NOTHING = -1  # the entry of an offset that readers skip, such as a control record


class Row(NamedTuple):
    """A record's identity: offsets are reused in a recreated topic, and after a cut."""

    topic: int
    partition: int
    offset: int
    cut: int  # the number of cuts of its log before it was written


@dataclass(frozen=True, slots=True)
class Bounds:
    """The size of the world, and the number and kinds of its faults."""

    logs: tuple[str, ...] = ("rr",)
    """Per partition; r: a record, .: an offset that readers skip, x or y: a record whose decoding
    raises, by the first settings or the second, d: one that deletes the row of its key, z: one that
    raises by the first, and deletes by the second."""
    produce: int = 0  # records that are written later, one by one
    faults: int = 1
    kinds: frozenset[str] = frozenset()
    grants: int = 2
    fetch_singly: bool = False  # records are fetched one by one
    slow_facts: bool = False  # replies of Kafka may be stale when the writer gets them
    late_announcements: bool = False  # each announcement is read in a step of its own
    from_latest: bool = False
    batch_bytes: int = 1_000_000
    full_stamp_every: int = 32
    targets: int = 1  # tables of the topic
    topics: int = 1
    topic_added: bool = False  # the first process takes the first topic only, the second both
    keeps_staged: bool = False  # what was announced must land, though retention took it in Kafka
    typed: bool = False  # values are decoded, and bad records land in a table of their own
    keyed: bool = False  # of a table of keys; all records have the same
    in_place: bool = False  # files are laid out as such a table, with bad records beside them
    columns: str = "id BIGINT"  # of such a table
    settings: tuple[str, ...] = ("id BIGINT",)  # the columns that files have by each of them
    proposed: tuple[str, ...] = ()
    """Columns that files propose for new fields, by each of the settings; none: tables get none."""
    bad_share: float = 1.0
    replay: bool = False  # a person orders that bad records are decoded again
    erase: bool = False  # a person orders that all rows and bad records are erased
    backfill: bool = False  # a person orders that what is before the table's beginning lands
    rereads: int = 2  # how often partitions are read again for gaps; unbounded for liveness


@dataclass(frozen=True, slots=True)
class Log:
    """One partition."""

    entries: tuple[int, ...]  # offset -> number of cuts before it was written, or `NOTHING`
    start: int = 0  # first retained offset
    uncertain_below: int = 0  # records below it may be lost: the log was cut and grew again
    cuts: int = 0
    resumes_at: int | None = None  # begin of the range that announced its last cut

    @property
    def end(self) -> int:
        return len(self.entries)


@dataclass(frozen=True, slots=True)
class File:
    """A staged file."""

    rows: frozenset[Row]
    target: int = 0  # the number of its table
    bad: frozenset[Row] = frozenset()  # those of its rows that could not be decoded
    footer: Footer | None = None  # in worlds of decoded values
    readable: bool = True


Part = Literal[
    "all",
    "bad records",
    "files",
    "rows",
    "deletions",
    "changes",
    "stamp",
    "change",
    "note",
    "erase",
]
"""What of its batch a call commits; of a table of raw records all. A claim of a table of decoded
values is of its bad records first, then of all. Of a table of keys the deletions are noted, and the
changes are applied. A change of bad records removes `rows` from the bad records; a
note has the places of `rows`, and an erasure removes them."""


@dataclass(frozen=True, slots=True)
class Call:
    """A transaction that was sent; it may begin and end even if its writer no longer waits."""

    by: int  # index of the writer's process
    number: int  # of the commit under its claim; 0: the claim
    stamp: str
    part: Part = "all"
    target: int = 0  # the number of its table
    lease: str = ""  # that it reads; a claim reads none
    batch: Batch | None = None  # None: a claim
    snapshot: int | None = None  # how many metadata commits there were, once it began
    rows: tuple[Row, ...] | None = None  # once it has read its lease and files


@dataclass(frozen=True, slots=True)
class DeltaTable:
    """The state of a Delta table."""

    commits: tuple[Commit, ...] = (Commit(0, None),)  # oldest first, without cleaned-up ones
    next_version: int = 1
    metadata_commits: int = 0
    bad_metadata_commits: int = 0  # to the table of bad records
    landed: frozenset[Row] = frozenset()  # in it, and in the table of its bad records
    bad: frozenset[Row] = frozenset()  # those that are in the table of bad records
    moved: frozenset[Row] = frozenset()  # those that a replay has brought into the table itself
    noted: frozenset[Row] = frozenset()  # those whose places are noted, to be erased
    erased: frozenset[Row] = frozenset()  # those that were removed for that
    row: Row | None = None  # of the key: the change that it is of; None: there is none
    deletions: frozenset[Row] = frozenset()  # of the key, that are noted
    columns: Columns = ()
    added: frozenset[str] = frozenset()  # names of those for new fields
    published: Columns = ()  # the latter, as consumers know them
    begin_offset: Mapping[tuple[int, int], int] = field(default_factory=dict)
    """(topic, partition) -> where it begins, by the first stamp that has it."""


@dataclass(frozen=True, slots=True)
class Appending:
    """A commit of a batch under way, by the outcomes that its requests had, and when."""

    request: Append
    known: TableKnowledge  # before it
    committed: PartitionOffsets
    outcomes: tuple[tuple[Outcome, float], ...] = ()


@dataclass(frozen=True, slots=True)
class WriterProcess:
    """The writer of one table, in a process that has the role for all of them."""

    writer: Writer
    landed: Mapping[TopicPartition, GroupOffset] = field(default_factory=dict)
    """What it passes on to be committed to Kafka."""
    now: float = 0.0
    position: int | None = None  # in the landing topic; None: it does not read it yet
    call: int | None = None  # the call that it waits for
    facts: KafkaState | None = None  # Kafka's reply, in flight
    known: TableKnowledge | None = None  # of a table of decoded values, since it was opened
    append: Appending | None = None
    removed: frozenset[Row] = frozenset()  # of the portion that was staged last


@dataclass(frozen=True, slots=True)
class ReaderProcess:
    """A consumer that reads and stages."""

    consumer: Consumer
    topic: int  # the topic that it assumes to read
    buffer: Buffer  # copied on each change
    unannounced: tuple[Staged, ...] = ()  # staged files that are not announced yet
    cuts: Mapping[int, tuple[int, int]] = field(default_factory=dict)
    """Cuts that it has detected and not announced: partition -> (new offset, number of the cut)."""


@dataclass(frozen=True, slots=True)
class World:
    """The whole state; partitions and successive topics of the name are numbered from 0."""

    bounds: Bounds
    logs: tuple[Log, ...]
    topic: int = 0
    landing: tuple[Staged | None, ...] = ()  # None: lost
    landing_id: int = 0
    files: Mapping[str, File] = field(default_factory=dict)
    files_to_delete: frozenset[str] = frozenset()
    leases: frozenset[tuple[int, str]] = frozenset()  # with the number of their table
    tables: tuple[DeltaTable, ...] = (DeltaTable(),)
    calls: Mapping[int, Call] = field(default_factory=dict)
    writers: tuple[WriterProcess | None, ...] = (None, None)
    """Those of the first process, one for each table, then those of the second."""
    readers: tuple[ReaderProcess, ...] = ()
    owners: tuple[int | None, ...] = ()  # partition -> reader, by the controller
    start_offsets: tuple[int | None, ...] = ()  # partition -> where its next reader begins
    reread_from: Mapping[int, int] = field(default_factory=dict)
    """Partition -> offset of a requested reread."""
    group: Mapping[int, tuple[int, int]] = field(default_factory=dict)
    """Partition -> (topic, the group's committed offset)."""
    counter: int = 0  # names of calls, files, writers, revisions
    grants: int = 0
    faults: int = 0
    produce: int = 0
    rereads: int = 0
    settings: int = 0  # the number of those by which values are decoded
    ordered: bool = False  # the replay, or the erasure
    meant: frozenset[Row] = frozenset()  # the records that Kafka had when it was ordered

    def partition(self, number: int) -> TopicPartition:
        """Return the partition of a log."""
        if self.bounds.topics > 1:
            return TopicPartition(TOPICS[number], 0)
        return TopicPartition(TOPIC, number)

    def log_of(self, partition: TopicPartition) -> int:
        """Return the number of a partition's log."""
        return partition.partition if self.bounds.topics == 1 else TOPICS.index(partition.topic)

    @property
    def topics(self) -> tuple[str, ...]:
        return TOPICS[: self.bounds.topics]

    def log(self, number: int, log: Log) -> "World":
        return replace(self, logs=(*self.logs[:number], log, *self.logs[number + 1 :]))

    def reader(self, index: int, reader: ReaderProcess) -> "World":
        readers = (*self.readers[:index], reader, *self.readers[index + 1 :])
        return replace(self, readers=readers)

    def writer(self, index: int, writer: WriterProcess | None) -> "World":
        writers = (*self.writers[:index], writer, *self.writers[index + 1 :])
        return replace(self, writers=writers)

    def table(self, target: int, table: DeltaTable) -> "World":
        tables = (*self.tables[:target], table, *self.tables[target + 1 :])
        return replace(self, tables=tables)

    def target_of(self, index: int) -> int:
        """Return the number of a writer's table."""
        return index % self.bounds.targets

    def process(self, number: int) -> range:
        """Return the indices of a process's writers."""
        targets = self.bounds.targets
        return range(number * targets, (number + 1) * targets)

    def without_process(self, number: int) -> "World":
        """Return the world in which this process writes no table."""
        world = self
        for index in self.process(number):
            world = world.writer(index, None)
        return world


def append_entry(log: Log, entry: str) -> Log:
    """Return the log with one more record, or one more offset without a record."""
    return replace(log, entries=(*log.entries, NOTHING if entry == "." else log.cuts))


def kind_of(world: World, partition: int, offset: int) -> str:
    """Return the letter of a record in `Bounds.logs`; one that is written later has an r."""
    kinds = world.bounds.logs[partition]
    first = world.logs[partition].entries[offset] == 0
    return kinds[offset] if first and offset < len(kinds) else "r"


def deletes(world: World, row: Row) -> bool:
    """Whether a record deletes the row of its key."""
    kinds = world.bounds.logs[row.partition]
    return row.cut == 0 and kinds[row.offset : row.offset + 1] in {"d", "z"}


def newest_change(rows: Iterable[Row]) -> Row | None:
    """Return the last of these changes of the key, in the order in which they were written."""
    return max(rows, key=lambda row: (row.topic, row.cut, row.offset), default=None)


def rows_between(world: World, partition: int, first: int, end: int) -> frozenset[Row]:
    """Return the records with offsets in [first, end)."""
    log = world.logs[partition]
    return frozenset(
        Row(world.topic, partition, offset, log.entries[offset])
        for offset in range(max(first, log.start), min(end, log.end))
        if log.entries[offset] != NOTHING
    )


def missing(world: World, target: int, partition: int, committed: int) -> frozenset[Row]:
    """Return the records below `committed` that are missing in a table."""
    table = world.tables[target]
    first = world.logs[partition].uncertain_below
    if world.bounds.from_latest:
        begin_offset = table.begin_offset.get((world.topic, partition), committed)
        first = max(first, begin_offset)
    rows = rows_between(world, partition, first, committed)
    if world.bounds.keeps_staged:
        rows |= {
            row
            for staged in world.landing
            if staged is not None and staged.file in world.files
            for row in world.files[staged.file].rows
            if (row.topic, row.partition) == (world.topic, partition)
            and first <= row.offset < committed
        }
    return rows - table.landed - table.noted
