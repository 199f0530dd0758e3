"""What the services need from the world. Adapters give it; so do the fakes in `testing`."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from binwright.core.model import Slot, TopicPartition
from binwright.core.selection import Selection
from binwright.core.writer.batch import Batch


@dataclass(frozen=True, slots=True)
class Record:
    """One Kafka record, as a reader sees it."""

    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    timestamp_type: int = 0  # 0: set by the producer, 1: by the broker at the append
    headers: tuple[tuple[str, bytes | None], ...] = ()


class Reader(Protocol):
    """One partition read in order, each record once, however long that takes."""

    @property
    def position(self) -> int:
        """The offset of the record to be read next; of one that is not there any more, or later."""

    async def read(self, timeout_s: float) -> Sequence[Record]:
        """Return the next records, or none after `timeout_s`; raise `BrokerUnavailable`."""

    async def close(self) -> None:
        """Let go of connections."""


@dataclass(frozen=True, slots=True)
class TopicFacts:
    """How a topic is set up."""

    config: Mapping[str, str]  # by Kafka's names; what Kafka does not tell is left out
    replicas: int  # of the partition that has the fewest
    brokers: int  # that are alive


class Bus(Protocol):
    """Control topics: small messages to one partition, in order."""

    async def publish(self, topic: str, partition: int, key: bytes, value: bytes) -> int:
        """Append durably, in the order of calls, and return the offset.

        Raises:
            BrokerUnavailable: Not confirmed in time; it may or may not be there.
            TopicMissing: The topic or partition does not exist.
            RecordTooLarge: The topic does not take it.
        """

    async def end(self, topic: str, partition: int) -> int:
        """Return the offset that the next record will get; raise like `publish`."""

    async def reader(self, topic: str, partition: int, offset: int) -> Reader:
        """Read from `offset` (or from the oldest record there is, if that is later) on."""

    async def partitions(self, topic: str) -> int:
        """Return how many partitions the topic has; 0 when there is no such topic."""

    async def topic_id(self, topic: str) -> str | None:
        """Return which of all topics that ever had this name it is; None if Kafka does not tell.

        Raises:
            BrokerUnavailable: Nobody answers, or we may not know.
            TopicMissing: There is none of this name now.
        """

    async def ensure(self, topic: str, partitions: int, config: Mapping[str, str]) -> None:
        """Create the topic, or grow it to at least `partitions`; `config` is for a new one."""

    async def describe(self, topic: str, names: Collection[str]) -> TopicFacts:
        """Return how a topic is set up, with the settings of these names.

        Raises:
            BrokerUnavailable: Nobody answers, or we may not know.
            TopicMissing: There is no such topic.
        """


@dataclass(frozen=True, slots=True)
class LogSample:
    """One partition on its leader at one moment."""

    leader: int
    start: int  # first offset kept
    end: int  # offset of the next record
    size: int | None  # bytes of the log as stored; None: the leader did not say
    at: float | None = field(default=None, compare=False)  # s, monotonic; None: just now
    batch_bytes_per_record: float | None = None  # of a batch written lately, where asked for


class Logs(Protocol):
    """Where the monitor learns how much each partition holds."""

    async def sample(
        self, wanted: Selection, weigh: Mapping[str, Collection[int]]
    ) -> Mapping[str, Mapping[int, LogSample | None]]:
        """Return every partition of each topic wanted; None for one that cannot be sampled now.

        Args:
            wanted: A topic that is named and does not exist is there without partitions; one of
                which nobody tells anything at the moment is left out.
            weigh: Partitions of which a batch should be looked at, most urgent first; as many as
                can be done at little cost are.

        Raises:
            BrokerUnavailable: No broker answered.
        """


@dataclass(frozen=True, slots=True)
class GroupOffset:
    """An offset committed under the group's name: for people's tools and a quick start."""

    offset: int  # the next offset to land
    topic_id: str | None = None  # of which topic of this name, where that is known


class Intake(Protocol):
    """A consumer's data partitions: assigned by hand, fetched while started."""

    async def start(self, partition: TopicPartition, offset: int) -> None:
        """Fetch from `offset` on; the other partitions are not disturbed."""

    def stop(self, partition: TopicPartition) -> None:
        """Stop fetching at once; nothing of it is returned any more."""

    async def fetch(
        self, max_bytes: int, timeout_s: float
    ) -> Mapping[TopicPartition, Sequence[Record]]:
        """Return what came, in order per partition, at most about `max_bytes` of it.

        Raises:
            BrokerUnavailable: The brokers do not answer.
        """

    async def bounds(
        self, partitions: Collection[TopicPartition]
    ) -> Mapping[TopicPartition, tuple[int, int]]:
        """Return (first offset kept, end offset); raise `BrokerUnavailable`, `TopicMissing`."""

    async def partitions(self, topic: str) -> Collection[TopicPartition]:
        """Return what partitions the topic has; raise `BrokerUnavailable`, `TopicMissing`."""

    async def topic_id(self, topic: str) -> str | None:
        """Return which of all topics that ever had this name it is; None if Kafka does not tell.

        The leaders of its partitions are asked: they serve the records.

        Raises:
            BrokerUnavailable: Nobody answers, or we may not know.
            TopicMissing: There is none of this name now.
        """

    async def committed(
        self, partitions: Collection[TopicPartition]
    ) -> Mapping[TopicPartition, GroupOffset]:
        """Return the group's committed offsets, of the partitions that have one."""

    async def commit(self, offsets: Mapping[TopicPartition, GroupOffset]) -> None:
        """Commit offsets under the group's name; raise `BrokerUnavailable`."""

    def lost(self) -> Mapping[TopicPartition, tuple[int, int]]:
        """Return jumps since the last call: partition -> (offset wanted, offset it goes on at).

        Forward: retention took what is between. Back: the log was cut, or made anew.
        """


@dataclass(frozen=True, slots=True)
class Table:
    """One topic's table, and to whom it belongs."""

    topic: str
    group: str
    cluster: str  # the id of the Kafka cluster


@dataclass(frozen=True, slots=True)
class Commit:
    """One version of a table's history."""

    version: int
    metadata: str | None  # the stamp, when it is one of ours


@dataclass(frozen=True, slots=True)
class History:
    """The newest commits of a table, newest first."""

    commits: Sequence[Commit]
    complete: bool  # nothing older is left to ask for, though more may have been cleaned up


@dataclass(frozen=True, slots=True)
class TableFiles:
    """The data files that a table consists of now."""

    count: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Compaction:
    """What a compaction did."""

    removed: int  # small files
    added: int  # the files in their place


class Lake(Protocol):
    """The Delta tables, one per topic.

    Calls for one topic come one at a time; `files`, `compact` and `vacuum`, one at a time among
    themselves, may go on meanwhile.
    """

    async def open(self, table: Table) -> None:
        """Create the topic's table unless it is there, and see that it is this group's.

        Raises:
            LakeUnavailable: Spark does not answer; try again.
            TableRefused: The place cannot be written, holds something else, or is another group's.
        """

    async def claim(self, topic: str, app: str, version: int, stamp: str | None) -> int | None:
        """Append nothing under (`app`, `version`).

        Returns:
            The commit's table version; None if it was skipped, because as high a number stands.

        Raises:
            WriteConflict: Another commit of this app id came between; proves nothing.
            WriteUnclear: No verdict within the time limit.
            TableRefused: The server itself refused it, before anything was committed.
        """

    async def append(
        self, topic: str, batch: Batch, app: str, version: int, stamp: str
    ) -> int | None:
        """Have Spark append the batch's rows of its staged files in one commit.

        Returns and raises like `claim`, and:

        Raises:
            StagedUnreadable: A staged file is gone or torn; nothing was committed by this call.
        """

    async def history(self, topic: str, limit: int) -> History:
        """Return the newest `limit` commits; raise `LakeUnavailable`, `TableRefused`."""

    async def newest(self, topic: str) -> Mapping[int, int]:
        """Return the highest landed offset of each partition that has rows: a scan, so slow."""

    async def files(self, topic: str) -> TableFiles:
        """Return what the table consists of. Raises like `history`."""

    async def compact(self, topic: str) -> Compaction:
        """Merge small files into larger ones. Raises like `history`."""

    async def vacuum(self, topic: str) -> None:
        """Delete files that no version of the retention needs. Raises like `history`."""

    async def release(self, topic: str) -> None:
        """Let go of what is kept for this table; the next call begins anew."""


class Staging(Protocol):
    """Where staged files are: a directory or object-store prefix, one directory per topic."""

    async def prepare(self) -> None:
        """See that it can be written; raise `StagingUnavailable`."""

    async def write(
        self, topic: str, name: str, rows: Mapping[TopicPartition, Sequence[Record]]
    ) -> int:
        """Write a file whole and durably; return its bytes. Raise `StagingUnavailable`."""

    async def delete(self, topic: str, names: Collection[str]) -> None:
        """Delete files; one that is not there is no fault. Raise `StagingUnavailable`."""

    async def present(self, topic: str, names: Collection[str]) -> Collection[str]:
        """Return which of these files are there, whole and readable."""

    async def existing(self, topic: str, names: Collection[str]) -> Collection[str]:
        """Return which of these files are there and not empty; cheap: torn ones are among them."""

    async def collect(self, topic: str, older_than_s: float) -> int:
        """Delete the topic's files of this age, and unfinished ones; return how many."""


@dataclass(frozen=True, slots=True)
class Process:
    """A consumer's process, by its `Hello`."""

    name: str
    sent_ms: int = 0  # wall clock of its machine when it sent that; 0: it did not tell

    @property
    def host(self) -> str:
        """Return the name of its machine, container or pod."""
        return self.name.partition("/")[0]


class Fleet(Protocol):
    """Where consumers run."""

    async def reconcile(self, desired: Collection[Slot]) -> None:
        """See to it that exactly these slots run; start and retire in parallel, gracefully.

        Returns when the orders are given; a slot that exits by itself is started again.

        Raises:
            WorldError: The orders could not be given.
        """

    async def destroy(self, slot: Slot) -> None:
        """End the slot's process without grace; if it is desired it starts again."""

    def watch(self, ended: Callable[[], None]) -> None:
        """Have `ended` called as soon as a process may have ended, until `rest`."""

    async def ended(self, processes: Mapping[Slot, Process]) -> Collection[Slot]:
        """Return the slots whose process, this very one, is known to have ended.

        Asked when `watch` tells, and each second. What is not certain is left out: such a death is
        known by its silence, or by the next Hello.

        Raises:
            WorldError: It cannot be found out now.
        """

    def notice(self, ready: Mapping[Slot, float]) -> None:
        """Learn which slots' processes say that they are ready, and since when, each second.

        In seconds of the loop's clock, of the process that is there now. Who renews consumers one
        by one goes on when the renewed one is ready, and has stayed so.
        """

    def rest(self) -> None:
        """Leave everything as it is, and keep nothing up: another controller orders from now on."""
