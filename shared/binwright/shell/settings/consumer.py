"""How a consumer stages what it reads, and how tables' writers land it."""

import binascii
from pathlib import Path
from typing import Annotated, Literal, Self
from urllib.parse import urlparse

from pydantic import Field, field_validator, model_validator

from binwright.shell.connect import has_token, shown
from binwright.shell.settings.section import Bytes, Seconds, Section

OrNever = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class ConsumerSettings(Section):
    """How a consumer reads and stages."""

    batch_bytes: Bytes = 16_000_000
    """Rows of this size are staged at once, as one file of a topic."""
    batch_wait_s: Seconds | None = None
    """Fewer are staged after so long; unset: 0.3 of lake.freshness_s, between 0.5 and 3."""
    batch_cap_bytes: Bytes = 64_000_000
    """Memory for rows that are not staged yet; then fetching pauses."""
    start: Literal["earliest", "latest"] = "earliest"
    """Where partitions begin when the group first lands their topic."""
    isolation: Literal["read_committed", "read_uncommitted"] = "read_committed"
    """Whether records of aborted transactions are landed too."""
    report_s: Seconds = 1.0
    """From one report to the controller to the next."""
    write_timeout_s: Seconds = 60.0
    """A commit without a verdict by then is sent again, under the same version."""
    drain_timeout_s: Seconds = 60.0
    """How long a graceful exit may take; half of it until others have taken what was read."""

    @model_validator(mode="after")
    def _cap_holds_a_batch(self) -> Self:
        if self.batch_cap_bytes < self.batch_bytes:
            raise ValueError(
                f"batch_cap_bytes ({self.batch_cap_bytes}) must be at least "
                f"batch_bytes ({self.batch_bytes})"
            )
        return self


class StagingSettings(Section):
    """Where consumers put rows for the tables' writers."""

    path: Annotated[str | None, Field(repr=False)] = None
    """A directory or prefix that consumers and Spark reach; unset: _staging/GROUP in lake.path."""
    max_bytes: Bytes = 2_000_000_000
    """How much of one consumer may wait there to be landed; then it stops fetching."""
    keep_s: Seconds = 345_600.0
    """Files of this age are deleted, landed or not: Kafka has what they held."""

    @field_validator("path")
    @classmethod
    def _is_absolute(cls, value: str | None) -> str | None:
        return value if value is None else absolute(value)


class LakeSettings(Section):
    """Where tables live, which Spark writes them, and how often."""

    path: str = "lake"
    """A directory or object-store prefix that the Spark server can write; one table per topic."""
    spark: Annotated[str, Field(repr=False)] = "sc://localhost:15002"
    """Spark Connect servers, separated by commas: each table has one; tokens are not shown."""
    token_file: Path | None = None
    """A file whose content is the servers' token, read for every session: it may be renewed."""
    freshness_s: Seconds = 5.0
    """How old rows may be when they land: shorter costs more commits and smaller files."""
    batch_bytes: Bytes = 256_000_000
    """Of staged files in one commit."""
    compact_files: Annotated[int, Field(ge=0)] = 200
    """So many small files of a table are merged into larger ones; 0: never."""
    compact_below_bytes: Bytes = 32_000_000
    """A smaller file counts as small."""
    target_file_bytes: Bytes = 128_000_000
    """How large merged files become."""
    log_commits: Annotated[int, Field(ge=0)] = 1_000
    """How many commits a table's log keeps on a local disk; 0: as Delta's retention says."""
    vacuum_interval_s: OrNever = 86_400.0
    """From one deletion of files that no version needs to the next; 0: never."""
    vacuum_retention_s: Seconds = 604_800.0
    """How long files of older versions are kept for readers."""

    @property
    def servers(self) -> tuple[str, ...]:
        """Return the Spark Connect servers, in the order given."""
        return tuple(server.strip() for server in self.spark.split(","))

    def server(self, topic: str) -> str:
        """Return the server that writes the topic's table."""
        return self.servers[binascii.crc32(topic.encode()) % len(self.servers)]

    @field_validator("spark")
    @classmethod
    def _is_connect(cls, value: str) -> str:
        for server in value.split(","):
            parts = urlparse(server.strip())
            if parts.scheme != "sc" or not parts.hostname:
                got = shown(server.strip())
                raise ValueError(f"expected a Spark Connect address, sc://HOST:PORT, got {got!r}")
        return value

    @field_validator("path")
    @classmethod
    def _is_absolute(cls, value: str) -> str:
        return absolute(value)

    @model_validator(mode="after")
    def _one_token(self) -> Self:
        if self.token_file is not None and any(map(has_token, self.servers)):
            raise ValueError("spark holds a token, and token_file is set: leave one of them out")
        return self


def absolute(path: str) -> str:
    """Return a path that means the same for every process: others have other working directories.

    Raises:
        ValueError: It names nothing.
    """
    if not path:
        raise ValueError("must name a directory or prefix")
    return path if urlparse(path).scheme else str(Path(path).absolute())
