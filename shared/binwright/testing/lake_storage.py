"""The storage of fake Delta tables: their logs and rows."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from binwright.protocol.errors import TableRefused
from binwright.protocol.model import TopicPartition
from binwright.protocol.ports.kafka import Record
from binwright.tables.columns import Column, Columns, folded
from binwright.tables.ports import Commit, Table

Rows = Mapping[TopicPartition, Sequence[Record]]
Place = tuple[TopicPartition, int]
"""A row's partition and offset."""
BadRecord = tuple[str | None, TopicPartition, int, int]
"""Topic id, partition, offset and timestamp (ms) of a record that could not be decoded."""

Noted = tuple[bool, str | None, TopicPartition, int, int]
"""Whether it is a bad record, and its place as of a `BadRecord`; rows have no topic id."""


class StagedRows(Protocol):
    """Reads staged files and leases, as Spark does: a `FakeStaging`."""

    def rows(self, topic: str, file: str) -> Rows | None:
        """Return a file's rows; None if it is missing or truncated."""

    def bad(self, topic: str, file: str) -> Collection[Place]:
        """Return partition and offset of its rows that could not be decoded."""


@dataclass
class FakeTable:
    """One table: its log, and its rows in the order in which they landed."""

    owner: Table | None = None  # None: created by hand
    commits: list[Commit] = field(default_factory=lambda: [Commit(0, None)])  # 0: the creation
    writer: str = ""  # by the metadata
    metadata_version: int = 0  # of the last commit that changed the metadata
    stamps: dict[str, int] = field(default_factory=dict)  # lease -> highest number sent
    rows: dict[TopicPartition, list[Record]] = field(default_factory=dict)
    bad_records: set[BadRecord] = field(default_factory=set)  # of a table of them: all its rows
    reasons: dict[BadRecord, tuple[str, str]] = field(default_factory=dict)
    """Class and reason of bad records that were decoded again."""
    noted: dict[str, set[Noted]] = field(default_factory=dict)
    """Operation -> the places that it has noted to erase them."""
    files: int = 0
    oldest: int = 0  # versions before it are cleaned up
    vacuums: int = 0
    columns: dict[str, tuple[Column, str]] = field(default_factory=dict)
    """Folded name -> a column that it was given, and its comment."""
    dropped: str = ""  # the name of a column that a person dropped, or gave another name

    def commit(self, rows: Rows, stamp: str | None) -> int:
        """Land `rows`; return the table's new version."""
        for partition, records in rows.items():
            self.rows.setdefault(partition, []).extend(records)
        self.files += bool(rows)
        return self.add_commit(stamp)

    def change_metadata(self, stamp: str | None = None, writer: str | None = None) -> int:
        """Commit metadata, as a claim or a person's ALTER TABLE does; return the new version."""
        self.writer = self.writer if writer is None else writer
        self.metadata_version = self.add_commit(stamp)
        return self.metadata_version

    def add_columns(self, columns: Columns, comment: str = "") -> None:
        """Add those that it has not, with a commit of metadata.

        Raises:
            TableRefused: It has one of another type, that of no settings.
        """
        of_settings = (self.owner and self.owner.columns) or ()
        for column in columns:
            known, _ = self.columns.get(folded(column.name), (column, ""))
            if known.type != column.type and known not in of_settings:
                raise TableRefused(f"{known.name} is {known.type}, not {column.type}")
        new = {folded(c.name): (c, comment) for c in columns if folded(c.name) not in self.columns}
        if new:
            self.columns |= new
            self.change_metadata()

    def add_commit(self, metadata: str | None = None) -> int:
        """Add a commit without rows, as by another client; return its version."""
        self.commits.append(Commit(len(self.commits), metadata))
        return len(self.commits) - 1


class FakeStorage:
    """The storage that all Spark servers share; it and writes in flight outlive each server."""

    def __init__(self) -> None:
        self.tables: dict[str, FakeTable] = {}

    def create(self, topic: str, owner: Table | None = None) -> FakeTable:
        """Return the topic's table; create it if there is none."""
        return self.tables.setdefault(topic, FakeTable(owner))

    def table(self, topic: str) -> FakeTable:
        """Return the topic's table; raise `TableRefused` if there is none."""
        if topic not in self.tables:
            raise TableRefused(f"there is no table of {topic}")
        return self.tables[topic]

    def drop(self, topic: str) -> None:
        """Remove the table; the next `open` creates another."""
        del self.tables[topic]

    def forget(self, topic: str, before: int) -> None:
        """Clean up the log: the history no longer has versions before `before`."""
        self.tables[topic].oldest = before

    def landed(self) -> Mapping[TopicPartition, Counter[int]]:
        """Return partition -> offset -> how often the tables hold it, those of bad records too."""
        landed: dict[TopicPartition, Counter[int]] = {}
        for table in self.tables.values():
            for partition, records in table.rows.items():
                landed.setdefault(partition, Counter()).update(r.offset for r in records)
        return landed
