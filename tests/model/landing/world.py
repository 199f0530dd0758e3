"""The world as a value: Kafka, staging, a table, and the processes that work on them."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from binwright.core.consumer.buffer import Buffer
from binwright.core.consumer.handover import Consumer
from binwright.core.messages import Staged
from binwright.core.model import TopicPartition
from binwright.core.ports import Commit, Table
from binwright.core.writer.batch import Batch
from binwright.core.writer.machine import Writer
from binwright.core.writer.requests import Facts

TOPIC = "t"
TABLE = Table(topic=TOPIC, group="g", cluster="c")
NOTHING = -1  # at an offset: a control record, which no reader sees


class Row(NamedTuple):
    """A record's identity: offsets begin anew in a topic made anew, or where a log was cut."""

    topic: int
    partition: int
    offset: int
    cut: int  # how often its log had been cut when it was written


@dataclass(frozen=True, slots=True)
class Bounds:
    """How large the world is, and how much goes wrong in it."""

    logs: tuple[str, ...] = ("rr",)  # per partition; r: a record, .: nothing that a reader sees
    produce: int = 0  # records that are written besides, one by one
    faults: int = 1
    kinds: frozenset[str] = frozenset()
    grants: int = 2
    singly: bool = False  # records are fetched one by one
    slow_facts: bool = False  # what Kafka is asked is old when the writer hears it
    late: bool = False  # each announcement is heard in a step of its own
    from_latest: bool = False
    batch_bytes: int = 1_000_000
    full_stamp_every: int = 32
    rereads: int = 2  # times that a partition is read again for a gap; a settled run has no bound


@dataclass(frozen=True, slots=True)
class Log:
    """One partition."""

    entries: tuple[int, ...]  # offset -> how often the log had been cut then, or `NOTHING`
    start: int = 0  # first offset kept
    doubtful: int = 0  # below it records may be lost: the log was cut, and has grown again
    cuts: int = 0
    goes_on_at: int | None = None  # after its last cut, as it was announced

    @property
    def end(self) -> int:
        return len(self.entries)


@dataclass(frozen=True, slots=True)
class File:
    """A staged file."""

    rows: frozenset[Row]
    readable: bool = True


@dataclass(frozen=True, slots=True)
class Call:
    """A transaction that was sent; it may begin and end whether or not anybody still waits."""

    version: int
    stamp: str
    batch: Batch | None  # None: a claim
    began: int | None = None  # how many commits of the app id there were
    rows: tuple[Row, ...] = ()  # once it began


@dataclass(frozen=True, slots=True)
class DeltaTable:
    """What Delta knows."""

    commits: tuple[Commit, ...] = (Commit(0, None),)  # oldest first, those that are kept
    next_version: int = 1
    of_app: int = 0  # commits of the writers' app id
    stored: int = -1  # the app id's version
    landed: frozenset[Row] = frozenset()
    begun: Mapping[tuple[int, int], int] = field(default_factory=dict)
    """(topic, partition) -> where it begins, by the first stamp that names it."""


@dataclass(frozen=True, slots=True)
class WriterProcess:
    """A process that was granted the role."""

    writer: Writer
    now: float = 0.0
    position: int | None = None  # in the landing topic; None: not read
    call: int | None = None  # which call is awaited
    facts: Facts | None = None  # what Kafka answered, on its way


@dataclass(frozen=True, slots=True)
class ReaderProcess:
    """A consumer that reads and stages."""

    consumer: Consumer
    topic: int  # which topic it takes it for
    buffer: Buffer  # never changed: copied
    written: Staged | None = None  # its file is staged and not announced
    cuts: Mapping[int, tuple[int, int]] = field(default_factory=dict)
    """Cuts that it has seen and not announced: partition -> where it goes on, which cut."""


@dataclass(frozen=True, slots=True)
class World:
    """Everything; partitions count from 0, and so do topics of the one name."""

    bounds: Bounds
    logs: tuple[Log, ...]
    topic: int = 0
    landing: tuple[Staged | None, ...] = ()  # None: lost
    landing_id: int = 0
    files: Mapping[str, File] = field(default_factory=dict)
    over: frozenset[str] = frozenset()  # files that are to be deleted
    table: DeltaTable = DeltaTable()
    calls: Mapping[int, Call] = field(default_factory=dict)
    writers: tuple[WriterProcess | None, ...] = (None, None)
    readers: tuple[ReaderProcess, ...] = ()
    owners: tuple[int | None, ...] = ()  # partition -> reader, as the controller has it
    known: tuple[int | None, ...] = ()  # partition -> where its next reader begins
    again: Mapping[int, int] = field(default_factory=dict)  # partition -> to be read again from
    group: Mapping[int, tuple[int, int]] = field(default_factory=dict)  # -> topic, told offset
    counter: int = 0  # names of calls, files, writers, revisions
    grants: int = 0
    faults: int = 0
    produce: int = 0
    rereads: int = 0

    def partition(self, number: int) -> TopicPartition:
        return TopicPartition(TOPIC, number)

    def log(self, number: int, log: Log) -> "World":
        return replace(self, logs=(*self.logs[:number], log, *self.logs[number + 1 :]))

    def reader(self, index: int, reader: ReaderProcess) -> "World":
        readers = (*self.readers[:index], reader, *self.readers[index + 1 :])
        return replace(self, readers=readers)

    def writer(self, index: int, writer: WriterProcess | None) -> "World":
        writers = (*self.writers[:index], writer, *self.writers[index + 1 :])
        return replace(self, writers=writers)


def grown(log: Log, entry: str) -> Log:
    """Return the log with one more record, or with an offset that holds none."""
    return replace(log, entries=(*log.entries, log.cuts if entry == "r" else NOTHING))


def rows_between(world: World, partition: int, first: int, end: int) -> frozenset[Row]:
    """Return the records that a reader sees in [first, end)."""
    log = world.logs[partition]
    return frozenset(
        Row(world.topic, partition, offset, log.entries[offset])
        for offset in range(max(first, log.start), min(end, log.end))
        if log.entries[offset] != NOTHING
    )


def missing(world: World, partition: int, committed: int) -> frozenset[Row]:
    """Return what should be in the table and is not, if `committed` is."""
    first = world.logs[partition].doubtful
    if world.bounds.from_latest:
        begun = world.table.begun.get((world.topic, partition), committed)
        first = max(first, begun)
    return rows_between(world, partition, first, committed) - world.table.landed
