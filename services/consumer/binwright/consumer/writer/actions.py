"""Runs the requests of a table's writer on Spark, Kafka and the staging location.

They run one at a time, and each has one outcome.
"""

import asyncio
from collections.abc import Awaitable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from math import inf
from types import MappingProxyType

import structlog

from binwright.consumer.decide.bad_share import BadShare
from binwright.consumer.decide.columns import united
from binwright.consumer.decide.new_columns import (
    ADDED,
    MOST_ADDED,
    growth,
    proposed_by,
)
from binwright.consumer.decide.writer.states import (
    Append,
    ClaimTable,
    Committed,
    Conflict,
    DeleteOtherLeases,
    Done,
    HistoryRead,
    LeaseGone,
    Outcome,
    QueryKafka,
    ReadHistory,
    ReadLandedOffsets,
    Refused,
    Request,
    Unclear,
    Unreadable,
    WriteLease,
    WriterConfig,
)
from binwright.consumer.staging.added_columns import publish_added
from binwright.consumer.writer.context import WriterContext
from binwright.consumer.writer.kafka_queries import KAFKA_TIMEOUT_S, KafkaQueries
from binwright.protocol.errors import (
    BrokerUnavailable,
    LakeUnavailable,
    StagedUnreadable,
    StagingUnavailable,
    TableRefused,
    TopicMissing,
    WriteConflict,
    WriteUnclear,
)
from binwright.protocol.model import TopicPartition, newest
from binwright.runtime.clock import loop_s, wall_ms
from binwright.tables.columns import Column, Columns, columns_text
from binwright.tables.ports import Batch, FileSlice, Footer, Lake, PartitionOffsets

log = structlog.get_logger()

REREAD_S = 300.0
"""Between two times that records are read again which the table does not take as they are."""

GROW_S = 60.0
"""Between two looks at a table's columns while files propose the same ones again."""

_WITHOUT_VERDICT = (
    WriteUnclear,
    LakeUnavailable,
    BrokerUnavailable,
    TopicMissing,
    StagingUnavailable,
)


NONE_COMMITTED: PartitionOffsets = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class _BadEnds:
    """The highest offsets of bad records: topic id -> partition -> offset.

    Of a partition that has none from `since` on there is none.
    """

    since: PartitionOffsets = field(default_factory=dict)
    highest: Mapping[str | None, PartitionOffsets] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Grown:
    """When the table was last looked at for columns that files proposed, and which those were."""

    at: float
    proposed: frozenset[Column]
    is_full: bool  # it has no room for more


@dataclass(slots=True)
class RequestRunner:
    """Runs the requests of one table's writer."""

    lake: Lake
    context: WriterContext
    config: WriterConfig
    table: str = field(init=False)  # its name
    columns: Columns | None = field(init=False)  # of its rows; None: raw records
    _kafka: KafkaQueries = field(init=False)
    _share: BadShare = field(init=False)  # of its newest records that are bad
    _known: set[Columns | None] = field(init=False)  # columns of files that the table takes
    _bad_ends: "_BadEnds | None" = None
    """The highest offsets of bad records when the table was claimed; None: not known."""
    _committed: PartitionOffsets = field(default_factory=dict)
    _grown: _Grown | None = None  # None: not yet since the claim
    _unaddable: set[str] = field(default_factory=set)  # names that the table refused as columns
    _read_again_at: dict[str, float] = field(default_factory=dict)
    """Why records were read again which the table does not take -> when."""

    def __post_init__(self) -> None:
        """Know what the table was opened with."""
        table = self.config.table
        self.table, self.columns = table.name, table.columns
        self._share = BadShare(self.config.bad_share)
        self._known = {self.columns}
        self._kafka = KafkaQueries(self.context, self.table)

    async def run(
        self,
        request: Request,
        topic_ids: Mapping[str, str | None],
        committed: PartitionOffsets = NONE_COMMITTED,
    ) -> Outcome:
        """Run a request once and return its outcome; errors of Spark and Kafka are outcomes, too.

        Args:
            request: What to do.
            topic_ids: The ids of the topics that the writer lands; for `ReadLandedOffsets`.
            committed: Up to where the table has its partitions; for `Append`.
        """
        self._committed = committed
        try:
            return await self._dispatch(request, topic_ids)
        except WriteConflict as exc:
            return Conflict(str(exc))
        except _WITHOUT_VERDICT as exc:
            return Unclear(str(exc))
        except TableRefused as exc:
            if self.config.fixed is not None:
                # A person may have altered a column that no settings name: look at all again.
                self._grown, self._known = None, {self.columns}
            return Refused(str(exc))

    async def altered(self) -> str:
        """Return what a person changed: a table is gone, or a column is; empty if nothing is."""
        known = dict.fromkeys(c for columns in self._known if columns for c in columns)
        try:
            await self.lake.check(self.table, tuple(known))
        except TableRefused as exc:
            return str(exc)
        except LakeUnavailable:
            return ""
        return ""

    async def _dispatch(self, request: Request, topic_ids: Mapping[str, str | None]) -> Outcome:
        match request:
            case ReadHistory(limit=limit):
                history = await self.lake.history(self.table, limit)
                return HistoryRead(history.commits, history.complete)
            case WriteLease(lease=lease):
                await self.context.staging.write_lease(self.table, lease)
                return Done()
            case DeleteOtherLeases(lease=lease):
                await self.context.staging.delete_other_leases(self.table, lease)
                return Done()
            case ClaimTable(writer=writer, stamp=stamp):
                self._bad_ends = None
                await self.lake.claim(self.table, writer, stamp)
                return Committed()
            case QueryKafka():
                return await self._kafka.state(request)
            case ReadLandedOffsets():
                highest = await self.lake.highest_offsets(self.table)
                return await self._kafka.landed_offsets(highest, topic_ids)
            case Append():
                return await self._append(request)

    async def _append(self, request: Append) -> Outcome:
        batch, lease = request.batch, request.lease
        if not await self._holds(lease):
            return LeaseGone()
        footers = await self.context.staging.footers(self.table, batch.files)
        if lost := _not_as_announced(batch, footers):
            return Unreadable(lost, "gone, damaged, or not what was announced")
        if (fixed := self.config.fixed) is not None and batch.slices:
            await self._grow(fixed, footers.values())
        if unfit := await self._unfit(batch, footers):
            return unfit
        share = self._share.after(
            sum(footer.rows for footer in footers.values()),
            sum(footer.bad for footer in footers.values()),
        )
        if share.exceeded:
            return await self._too_many_bad(batch, footers, share)
        if self.columns is not None and batch.slices:
            batch = await self._as_columns(batch, footers)
        bad_ends, self._bad_ends = self._bad_ends, None
        outcome = await self._land(batch, request)
        if isinstance(outcome, Committed):
            self._bad_ends = bad_ends  # else its bad records may have landed alone: look again (†)
            self._share = share
            skipped = sum(footer.skipped for footer in footers.values())
            return Committed(batch.bad, skipped, _newest_ms(footers))
        return outcome

    async def _land(self, batch: Batch, request: Append) -> Outcome:
        """Commit the batch's bad records, then its rows (†: in this order), or its stamp alone."""
        lake, table, lease, stamp = self.lake, self.table, request.lease, request.stamp
        if batch.bad:
            outcome = await self._write(lake.append_bad(table, batch, lease, stamp), request)
            if not isinstance(outcome, Committed):
                return outcome
        if batch.rows > batch.bad or not _is_whole(batch):
            outcome = await self._write(lake.append(table, batch, lease, stamp), request)
            if batch.columns is None or _is_whole(batch) or not isinstance(outcome, Committed):
                return outcome
            # Its rows may all be bad, or left out: Delta makes no commit of none.
            return await self._stamp_after_rows(request)
        stamped = lake.commit_stamp(table, lease, request.number, stamp)
        return await self._write(stamped, request)

    async def _stamp_after_rows(self, request: Append) -> Outcome:
        """Commit the stamp alone; without it, whether the rows have landed is unknown (†)."""
        stamped = self.lake.commit_stamp(self.table, request.lease, request.number, request.stamp)
        try:
            outcome = await self._write(stamped, request)
        except (WriteConflict, TableRefused) as exc:
            outcome = Refused(str(exc))
        if isinstance(outcome, Unreadable | Refused):
            return Unclear(f"the stamp behind the rows has not landed: {outcome.reason}")
        return outcome

    async def _write(self, write: Awaitable[None], request: Append) -> Outcome:
        try:
            await write
        except StagedUnreadable as exc:
            # Deleted by another writer, which has landed them? Then the lease went before (†).
            if not await self._holds(request.lease):
                return LeaseGone()
            lost = await self._unreadable(request.batch, exc.files)
            return Unreadable(lost, str(exc)) if lost else Refused(str(exc))
        return Committed()

    async def _grow(self, fixed: Columns, footers: Collection[Footer]) -> None:
        """Give the table the columns that files propose, and publish which ones it got.

        A file that has such a column proposes it, too, and first: a person may have dropped it.
        What is published is what the table has, so it is right again after each claim, at least.
        """
        has = proposed_by(fixed, [(each.columns or (), each.proposed) for each in footers])
        grown, now = self._grown, loop_s()
        if grown is not None and now < grown.at + GROW_S:
            if grown.is_full or has <= grown.proposed:
                return
            has |= grown.proposed
        there = await self.lake.columns(self.table, ADDED)
        found = growth(has, there.names | self._unaddable, len(there.commented))
        if found.left and not (grown and grown.is_full):
            log.warning("table.columns_full", table=self.table, fields=found.left, most=MOST_ADDED)
        added = (*there.commented, *await self._add(found.columns))
        await publish_added(self.context.staging, self.table, added)
        self._grown = _Grown(now, frozenset(has), is_full=found.left > 0)

    async def _add(self, columns: Columns) -> Columns:
        """Add columns to the table; return those that it takes: its rows land all the same."""
        if not columns:
            return ()
        try:
            await self.lake.add_columns(self.table, columns, ADDED)
        except TableRefused as exc:
            if len(columns) > 1:
                return tuple([added for each in columns for added in await self._add((each,))])
            self._unaddable.add(columns[0].name)
            reason = str(exc)
            log.warning(
                "table.column_refused", table=self.table, column=columns[0].name, reason=reason
            )
            return ()
        log.info("table.columns_added", table=self.table, columns=columns_text(columns))
        return columns

    async def _unfit(
        self, batch: Batch, footers: Mapping[str, Footer]
    ) -> Unreadable | Refused | None:
        """Give the table the columns of these files; return those that it does not take (†).

        What was staged under other settings is read again. Where columns come from a registry that
        may give the same ones again: then the table is refused for a while.
        """
        for columns in {footer.columns for footer in footers.values()} - self._known:
            if reason := await self._refusal(columns):
                unfit = frozenset(file for file in footers if footers[file].columns == columns)
                of_registry = self.columns == () and bool(columns)
                once = columns_text(columns or ()) if of_registry else None
                return await self._read_again(batch, unfit, reason, once)
            self._known.add(columns)
        try:
            self._together(footers.values())
        except ValueError as exc:  # the table holds both types, and neither holds the other
            last = footers[batch.files[-1]].columns
            unfit = frozenset(file for file in footers if footers[file].columns != last)
            return await self._read_again(batch, unfit, str(exc), None)
        return None

    def _together(self, footers: Iterable[Footer]) -> Columns:
        """Return the columns of all files; raise `ValueError` if one has two types."""
        columns: Columns = ()
        for each in dict.fromkeys(footer.columns or () for footer in footers):  # mostly one
            columns = united(columns, each, widen=self.config.table.widen)
        return columns

    async def _too_many_bad(
        self, batch: Batch, footers: Mapping[str, Footer], share: BadShare
    ) -> Unreadable | Refused:
        """Have bad records read again, where they were decoded by other settings or a registry."""
        bad = {file: footer for file, footer in footers.items() if footer.bad}
        reason = (
            f"{share.bad} of the newest {share.records} records are bad, and bad_share allows "
            f"{share.most:g} of them, as {next(iter(bad.values())).fault}"
        )
        before = frozenset(
            file for file, footer in bad.items() if footer.decoded_by != self.config.decoding
        )
        if before:
            return await self._read_again(batch, before, reason, None)
        return await self._read_again(batch, frozenset(bad), reason, "bad records")

    async def _read_again(
        self, batch: Batch, files: frozenset[str], reason: str, once: str | None
    ) -> Unreadable | Refused:
        """Have these files' records read again, if Kafka still has all of them (†); else refuse.

        Args:
            batch: What was to be landed.
            files: Those of its files that the table does not take.
            reason: Why not.
            once: What is done once in `REREAD_S` only, as the records may be the same again; None:
                they will differ.
        """
        now = loop_s()
        if once is not None and now < self._read_again_at.get(once, -REREAD_S) + REREAD_S:
            return Refused(reason)
        needed = [part for part in batch.slices if part.file in files]
        try:
            there = await self._are_in_kafka(needed)
        except (TimeoutError, BrokerUnavailable) as exc:
            return Refused(f"{reason}; whether Kafka still has them is not known: {exc}")
        if not there:
            return Refused(
                f"{reason}; Kafka no longer has all of these records, so they are not read again: "
                f"{self.table}/{needed[0].file}"
            )
        if once is not None:
            self._read_again_at[once] = now
        return Unreadable(files, reason)

    async def _are_in_kafka(self, parts: Collection[FileSlice]) -> bool:
        firsts: dict[TopicPartition, int] = {}
        for part in parts:
            for number, (first, _) in part.ranges.items():
                partition = TopicPartition(part.topic, number)
                firsts[partition] = min(first, firsts.get(partition, first))
        async with asyncio.timeout(KAFKA_TIMEOUT_S):
            bounds = await self.context.reader.bounds(firsts)
        return all(p in bounds and bounds[p][0] <= first for p, first in firsts.items())

    async def _refusal(self, columns: Columns | None) -> str:
        """Give the table these columns; return why it does not take them, "" if it does."""
        if columns is None or self.columns is None:
            return "staged as raw records, or with columns, and the table has the other"
        try:
            await self.lake.add_columns(self.table, columns)
        except TableRefused as exc:
            return str(exc)
        return ""

    async def _as_columns(self, batch: Batch, footers: Mapping[str, Footer]) -> Batch:
        """Return the batch with what the files' footers say of its rows."""
        found = [footers[file] for file in batch.files]
        topic_ids = {part.topic: footers[part.file].topic_id for part in batch.slices}
        firsts: dict[TopicPartition, int] = {}
        for part in batch.slices:
            for p, (first, _) in zip(part.partitions, part.ranges.values(), strict=True):
                firsts[p] = min(first, firsts.get(p, first))
        highest = await self._highest_bad(firsts)
        return replace(
            batch,
            topic_ids=topic_ids,
            columns=self._together(found),
            rows=sum(footer.rows for footer in found),  # without what was skipped (†)
            bad=sum(footer.bad for footer in found),
            landed_in_part=any(
                first <= highest.get(topic_ids[part.topic], {}).get(p, -1)
                for part in batch.slices
                for p, (first, _) in zip(part.partitions, part.ranges.values(), strict=True)
            ),
        )

    async def _highest_bad(
        self, firsts: PartitionOffsets
    ) -> Mapping[str | None, Mapping[TopicPartition, int]]:
        """Return the highest offsets of bad records, at least of those from these offsets on."""
        known = self._bad_ends = self._bad_ends or _BadEnds()
        if any(first < known.since.get(p, inf) for p, first in firsts.items()):
            # All partitions at once: else each batch would look for those of some.
            since = {
                p: min(at, firsts.get(p, at)) for p, at in {**firsts, **self._committed}.items()
            }
            found = await self.lake.highest_bad_offsets(self.table, since)
            known = self._bad_ends = _BadEnds(since, found)
        return known.highest

    async def _holds(self, lease: str) -> bool:
        return lease in await self.context.staging.existing(self.table, {lease})

    async def _unreadable(self, batch: Batch, suspected: Collection[str]) -> frozenset[str]:
        """Return the files of the batch that are missing or damaged, looking at suspects first."""
        every = frozenset(batch.files)
        for suspects in (every.intersection(suspected), every):
            try:
                readable = await self.context.staging.readable(self.table, suspects)
            except StagingUnavailable:
                break  # unknown, so no file is given up
            if lost := suspects.difference(readable):
                return lost
        return frozenset()


def _not_as_announced(batch: Batch, footers: Mapping[str, Footer]) -> frozenset[str]:
    """Return the files that do not hold what their announcements say (†).

    Spark would read an empty one as no rows. Whoever may write to the landing topic could announce
    other offsets than a file has, no rows, or a cut of its log.
    """
    return frozenset(
        part.file
        for part in batch.slices
        if (footer := footers.get(part.file)) is None or not _holds_slice(footer, part)
    )


def _newest_ms(footers: Mapping[str, Footer]) -> int | None:
    """Return the highest timestamp of these files; one ahead of the wall clock counts as now."""
    highest = newest(*(footer.newest_ms for footer in footers.values()))
    return None if highest is None else min(highest, wall_ms())


def _is_whole(batch: Batch) -> bool:
    """Whether all rows of the batch's files land with it."""
    return not batch.landed_in_part and all(part.whole for part in batch.slices)


def _holds_slice(footer: Footer, part: FileSlice) -> bool:
    if part.announced is not None and not footer.agrees(part.announced):
        return False
    if part.whole:
        return footer.ranges == part.ranges
    return all(
        p in footer.ranges and footer.ranges[p][0] <= first and end <= footer.ranges[p][1]
        for p, (first, end) in part.ranges.items()
    )
