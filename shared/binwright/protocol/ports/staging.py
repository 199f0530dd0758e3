"""The staging storage: consumers write files to it, which tables' writers land."""

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from binwright.protocol.model import TopicPartition
from binwright.protocol.ports.kafka import Record


class Staging(Protocol):
    """A directory or object-store prefix, with one directory per topic."""

    async def prepare(self) -> None:
        """Verify that it can be written; raise `StagingUnavailable`."""

    async def write(
        self, topic: str, name: str, rows: Mapping[TopicPartition, Sequence[Record]]
    ) -> int:
        """Write a file atomically and durably; return its bytes. Raise `StagingUnavailable`."""

    async def delete(self, topic: str, names: Collection[str]) -> None:
        """Delete files, also if some do not exist. Raise `StagingUnavailable`."""

    async def readable(self, topic: str, names: Collection[str]) -> Collection[str]:
        """Return those of these files that are complete and readable."""

    async def existing(self, topic: str, names: Collection[str]) -> Collection[str]:
        """Return those of these files that exist and are not empty; cheap: may be incomplete."""

    async def collect(self, topic: str, older_than_s: float) -> int:
        """Delete the topic's files of this age or older, and unfinished ones; return how many."""
