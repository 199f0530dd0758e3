"""Did every record land, and only once? The tables against what their topics still hold.

Offsets are compared with what a plain reader sees, not with arithmetic: markers of transactions
and compaction leave holes that no row can fill. Rows whose records retention took since are fine.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from binwright.core.model import TopicPartition
from binwright.lab.kept import Carried, Topics, open_topics
from binwright.lab.landed import Bounds, Counts, Landed, landed
from binwright.lab.ranges import LISTED, Range
from binwright.lab.spark import LakeReader, lake_reader
from binwright.shell.settings import KafkaSettings, LakeSettings

CHECK_S = 60.0

Isolation = Literal["read_committed", "read_uncommitted"]
_NOTHING = Counts(rows=0, surplus=0, first=0, last=0, inside=0, beyond=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionAudit:
    """One partition: its topic's bounds, its rows, and what is wrong with them."""

    partition: int
    start: int  # the first offset that the topic keeps
    end: int  # the offset that comes next in the topic
    rows: int
    first: int | None  # the lowest offset in the table, and the highest
    last: int | None
    lost: int  # records that the topic keeps and the table has not
    lost_ranges: tuple[Range, ...]  # the first of them
    unread: int  # offsets without a row, of which there was no time to see whether they matter
    surplus: int  # rows too many: the second and further copies of an offset
    doubles: tuple[int, ...]  # the first offsets that are there twice or more
    beyond: int  # rows that the topic has not come to: it was made anew, or they are not its own

    @property
    def clean(self) -> bool:
        """Tell whether every record is there once, and nothing else."""
        return not (self.lost or self.unread or self.surplus or self.beyond)

    def faults(self) -> tuple[str, ...]:
        """Tell in words what is wrong."""
        found = (
            (self.lost, f"missing ({_listed(self.lost_ranges)})"),
            (self.unread, "without a row that could not be checked in time"),
            (self.surplus, f"too many ({_listed(self.doubles)})"),
            (self.beyond, f"beyond the topic's end ({self.end})"),
        )
        return tuple(f"{number} {fault}" for number, fault in found if number)


@dataclass(frozen=True, slots=True, kw_only=True)
class TableAudit:
    """One topic and its table."""

    topic: str
    path: str
    exists: bool  # False: nothing has landed yet, or the path is wrong
    partitions: tuple[PartitionAudit, ...]

    @property
    def clean(self) -> bool:
        """Tell whether every partition is; a table that is not there may lack nothing."""
        return all(partition.clean for partition in self.partitions)

    def faults(self) -> tuple[str, ...]:
        """Tell in words what is wrong, a line each."""
        absent = () if self.exists else (f"{self.topic}: there is no table at {self.path}",)
        found = ((p.partition, fault) for p in self.partitions for fault in p.faults())
        return (*absent, *(f"{self.topic}-{number}: {fault}" for number, fault in found))


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditResult:
    """All topics that were asked for."""

    tables: tuple[TableAudit, ...]

    @property
    def clean(self) -> bool:
        """Tell whether every record of every topic is there once, and nothing else."""
        return all(table.clean for table in self.tables)

    @property
    def rows(self) -> int:
        """Count the rows of all tables."""
        return sum(partition.rows for table in self.tables for partition in table.partitions)

    def faults(self) -> tuple[str, ...]:
        """Tell in words what is wrong, a line each; an absent table too, even one not missed."""
        return tuple(fault for table in self.tables for fault in table.faults())

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
        return {"clean": self.clean, "rows": self.rows, "tables": tables}


async def audit(
    topics: Sequence[str],
    kafka: KafkaSettings,
    lake: LakeSettings,
    *,
    isolation: Isolation = "read_committed",
    check_s: float = CHECK_S,
) -> AuditResult:
    """Compare each topic with its table.

    Records written while this runs are not missed. Where landing still goes on, what has not landed
    yet is told as missing.

    Args:
        topics: By name; the table of a topic is at `lake.path` / topic.
        kafka: How to reach the brokers.
        lake: Where the tables are, and which Spark reads them.
        isolation: How the consumers read, so which records should have landed.
        check_s: How long to look, per topic, for records at offsets that have no row.

    Raises:
        BrokerUnavailable: Kafka does not answer.
        TopicMissing: A topic is not there.
        LakeUnavailable: Spark does not answer, or cannot read a table.
    """
    async with open_topics(kafka, isolation) as kept, lake_reader(lake.spark) as reader:
        tables = [await _table(t, f"{lake.path}/{t}", kept, reader, check_s) for t in topics]
    return AuditResult(tables=tuple(tables))


async def _table(
    topic: str, path: str, kept: Topics, reader: LakeReader, check_s: float
) -> TableAudit:
    bounds = await kept.bounds(topic)
    table = await reader.ask(f"read the table at {path}", lambda spark: landed(spark, path, bounds))
    # What was written while Spark counted is not beyond the end.
    ends = {number: end for number, (_, end) in (await kept.bounds(topic)).items()}
    until = asyncio.get_running_loop().time() + check_s
    seen = table or _absent(bounds)
    partitions = []
    for number in sorted(bounds.keys() | seen.counts.keys()):
        holes = seen.holes.get(number, ())
        carried = await kept.carried(TopicPartition(topic, number), holes, until)
        bound = (*bounds.get(number, (0, 0)), ends.get(number, 0))
        partitions.append(_partition(number, bound, seen, carried))
    return TableAudit(
        topic=topic, path=path, exists=table is not None, partitions=tuple(partitions)
    )


def _partition(
    number: int, bound: tuple[int, int, int], seen: Landed, carried: Carried
) -> PartitionAudit:
    start, end, end_later = bound
    count = seen.counts.get(number, _NOTHING)
    listed = sum(map(len, seen.holes.get(number, ())))
    return PartitionAudit(
        partition=number,
        start=start,
        end=end,
        rows=count.rows,
        first=count.first if count.rows else None,
        last=count.last if count.rows else None,
        lost=carried.records.count,
        lost_ranges=tuple(carried.records.ranges),
        unread=carried.unread + end - start - count.inside - listed,
        surplus=count.surplus,
        doubles=seen.doubles.get(number, ()),
        beyond=count.beyond if count.last >= end_later else 0,
    )


def _absent(bounds: Bounds) -> Landed:
    holes = {p: (Range(start, end - 1),) for p, (start, end) in bounds.items() if start < end}
    return Landed(counts={}, holes=holes, doubles={})


def _listed(found: Sequence[Range | int]) -> str:
    return ", ".join(map(str, found)) + (", ..." if len(found) == LISTED else "")
