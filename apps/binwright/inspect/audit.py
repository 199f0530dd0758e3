"""Compare tables with their topics: every record must have one row, and each row one record.

Offsets are compared with the records that a plain reader gets, not with arithmetic: markers of
transactions and compaction leave offsets without a record. Rows whose records retention has removed
since they landed are correct.

A table of columns and its table of bad records count as one: an offset that is in both, or twice in
either, is doubled; one that is in neither is missing. `bad_records` says what cannot be told of bad
records after a truncation. A table of keys has other rows: see `keyed_tables`.

Offsets without a row that the topic no longer keeps, between offsets that landed, can no longer be
checked. They count as `lost_to_retention` (the records were removed before they landed) unless the
topic shows another cause: its policy is to compact, it has other offsets without a record, or
single offsets without a row, as transactions leave them. Then they are `vanished`: no fault.

Offsets that the topic no longer keeps behind the last that landed are `not_landed`: they are staged
and still to land, or retention removed them before they were read.

A table may keep rows for some days only, and has a property that says so. Older records without a
row are `expired`. Records that one of its filters leaves out, by today's settings of their format,
are `skipped`, and so are those without a value, where it skips them.

Records that a person had erased are `erased`: their places were noted before their rows went.

A topic that was deleted and created again, or a log that was truncated, uses offsets twice. The
stamps of the table's commits name the log of each version (`log_generations`): rows of an `earlier`
topic, and rows that were `rewritten` after a truncation, are counted apart. Where such a version
can no longer be read (vacuumed), rows cannot be assigned to logs: the table is `unchecked` and not
clean.

A table that others wrote has no stamps: its rows are all taken to be of the present topic. Rows in
which a place is NULL, or negative, are `unplaced`, and a fault.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import asdict, dataclass
from typing import Any, Literal

from binwright.inspect.decide.record_columns import RecordColumns
from binwright.inspect.table_extents import (
    Bounds,
    RowCounts,
    TableExtents,
    read_other_extents,
    read_table_extents,
)
from binwright.inspect.topic_extents import (
    MAX_LISTED,
    LeftOut,
    Range,
    RangeScan,
    TopicExtents,
    none_left_out,
    open_topic_extents,
)
from binwright.lake.lake_reader import LakeReader, lake_reader, server_of
from binwright.protocol.model import TopicPartition
from binwright.protocol.names import BAD_SUFFIX
from binwright.runtime.settings.consumer import LakeSettings
from binwright.runtime.settings.kafka import KafkaSettings

CHECK_S = 60.0
LeftOutOf = Callable[[str, str, tuple[tuple[str, ...], ...]], LeftOut]
"""Topic, table, and its filters, former ones too -> what knows the records that they leave out."""


def no_filters(_topic: str, _table: str, _filters: tuple[tuple[str, ...], ...]) -> LeftOut:
    """Fit `LeftOutOf`: no record is left out."""
    return none_left_out


@dataclass(frozen=True, slots=True)
class OtherTable:
    """A table that others wrote."""

    path: str
    columns: RecordColumns


Isolation = Literal["read_committed", "read_uncommitted"]
_NOTHING = RowCounts(rows=0, surplus=0, first=0, last=0, under=0, inside=0, beyond=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionAudit:
    """One partition: the topic's bounds, the table's rows, and their faults."""

    partition: int
    start: int  # first offset that the topic keeps
    end: int  # next offset of the topic
    rows: int  # all in the table, `earlier`, `rewritten` and `bad` ones included
    first: int | None  # lowest offset of this topic in the table, and the highest
    last: int | None
    lost: int  # records in the topic without a row
    lost_ranges: tuple[Range, ...]  # the first of them
    unread: int  # offsets without a row that were not checked for records in time
    surplus: int  # second and further rows of an offset
    doubles: tuple[int, ...]  # the first offsets with more than one row
    beyond: int  # rows at or past the topic's end: not of this topic
    lost_to_retention: int = 0  # offsets without a row that the topic no longer keeps
    vanished: int = 0  # the same, where transactions or compaction explain them
    gone_ranges: tuple[Range, ...] = ()  # the first ranges of either
    not_landed: int = 0  # offsets behind the last that landed, that the topic no longer keeps
    earlier: int = 0  # rows of an earlier topic of this name
    rewritten: int = 0  # rows whose offsets were used again after the log was truncated
    bad: int = 0  # rows that could not be decoded, in the table of bad records
    expired: int = 0  # records in the topic whose rows are older than the table keeps
    skipped: int = 0  # records in the topic without a value, or left out, that the table skips
    erased: int = 0  # records whose rows a person had erased
    stale: int = 0  # in a table of keys: rows that are not of the newest change of their key
    stale_offsets: tuple[int, ...] = ()  # the first of them

    @property
    def clean(self) -> bool:
        """Whether every record has one row, and there is no other row."""
        missing = self.lost or self.unread or self.lost_to_retention
        return not (missing or self.surplus or self.beyond or self.stale)

    def faults(self) -> tuple[str, ...]:
        """Return the faults in words."""
        faults = (
            (self.lost, f"missing ({_listed(self.lost_ranges)})"),
            (self.unread, "without a row that could not be checked in time"),
            (
                self.lost_to_retention,
                f"without a row, and the topic no longer keeps them ({_listed(self.gone_ranges)})",
            ),
            (self.surplus, f"too many ({_listed(self.doubles)})"),
            (self.beyond, f"beyond the topic's end ({self.end})"),
            (self.stale, f"not of the newest change of their key ({_listed(self.stale_offsets)})"),
        )
        return tuple(f"{number} {fault}" for number, fault in faults if number)


@dataclass(frozen=True, slots=True, kw_only=True)
class TableAudit:
    """The audit of one topic in one of its tables."""

    topic: str
    name: str  # of the table
    path: str
    exists: bool  # False: nothing has landed yet, or the path is wrong
    partitions: tuple[PartitionAudit, ...]
    unchecked: str = ""  # why rows cannot be assigned to this topic or an earlier one
    unplaced: int = 0  # rows that name no record: of no topic, partition or offset

    @property
    def clean(self) -> bool:
        """Whether every partition is clean; without a table, whether the topic holds no record."""
        checked = not (self.unchecked or self.unplaced)
        return checked and all(partition.clean for partition in self.partitions)

    def faults(self) -> tuple[str, ...]:
        """Return a line for each fault."""
        absent = () if self.exists else (f"{self.name}: there is no table at {self.path}",)
        unchecked = (
            (f"{self.name}: rows of earlier logs cannot be told apart: {self.unchecked}",)
            if self.unchecked
            else ()
        )
        partitions = (
            f"{self.partition(p)}: {fault}" for p in self.partitions for fault in p.faults()
        )
        unplaced = (
            (f"{self.name}: {self.unplaced} rows have no topic, partition or offset",)
            if self.unplaced
            else ()
        )
        return (*absent, *unchecked, *unplaced, *partitions)

    def partition(self, part: PartitionAudit) -> str:
        """Return the name of a partition, with the table's if that is not the topic's."""
        partition = f"{self.topic}-{part.partition}"
        return partition if self.name == self.topic else f"{self.name}: {partition}"

    def remarks(self) -> tuple[str, ...]:
        """Return a line for each remark: worth knowing, and no fault."""
        parts = self.partitions
        sums = (
            (sum(p.bad for p in parts), f"rows are bad records, in {self.path}{BAD_SUFFIX}"),
            (sum(p.earlier for p in parts), "rows are of an earlier topic of this name"),
            (sum(p.rewritten for p in parts), "rows are of what the log was before it was cut"),
            (
                sum(p.vanished for p in parts),
                "offsets without a row, as transactions, compaction or settings leave them",
            ),
            (sum(p.expired for p in parts), "records are older than the table keeps rows"),
            (sum(p.skipped for p in parts), "records are skipped, as the settings want"),
            (sum(p.erased for p in parts), "records were erased, as a person has ordered"),
            (
                sum(p.not_landed for p in parts),
                "offsets are gone from the topic and have not landed: staged, or lost",
            ),
        )
        return tuple(f"{self.name}: {number} {what}" for number, what in sums if number)


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditResult:
    """The audit of several topics."""

    tables: tuple[TableAudit, ...]

    @property
    def clean(self) -> bool:
        """Whether every record of every topic has one row, and there is no other row."""
        return all(table.clean for table in self.tables)

    @property
    def rows(self) -> int:
        """Count the rows of all tables."""
        return sum(partition.rows for table in self.tables for partition in table.partitions)

    @property
    def bad(self) -> int:
        """Count those of the rows that are bad records."""
        return sum(partition.bad for table in self.tables for partition in table.partitions)

    def faults(self) -> tuple[str, ...]:
        """Return a line for each fault, and for each table that does not exist."""
        return tuple(fault for table in self.tables for fault in table.faults())

    def remarks(self) -> tuple[str, ...]:
        """Return a line for each remark: worth knowing, and no fault."""
        return tuple(remark for table in self.tables for remark in table.remarks())

    def to_json(self) -> dict[str, Any]:
        """Return everything as plain values, with the verdicts."""
        tables = [
            {
                **asdict(table),
                "clean": table.clean,
                "partitions": [{**asdict(p), "clean": p.clean} for p in table.partitions],
            }
            for table in self.tables
        ]
        return {"clean": self.clean, "rows": self.rows, "bad": self.bad, "tables": tables}


async def audit(
    topics: Sequence[str],
    kafka: KafkaSettings,
    lake: LakeSettings,
    *,
    isolation: Isolation = "read_committed",
    check_s: float = CHECK_S,
    strict: bool = False,
    tables_of: Callable[[str], Iterable[str]] = lambda topic: (topic,),
    left_out_of: LeftOutOf = no_filters,
    other: OtherTable | None = None,
) -> AuditResult:
    """Compare each topic with its tables.

    Records written while this runs are not reported as missing; records written before and not yet
    landed are.

    Args:
        topics: By name; their tables have raw records or columns.
        kafka: How to reach the brokers.
        lake: Where the tables are, and which Spark reads them.
        isolation: How the consumers read: which records should have landed.
        check_s: Seconds to read, per partition, the records at offsets without a row.
        strict: Count every offset without a row that the topic no longer keeps as lost.
        tables_of: The names of a topic's tables, by the settings.
        left_out_of: Decodes records that tables of ours with filters have no rows of.
        other: A table that others wrote, which is compared in place of the topics' own.

    Raises:
        BrokerUnavailable: Kafka does not answer.
        TopicMissing: A topic does not exist.
        LakeUnavailable: Spark does not answer, or cannot read a table.
        UserError: There is no table at the path of `other`, or it has no such columns.
    """
    async with AsyncExitStack() as stack:
        extents = await stack.enter_async_context(open_topic_extents(kafka, isolation))
        readers: dict[str, LakeReader] = {}
        tables = []
        names = tables_of if other is None else lambda _: (other.path,)
        leaves_out = left_out_of if other is None else no_filters
        for topic, name in [(each, name) for each in topics for name in names(each)]:
            url = server_of(lake, name)
            if url not in readers:
                readers[url] = await stack.enter_async_context(lake_reader(url))
            path = name if other else lake.table_path(name)
            columns = other.columns if other else None
            one = _OneTable(
                *(topic, name, path, extents, readers[url], check_s, strict, leaves_out, columns)
            )
            tables.append(await one.audit())
    return AuditResult(tables=tuple(tables))


@dataclass(frozen=True, slots=True)
class _OneTable:
    """One topic, its table, and the readers of both."""

    topic: str
    name: str
    path: str
    extents: TopicExtents
    reader: LakeReader
    check_s: float
    strict: bool
    left_out_of: LeftOutOf
    columns: RecordColumns | None  # of a table that others wrote

    async def audit(self) -> TableAudit:
        bounds = await self.extents.bounds(self.topic)
        topic_id = await self.extents.topic_id(self.topic)
        table = await self.reader.run(
            f"read the table at {self.path}",
            lambda spark: (
                read_table_extents(spark, self.path, bounds, self.topic, topic_id)
                if self.columns is None
                else read_other_extents(spark, self.path, bounds, self.topic, self.columns)
            ),
        )
        # Rows of records written while Spark counted are not beyond the topic's end.
        ends = {number: end for number, (_, end) in (await self.extents.bounds(self.topic)).items()}
        seen = table or _absent(bounds)
        numbers = sorted({*bounds, *seen.counts, *seen.earlier, *seen.rewritten})
        scans = await self._scan(numbers, seen)
        lost = self.strict or await self._only_retention(seen, scans)
        partitions = [
            _partition(n, (*bounds.get(n, (0, 0)), ends.get(n, 0)), seen, scans[n], lost=lost)
            for n in numbers
        ]
        return TableAudit(
            topic=self.topic,
            name=self.name,
            path=self.path,
            exists=table is not None,
            partitions=tuple(partitions),
            unchecked=seen.unchecked,
            unplaced=seen.unplaced,
        )

    async def _scan(self, numbers: Sequence[int], seen: TableExtents) -> dict[int, RangeScan]:
        until = asyncio.get_running_loop().time() + self.check_s
        missing, since_ms = seen.missing_ranges, seen.kept_since_ms
        left_out = self.left_out_of(self.topic, self.name, seen.filters)
        return {
            number: await self.extents.scan_ranges(
                TopicPartition(self.topic, number),
                missing.get(number, ()),
                until,
                since_ms,
                skips_tombstones=seen.skips_tombstones,
                left_out=left_out,
            )
            for number in numbers
        }

    async def _only_retention(self, seen: TableExtents, scans: Mapping[int, RangeScan]) -> bool:
        """Whether nothing but retention explains the offsets that have no row and are gone."""
        if not seen.gone:
            return True
        if seen.kept_since_ms is not None or seen.skips_tombstones or seen.filters:
            return False
        single = any(
            len(gone) == 1 for gone_ranges in seen.gone_ranges.values() for gone in gone_ranges
        )
        empty = any(
            _length(seen.missing_ranges.get(n, ())) > scan.records.count + scan.unread
            for n, scan in scans.items()
        )
        return not (single or empty) and await self.extents.compacted(self.topic) is False


def _partition(
    number: int, bound: tuple[int, int, int], seen: TableExtents, scan: RangeScan, *, lost: bool
) -> PartitionAudit:
    start, end, end_later = bound
    count = seen.counts.get(number, _NOTHING)
    gone, assigned = seen.gone.get(number, 0), not seen.unchecked
    earlier, rewritten = seen.earlier.get(number, 0), seen.rewritten.get(number, 0)
    return PartitionAudit(
        partition=number,
        start=start,
        end=end,
        rows=count.rows + earlier + rewritten,
        first=count.first if count.rows else None,
        last=count.last if count.rows else None,
        lost=scan.records.count,
        lost_ranges=tuple(scan.records.ranges),
        unread=scan.unread
        + end
        - start
        - count.inside
        - _length(seen.missing_ranges.get(number, ())),
        surplus=count.surplus if assigned else 0,
        doubles=seen.doubles.get(number, ()) if assigned else (),
        beyond=count.beyond if assigned and count.last >= end_later else 0,
        lost_to_retention=gone if lost else 0,
        vanished=0 if lost else gone,
        gone_ranges=seen.gone_ranges.get(number, ())[:MAX_LISTED],
        not_landed=seen.not_landed.get(number, 0),
        earlier=earlier,
        rewritten=rewritten,
        bad=seen.bad.get(number, 0),
        expired=scan.expired,
        skipped=scan.skipped,
        erased=seen.erased.get(number, 0),
    )


def _absent(bounds: Bounds) -> TableExtents:
    missing_ranges = {
        p: (Range(start, end - 1),) for p, (start, end) in bounds.items() if start < end
    }
    return TableExtents(counts={}, missing_ranges=missing_ranges, doubles={})


def _length(ranges: Sequence[Range]) -> int:
    return sum(map(len, ranges))


def _listed(items: Sequence[Range | int]) -> str:
    return ", ".join(map(str, items)) + (", ..." if len(items) == MAX_LISTED else "")
