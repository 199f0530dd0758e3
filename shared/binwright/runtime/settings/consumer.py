"""Settings of consumers: reading, staging, and writing tables."""

import binascii
from pathlib import Path
from typing import Annotated, Literal, Self
from urllib.parse import urlparse

from pydantic import Field, field_validator, model_validator

from binwright.protocol.section import Bytes, KeepDays, Seconds, Section
from binwright.runtime.spark_url import (
    CA_FILE,
    CLEARTEXT,
    has_tls,
    has_token,
    redacted_url,
    with_parameters,
    with_token,
)
from binwright.tables.registration import CatalogName

LONGEST_WORK_S = 4 * 3600.0
"""How long a compaction may take: a vacuum deletes no file that was written in that time."""
FEWEST_COMMITS = 64
"""Commits of which one at least holds the offsets of all partitions."""
CLUSTERED_FILES = 32
"""Files over which rows of a clustered table are spread by their values: a query of one value reads
one of so many, and each row is written once more."""
LONGEST_WRITE = 16
"""Times `consumer.write_timeout_s`: the limit of a write that was sent again and again."""

OrNever = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class ConsumerSettings(Section):
    """How a consumer reads and stages."""

    batch_bytes: Bytes = 16_000_000
    """Size of a batch: rows of this size become one staged file of their topic; late rows of a
    backlog wait until they are half of `batch_cap_bytes`, for 2 intervals at most."""
    batch_wait_s: Seconds | None = None
    """From one staging of a topic to the next; unset: 0.75 of lake.freshness_s, from 0.5 to 10."""
    batch_cap_bytes: Bytes = 160_000_000
    """Memory for rows that are not staged yet; fetching pauses when it is full. Less where
    the process has little memory."""
    batch_inflated_bytes: Bytes = 128_000_000
    """Inflated size up to which a record batch is decoded; a larger one is kept in a file."""
    value_memory_bytes: Annotated[Bytes, Field(ge=1_000_000)] | None = None
    """Memory that a value may take while it is decoded: one that would take more is a bad record.
    Unset: 5/16 of what the process has beyond 250 MB, and 256 MB at most."""
    start: Literal["earliest", "latest"] = "earliest"
    """Where reading begins in partitions that the group has never landed."""
    isolation: Literal["read_committed", "read_uncommitted"] = "read_committed"
    """`read_uncommitted`: records of aborted transactions are landed too."""
    zone: Annotated[str | None, Field(max_length=249)] = None
    """Where this consumer runs, as brokers name it in `broker.rack`: it reads from a replica there,
    if brokers allow that. Unset or empty: not known."""
    report_s: Seconds = 1.0
    """Interval between reports to the controller."""
    write_timeout_s: Seconds = 60.0
    """A commit without an outcome by then is given up: its writer finds out whether it landed, and
    waits twice as long for the next one."""
    drain_timeout_s: Seconds = 60.0
    """Time for a graceful exit; half of it for other consumers to take the partitions over."""

    @field_validator("zone")
    @classmethod
    def _known_zone(cls, value: str | None) -> str | None:
        return value or None  # a variable from a label that a pod does not have is empty

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
    """Staged files are in a directory of the group's name in it, which Spark reaches too; unset:
    _staging in lake.path."""
    max_bytes: Bytes = 2_000_000_000
    """Bytes that one consumer announced, or found in the place when it began to read a topic, and
    that have not landed; a topic may take what is left free."""
    retention_s: Seconds = 345_600.0
    """Age at which staged files are deleted whose rows have landed or are still in Kafka."""

    @field_validator("path")
    @classmethod
    def _is_absolute(cls, value: str | None) -> str | None:
        return value if value is None else absolute(value)


class LakeSettings(Section):
    """Where tables live, which Spark writes them, and how often."""

    path: str = "lake"
    """A directory or object-store prefix that the Spark server can write, with a directory for each
    table."""
    spark: Annotated[str, Field(repr=False)] = "sc://localhost:15002"
    """Spark Connect servers, separated by commas; each table is written by one of them."""
    token_file: Path | None = None
    """A file with the servers' token; read for every session, so that it can be renewed."""
    allow_cleartext_token: bool = False
    """Whether the token may go to another machine as it is, without TLS: only in a network where
    nobody else reads.
    """
    ca_file: Path | None = None
    """PEM file of the authority that signed the servers' certificates (use_ssl=true in spark);
    unset: the public ones. Read for every session.
    """
    commit: Literal["auto", "append"] = "auto"
    """How staged files get into tables. `auto`: as they are, where Spark's server has binwright's
    extension and the table takes them so; else, and with `append`, Spark writes their rows again.
    """
    freshness_s: Seconds = 5.0
    """Age of rows when they land: a shorter one costs more commits and smaller files."""
    batch_bytes: Bytes = 256_000_000
    """Size of the staged files in one commit."""
    compact_files: Annotated[int, Field(ge=0)] = 200
    """Files that a reader opens, at most, beyond those that the same bytes need: then small ones
    are merged. 0: never."""
    compact_below_bytes: Bytes = 32_000_000
    """A file below this size counts as small."""
    target_file_bytes: Bytes = 128_000_000
    """Size of the files that compaction writes."""
    log_commits: Annotated[int, Field(ge=0)] = 1_000
    """Commits that a table's log keeps on a local disk, 64 or more; 0: by Delta's retention."""
    vacuum_interval_s: OrNever = 86_400.0
    """Interval between vacuums, which delete files that no kept version needs; 0: never."""
    vacuum_retention_s: Annotated[float, Field(ge=LONGEST_WORK_S)] = 604_800.0
    """Time for which files of older versions are kept for readers; 4 hours or more."""
    keep_days: KeepDays = 0.0
    """Days for which tables keep rows, by the record's timestamp: older ones are deleted before a
    vacuum. 0: for ever. An entry of `tables` may have another number.
    """
    register_as: CatalogName | None = None
    """The name by which tables are registered in a catalog of Spark, as external ones:
    `schema.{table}`, or `catalog.schema.{table}`. Unset: they are not. An entry of `tables` may
    have another one.
    """

    @property
    def cluster_bytes(self) -> int:
        """Return the size of what is sorted together in a table that is clustered."""
        return CLUSTERED_FILES * self.target_file_bytes

    @property
    def servers(self) -> tuple[str, ...]:
        """Return the Spark Connect servers, in the order given."""
        return tuple(server.strip() for server in self.spark.split(","))

    def table_path(self, table: str) -> str:
        """Return where the table of this name is."""
        return f"{self.path.rstrip('/')}/{table}"

    def server(self, table: str) -> str:
        """Return the server that writes the table of this name."""
        return self.servers[binascii.crc32(table.encode()) % len(self.servers)]

    def connection(self, server: str) -> str:
        """Return the URL of a session on one of the servers, with the token that it wants now.

        Raises:
            OSError: The token's file cannot be read.
            ValueError: It is empty.
        """
        more = {CLEARTEXT: "true"} if self.allow_cleartext_token else {}
        if self.ca_file is not None:
            more[CA_FILE] = str(self.ca_file)
        return with_parameters(with_token(server, self.token_file), **more)

    @field_validator("log_commits")
    @classmethod
    def _keeps_a_whole_stamp(cls, value: int) -> int:
        if 0 < value < FEWEST_COMMITS:
            raise ValueError(f"must be 0, or at least {FEWEST_COMMITS}, got {value}")
        return value

    @field_validator("spark")
    @classmethod
    def _is_connect(cls, value: str) -> str:
        for server in value.split(","):
            parts = urlparse(server.strip())
            if parts.scheme != "sc" or not parts.hostname:
                got = redacted_url(server.strip())
                raise ValueError(f"expected a Spark Connect address, sc://HOST:PORT, got {got!r}")
        return value

    @field_validator("path")
    @classmethod
    def _is_absolute(cls, value: str) -> str:
        return absolute(value)

    @model_validator(mode="after")
    def _an_authority_is_for_tls(self) -> Self:
        if self.ca_file is not None and not all(map(has_tls, self.servers)):
            raise ValueError(
                "ca_file would be ignored: add /;use_ssl=true to each address of spark"
            )
        return self

    @model_validator(mode="after")
    def _one_token(self) -> Self:
        if self.token_file is not None and any(map(has_token, self.servers)):
            raise ValueError("spark holds a token, and token_file is set: leave one of them out")
        return self


def absolute(path: str) -> str:
    """Return an absolute path or a URL: working directories differ between processes.

    Raises:
        ValueError: The path is empty.
    """
    if not path:
        raise ValueError("must name a directory or prefix")
    return path if urlparse(path).scheme else str(Path(path).absolute())
