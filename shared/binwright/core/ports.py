"""What the services need from the world. Adapters give it; so do the fakes in `testing`."""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from binwright.core.model import Slot, TopicPartition


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

    async def read(self, timeout_s: float) -> Sequence[Record]:
        """Return the next records, or none after `timeout_s`; raise `BrokerUnavailable`."""

    async def close(self) -> None:
        """Let go of connections."""


class Bus(Protocol):
    """Control topics: small messages to one partition, in order."""

    async def publish(self, topic: str, partition: int, key: bytes, value: bytes) -> int:
        """Append durably, in the order of calls, and return the offset.

        Raises:
            BrokerUnavailable: Not confirmed in time; it may or may not be there.
            TopicMissing: The topic or partition does not exist.
        """

    async def end(self, topic: str, partition: int) -> int:
        """Return the offset that the next record will get; raise like `publish`."""

    async def reader(self, topic: str, partition: int, offset: int) -> Reader:
        """Read from `offset` (or from the oldest record there is, if that is later) on."""

    async def partitions(self, topic: str) -> int:
        """Return how many partitions the topic has; 0 when there is no such topic."""

    async def ensure(self, topic: str, partitions: int, config: Mapping[str, str]) -> None:
        """Create the topic, or grow it to at least `partitions`; `config` is for a new one."""


@dataclass(frozen=True, slots=True)
class LogSample:
    """One partition on its leader at one moment."""

    leader: int
    start: int  # first offset kept
    end: int  # offset of the next record
    size: int | None  # bytes of the log as stored; None: the leader did not say
    at: float | None = field(default=None, compare=False)  # s, monotonic; None: just now
    batch_bytes_per_record: float | None = None  # of a batch written lately, where asked for


@dataclass(frozen=True, slots=True)
class Selection:
    """Which topics are measured: those named, and those whose whole name fits a pattern."""

    topics: frozenset[str] = frozenset()
    pattern: re.Pattern[str] | None = None
    never: frozenset[str] = frozenset()  # not by pattern, as Kafka's own are not

    def fits(self, topic: str) -> bool:
        """Whether the pattern takes this topic, which is not one of Kafka's internal ones."""
        if self.pattern is None or topic in self.never or topic.startswith("__"):
            return False
        return self.pattern.fullmatch(topic) is not None

    def including(self, topics: Iterable[str]) -> "Selection":
        """Return this selection with more topics named."""
        return replace(self, topics=self.topics.union(topics))


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
class Hint:
    """A committed offset and what it refers to: for people's tools and a quick start."""

    offset: int  # the next offset to land
    version: int  # of the writer's own last commit
    table: str  # the table's id: a hint about another table is void
    topic_id: str | None = None  # as is one about another topic of the same name


class Intake(Protocol):
    """A consumer's data partitions: assigned by hand, fetched while started."""

    async def start(self, partition: TopicPartition, offset: int) -> None:
        """Fetch from `offset` on; the other partitions are not disturbed."""

    def stop(self, partition: TopicPartition) -> None:
        """Quit fetching at once; nothing of it is returned any more."""

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

    async def topic_id(self, topic: str) -> str | None:
        """Return which of all topics that ever had this name it is; None if Kafka does not tell.

        Raises:
            BrokerUnavailable: Nobody answers, or we may not know.
            TopicMissing: There is none of this name now.
        """

    async def hints(self, partitions: Collection[TopicPartition]) -> Mapping[TopicPartition, Hint]:
        """Return the readable hints among the group's committed offsets."""

    async def hint(self, hints: Mapping[TopicPartition, Hint]) -> None:
        """Commit offsets under the group's name; raise `BrokerUnavailable`."""

    def lost(self) -> Mapping[TopicPartition, tuple[int, int]]:
        """Return holes met since the last call: partition -> (wanted, first offset there was)."""


@dataclass(frozen=True, slots=True)
class Commit:
    """One version of a table's history."""

    version: int
    metadata: str | None  # the stamp, when it is one of ours


@dataclass(frozen=True, slots=True)
class History:
    """A stretch of a table's history, newest first; `complete` when nothing older is wanted."""

    commits: Sequence[Commit]
    complete: bool  # False: the table no longer remembers as far back as was asked


class Lake(Protocol):
    """The Delta tables, one per topic. One call at a time."""

    async def open(self, topic: str) -> str:
        """Create the topic's table unless it is there; return its id.

        Raises:
            LakeUnavailable: Spark does not answer; try again.
            UserError: The place cannot be written, or holds something else.
        """

    async def claim(self, topic: str, app: str, version: int) -> int | None:
        """Append nothing under (`app`, `version`): a claim or a fence.

        Returns:
            The commit's table version; None if it was skipped, because as high a number stands.

        Raises:
            WriteConflict: Another commit of this app id came between; proves nothing.
            WriteUnclear: No verdict within the time limit.
        """

    async def append(
        self,
        topic: str,
        rows: Mapping[TopicPartition, Sequence[Record]],
        app: str,
        version: int,
        stamp: str,
    ) -> int | None:
        """Append `rows` in one commit; returns and raises like `claim`."""

    async def history(self, topic: str, after: int) -> History:
        """Return the versions later than `after`; raise `LakeUnavailable`."""

    async def newest(
        self, topic: str, partitions: Collection[TopicPartition]
    ) -> Mapping[TopicPartition, int]:
        """Return the highest landed offset of each partition that has rows."""


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

    def rest(self) -> None:
        """Leave everything as it is, and keep nothing up: another controller orders from now on."""
