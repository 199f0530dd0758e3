"""What the parts of a consumer report: frozen values, all applied by `Ingest.apply_event`."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from binwright.protocol.landing import OffsetRange
from binwright.protocol.model import TopicPartition


@dataclass(frozen=True, slots=True)
class PositionFound:
    """A partition is read from this offset on: looked up, or because its log changed."""

    partition: TopicPartition
    offset: int
    cut: bool = False  # its log was truncated; this is its end


@dataclass(frozen=True, slots=True)
class StagingStarted:
    """A file with rows up to these offsets is being written."""

    ends: Mapping[TopicPartition, int]


@dataclass(frozen=True, slots=True)
class FileAnnounced:
    """The file with rows of these partitions is announced."""

    partitions: Collection[TopicPartition]


@dataclass(frozen=True, slots=True)
class PartAnnounced:
    """The files with these offsets of a split partition are announced."""

    partition: TopicPartition
    range: OffsetRange


@dataclass(frozen=True, slots=True)
class FileDropped:
    """The file with rows of these partitions is not written: their topic was recreated."""

    partitions: Collection[TopicPartition]


@dataclass(frozen=True, slots=True)
class TableLost:
    """Another writer has claimed a table of this topic."""

    topic: str


@dataclass(frozen=True, slots=True)
class WritingStopped:
    """The tables of this topic are no longer written, as commanded."""

    topic: str


@dataclass(frozen=True, slots=True)
class RowsMissing:
    """A table's writer needs these partitions read again, from these offsets on."""

    table: str
    committed: Mapping[TopicPartition, int]


Event = (
    PositionFound
    | StagingStarted
    | FileAnnounced
    | PartAnnounced
    | FileDropped
    | TableLost
    | WritingStopped
    | RowsMissing
)
Emit = Callable[[Event], None]
