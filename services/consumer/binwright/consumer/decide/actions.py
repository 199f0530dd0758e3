"""The actions that the hand-over returns, for the consumer's service to carry out in order."""

from dataclasses import dataclass

from binwright.protocol.messages import Goodbye, Started, Stopped
from binwright.protocol.model import TopicPartition


@dataclass(frozen=True, slots=True)
class Reply:
    """Publish this to metadata partition 0."""

    message: Stopped | Started | Goodbye


@dataclass(frozen=True, slots=True)
class ReportNow:
    """Publish a `Report` at once."""


@dataclass(frozen=True, slots=True)
class Fetch:
    """Read this partition from `offset` on; None: look up where to begin and call `located`."""

    partition: TopicPartition
    offset: int | None
    revision: int


@dataclass(frozen=True, slots=True)
class StopFetching:
    """Stop fetching this partition, and drop its rows that are not being staged."""

    partition: TopicPartition


@dataclass(frozen=True, slots=True)
class StartWriter:
    """Become the writer of these tables."""

    topics: tuple[str, ...]
    term: int  # of the controller that grants the role


@dataclass(frozen=True, slots=True)
class StopWriter:
    """Wait for the commit in flight, stop writing these tables, and call `writing_stopped`."""

    topics: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Exit:
    """End the process, without any further message."""

    reason: str


Action = Reply | ReportNow | Fetch | StopFetching | StartWriter | StopWriter | Exit
