"""Did every record land, and only once? The tables against what their topics still hold.

Offsets are compared with what a plain reader sees, not with arithmetic: markers of transactions
and compaction leave holes that no row can fill. Rows whose records retention took since are fine.

Offsets that have no row and that the topic no longer keeps, between what landed, cannot be looked
at any more. They are `lost_to_retention` (records were taken before they landed) unless the topic
shows how else they come about: its policy is to compact, or there are offsets without a record,
or single ones without a row, as transactions leave them. Then they are `vanished`, and no fault.

A topic that was made anew, or a log that was cut, has the offsets of the one before once more. The
stamps of the table's commits tell which version landed which (`generations`): rows of an `earlier`
topic, or of what was `rewritten` after a cut, are counted apart. Where such a version can no longer
be read (vacuumed), rows cannot be told apart: the table is `unchecked`, and not called clean.
"""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import asdict, dataclass
from typing import Any, Literal

from binwright.core.model import TopicPartition
from binwright.lab.kept import Carried, Topics, open_topics
from binwright.lab.landed import Bounds, Counts, Holes, Landed, landed
from binwright.lab.ranges import LISTED, Range
from binwright.lab.spark import LakeReader, lake_reader
from binwright.shell.connect import with_token
from binwright.shell.settings import KafkaSettings, LakeSettings

CHECK_S = 60.0

Isolation = Literal["read_committed", "read_uncommitted"]
_NOTHING = Counts(rows=0, surplus=0, first=0, last=0, under=0, inside=0, beyond=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionAudit:
    """One partition: its topic's bounds, its rows, and what is wrong with them."""

    partition: int
    start: int  # the first offset that the topic keeps
    end: int  # the offset that comes next in the topic
    rows: int  # all in the table, also the earlier and the rewritten ones
    first: int | None  # the lowest offset in the table of this topic, and the highest
    last: int | None
    lost: int  # records that the topic keeps and the table has not
    lost_ranges: tuple[Range, ...]  # the first of them
    unread: int  # offsets without a row, of which there was no time to see whether they matter
    surplus: int  # rows too many: the second and further copies of an offset
    doubles: tuple[int, ...]  # the first offsets that are there twice or more
    beyond: int  # rows that the topic has not come to: they are not its own
    lost_to_retention: int = 0  # offsets without a row that the topic no longer keeps
    vanished: int = 0  # the same, where markers or compaction leave such offsets
    gone_ranges: tuple[Range, ...] = ()  # the first ranges of either
    earlier: int = 0  # rows of an earlier topic of this name
    rewritten: int = 0  # rows whose offsets the log has once more, because it was cut

    @property
    def clean(self) -> bool:
        """Tell whether every record is there once, and nothing else."""
        lacking = self.lost or self.unread or self.lost_to_retention
        return not (lacking or self.surplus or self.beyond)

    def faults(self) -> tuple[str, ...]:
        """Tell in words what is wrong."""
        found = (
            (self.lost, f"missing ({_listed(self.lost_ranges)})"),
            (self.unread, "without a row that could not be checked in time"),
            (
                self.lost_to_retention,
                f"without a row, and the topic no longer keeps them ({_listed(self.gone_ranges)})",
            ),
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
    unchecked: str = ""  # why rows of this topic cannot be told from those of earlier ones

    @property
    def clean(self) -> bool:
        """Tell whether every partition is; a table that is not there may lack nothing."""
        return not self.unchecked and all(partition.clean for partition in self.partitions)

    def faults(self) -> tuple[str, ...]:
        """Tell in words what is wrong, a line each."""
        absent = () if self.exists else (f"{self.topic}: there is no table at {self.path}",)
        doubt = (
            (f"{self.topic}: rows of earlier logs cannot be told apart: {self.unchecked}",)
            if self.unchecked
            else ()
        )
        found = ((p.partition, fault) for p in self.partitions for fault in p.faults())
        return (*absent, *doubt, *(f"{self.topic}-{number}: {fault}" for number, fault in found))

    def remarks(self) -> tuple[str, ...]:
        """Tell in words what is worth knowing and no fault, a line each."""
        parts = self.partitions
        sums = (
            (sum(p.earlier for p in parts), "rows are of an earlier topic of this name"),
            (sum(p.rewritten for p in parts), "rows are of what the log was before it was cut"),
            (
                sum(p.vanished for p in parts),
                "offsets without a row, as transactions or compaction leave them",
            ),
        )
        return tuple(f"{self.topic}: {number} {what}" for number, what in sums if number)


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

    def remarks(self) -> tuple[str, ...]:
        """Tell in words what is worth knowing and no fault, a line each."""
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
        return {"clean": self.clean, "rows": self.rows, "tables": tables}


async def audit(  # noqa: PLR0913 - each is a choice of the caller's
    topics: Sequence[str],
    kafka: KafkaSettings,
    lake: LakeSettings,
    *,
    isolation: Isolation = "read_committed",
    check_s: float = CHECK_S,
    strict: bool = False,
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
        strict: Take every offset without a row that the topic no longer keeps for lost.

    Raises:
        BrokerUnavailable: Kafka does not answer.
        TopicMissing: A topic is not there.
        LakeUnavailable: Spark does not answer, or cannot read a table.
    """
    async with AsyncExitStack() as stack:
        kept = await stack.enter_async_context(open_topics(kafka, isolation))
        readers: dict[str, LakeReader] = {}
        tables = []
        for topic in topics:
            url = with_token(lake.server(topic), lake.token_file)
            if url not in readers:
                readers[url] = await stack.enter_async_context(lake_reader(url))
            path = f"{lake.path.rstrip('/')}/{topic}"
            one = _OneTable(topic, path, kept, readers[url], check_s, strict)
            tables.append(await one.audit())
    return AuditResult(tables=tuple(tables))


@dataclass(frozen=True, slots=True)
class _OneTable:
    """One topic, its table, and who answers about them."""

    topic: str
    path: str
    kept: Topics
    reader: LakeReader
    check_s: float
    strict: bool

    async def audit(self) -> TableAudit:
        bounds = await self.kept.bounds(self.topic)
        topic_id = await self.kept.topic_id(self.topic)
        table = await self.reader.ask(
            f"read the table at {self.path}",
            lambda spark: landed(spark, self.path, bounds, self.topic, topic_id),
        )
        # What was written while Spark counted is not beyond the end.
        ends = {number: end for number, (_, end) in (await self.kept.bounds(self.topic)).items()}
        seen = table or _absent(bounds)
        numbers = sorted({*bounds, *seen.counts, *seen.earlier, *seen.rewritten})
        carried = await self._carried(numbers, seen.holes)
        lost = self.strict or await self._explains_nothing(seen, carried)
        partitions = [
            _partition(n, (*bounds.get(n, (0, 0)), ends.get(n, 0)), seen, carried[n], lost=lost)
            for n in numbers
        ]
        return TableAudit(
            topic=self.topic,
            path=self.path,
            exists=table is not None,
            partitions=tuple(partitions),
            unchecked=seen.unchecked,
        )

    async def _carried(self, numbers: Sequence[int], holes: Holes) -> dict[int, Carried]:
        until = asyncio.get_running_loop().time() + self.check_s
        return {
            number: await self.kept.carried(
                TopicPartition(self.topic, number), holes.get(number, ()), until
            )
            for number in numbers
        }

    async def _explains_nothing(self, seen: Landed, carried: Mapping[int, Carried]) -> bool:
        """Tell whether only retention can have taken what has no row and is gone."""
        if not seen.gone:
            return True
        single = any(len(hole) == 1 for holes in seen.gone_holes.values() for hole in holes)
        empty = any(
            _length(seen.holes.get(n, ())) > found.records.count + found.unread
            for n, found in carried.items()
        )
        return not (single or empty) and await self.kept.compacted(self.topic) is False


def _partition(
    number: int, bound: tuple[int, int, int], seen: Landed, carried: Carried, *, lost: bool
) -> PartitionAudit:
    start, end, end_later = bound
    count = seen.counts.get(number, _NOTHING)
    gone, apart = seen.gone.get(number, 0), not seen.unchecked
    earlier, rewritten = seen.earlier.get(number, 0), seen.rewritten.get(number, 0)
    return PartitionAudit(
        partition=number,
        start=start,
        end=end,
        rows=count.rows + earlier + rewritten,
        first=count.first if count.rows else None,
        last=count.last if count.rows else None,
        lost=carried.records.count,
        lost_ranges=tuple(carried.records.ranges),
        unread=carried.unread + end - start - count.inside - _length(seen.holes.get(number, ())),
        surplus=count.surplus if apart else 0,
        doubles=seen.doubles.get(number, ()) if apart else (),
        beyond=count.beyond if apart and count.last >= end_later else 0,
        lost_to_retention=gone if lost else 0,
        vanished=0 if lost else gone,
        gone_ranges=seen.gone_holes.get(number, ())[:LISTED],
        earlier=earlier,
        rewritten=rewritten,
    )


def _absent(bounds: Bounds) -> Landed:
    holes = {p: (Range(start, end - 1),) for p, (start, end) in bounds.items() if start < end}
    return Landed(counts={}, holes=holes, doubles={})


def _length(ranges: Sequence[Range]) -> int:
    return sum(map(len, ranges))


def _listed(found: Sequence[Range | int]) -> str:
    return ", ".join(map(str, found)) + (", ..." if len(found) == LISTED else "")
