"""How a batch lands: the requests that this takes, in their order, and what their outcomes mean.

Pure. The service performs `begin`'s request and passes the outcome to `apply_outcome`, which
returns the next one, until there is a `verdict`: the outcome of the `Append`. Without the rules
marked † rows are lost or doubled (docs/design/protocol.md).
"""

from collections.abc import Collection, Generator, Iterable, Mapping
from dataclasses import dataclass, field, replace
from math import inf
from typing import TypeVar

from binwright.consumer.decide.bad_share import BadShare
from binwright.consumer.decide.columns import united
from binwright.consumer.decide.land.chain import same_topic
from binwright.consumer.decide.land.compaction import MB, merge_cpu_s
from binwright.consumer.decide.land.states import (
    AddColumns,
    AddFiles,
    Append,
    AppendBad,
    AppendRequest,
    AppendRows,
    BadOffsetsFound,
    CheckLease,
    ColumnsRead,
    CommitStamp,
    Committed,
    Conflict,
    Done,
    FilesFound,
    FindBadOffsets,
    FindLowestBad,
    FindReadable,
    FootersRead,
    KafkaState,
    LeaseGone,
    LowestBadFound,
    MergeRows,
    NoteDeleted,
    Outcome,
    PublishColumns,
    QueryKafka,
    ReadColumns,
    ReadFooters,
    Refused,
    Unclear,
    Unreadable,
    WriterConfig,
)
from binwright.consumer.decide.new_columns import ADDED, MOST_ADDED, growth, proposed_by
from binwright.protocol.log_events import Log, LogEvent
from binwright.protocol.model import TopicPartition, newest
from binwright.tables.columns import Column, Columns, columns_text
from binwright.tables.operations import REPLAY
from binwright.tables.ports import Batch, FileSlice, Footer, NotInPlace, PartitionOffsets

TABLE_COLUMNS_FULL = LogEvent.warning(
    "table.columns_full",
    "Records have more new fields than a table gets columns for: the others stay in `_rest`.",
)
TABLE_COLUMNS_ADDED = LogEvent.info(
    "table.columns_added", "A table got columns for new fields of JSON."
)
TABLE_COLUMN_REFUSED = LogEvent.warning(
    "table.column_refused", "A table does not take a column for a new field: it stays in `_rest`."
)
TABLE_APPENDED = LogEvent.info(
    "table.appended",
    "Spark writes a table's rows again: its files could not be committed as they are.",
)
TABLE_IN_PLACE = LogEvent.info(
    "table.in_place", "A table's files are committed as they are, which they were not before."
)

REREAD_S = 300.0
"""Between two times that records are read again which the table does not take as they are."""
GROW_S = 60.0
"""Between two looks at a table's columns while files propose the same ones again."""
APPEND_S = {True: 300.0, False: 30.0}
"""For which rows are appended after files could not be committed as they are: because of the table,
or of a file."""

MANY_SMALL = NotInPlace(
    "its files are many and small: to merge them would take more", of_table=False
)
COMMIT_CPU_S = 0.12
"""What a commit in place saves of Spark's CPU, however little it lands: it takes 0.04 s of 0.16."""
WRITE_CPU_S = {True: 1.1, False: 0.07}
"""What it takes Spark to write 1 MB of staged rows again: decoded ones, raw ones."""

WANTED = TypeVar("WANTED")
RESULT = TypeVar("RESULT")
Steps = Generator[AppendRequest, tuple[Outcome, float], RESULT]
"""Yields requests, and gets the outcome of each with the time, s, monotonic."""


@dataclass(frozen=True, slots=True)
class BadEnds:
    """The highest offsets of bad records: topic id -> partition -> offset.

    Of a partition that has none from `since` on there is none.
    """

    lease: str  # of the claim under which they were read
    since: PartitionOffsets = field(default_factory=dict)
    highest: Mapping[str | None, PartitionOffsets] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class LowestBad:
    """The lowest offsets of bad records, but for those of portions that have landed since."""

    lease: str  # of the claim under which they were read
    offsets: PartitionOffsets


@dataclass(frozen=True, slots=True)
class Grown:
    """When the table was last looked at for columns that files proposed, and which those were."""

    at: float
    proposed: frozenset[Column]
    is_full: bool  # it has no room for more


@dataclass(frozen=True, slots=True)
class Appending:
    """Files could not be committed as they are."""

    because: NotInPlace
    until: float  # when that is tried again


@dataclass(frozen=True, slots=True)
class TableKnowledge:
    """What a writer knows of its table from one commit to the next."""

    share: BadShare  # of its newest records that are bad
    taken: frozenset[Columns | None]  # columns of files that the table takes
    bad_ends: BadEnds | None = None  # None: not known
    lowest_bad: LowestBad | None = None  # likewise
    grown: Grown | None = None  # None: not looked at yet, or altered since
    appending: Appending | None = None  # None: files are committed as they are, as far as known
    unaddable: frozenset[str] = frozenset()  # names that the table refused as columns
    read_again_at: Mapping[str, float] = field(default_factory=dict)
    """Why records were read again which the table does not take -> when."""


def knowledge_at_first(config: WriterConfig) -> TableKnowledge:
    """Return what is known of a table that was opened."""
    return TableKnowledge(BadShare(config.bad_share), frozenset({config.table.columns}))


class _Ended(Exception):
    """The commit ends with this outcome."""

    def __init__(self, outcome: Outcome) -> None:
        super().__init__(outcome)
        self.outcome = outcome


class _RefusedByTable(_Ended):
    """The table refuses what it was asked."""


class BatchCommit:
    """The commit of one batch.

    Attributes:
        known: What is known of the table by now.
        verdict: The outcome of the `Append`, once there is one.
        logs: What is to be logged; the service empties it.
    """

    verdict: Outcome | None = None

    def __init__(
        self,
        request: Append,
        known: TableKnowledge,
        config: WriterConfig,
        committed: PartitionOffsets,
    ) -> None:
        """Prepare a commit.

        Args:
            request: With the batch; one without slices commits its stamp alone.
            known: Of the table, since the writer has opened it.
            config: The writer's.
            committed: Up to where the table has its partitions.
        """
        self.known = known
        self.logs: list[Log] = []
        self._request, self._config, self._committed = request, config, committed
        self._columns = config.table.columns  # of the table's rows; None: raw records
        self._now = -inf
        self._footers: Mapping[str, Footer] = {}
        self._steps = self._run()

    def begin(self) -> AppendRequest:
        """Return the first request."""
        return next(self._steps)

    def apply_outcome(self, outcome: Outcome, now: float) -> AppendRequest | None:
        """Apply the outcome of the request before; return the next one, None after the last.

        Raises:
            ValueError: The outcome does not belong to the request.
        """
        try:
            return self._steps.send((outcome, now))
        except StopIteration as end:
            self.verdict = end.value
            return None

    # --- steps -----------------------------------------------------------------------------------

    def _run(self) -> Steps[Outcome]:
        try:
            return (yield from self._commit(self._request.batch))
        except _RefusedByTable as end:
            if self._config.fixed is not None:
                # A person may have altered a column that no settings name: look at all again.
                taken = frozenset({self._columns})
                self.known = replace(self.known, grown=None, taken=taken)
            return end.outcome
        except _Ended as end:
            return end.outcome

    def _try(self, request: AppendRequest) -> Steps[Outcome]:
        """Return the outcome of a request, whatever it is."""
        outcome, self._now = yield request
        return outcome

    def _ask(self, request: AppendRequest, wanted: type[WANTED]) -> Steps[WANTED]:
        """Return the outcome that is wanted of a request; any other ends the commit."""
        outcome = yield from self._try(request)
        if isinstance(outcome, wanted):
            return outcome
        raise _end(outcome)

    def _commit(self, batch: Batch) -> Steps[Outcome]:
        yield from self._ask(CheckLease(self._request.lease), Done)
        read = yield from self._ask(ReadFooters(batch.files), FootersRead)
        self._footers = footers = read.footers
        if lost := not_as_announced(batch, footers):
            return Unreadable(lost, "gone, damaged, or not what was announced")
        if other := (yield from self._of_other_settings()):
            return other
        if (fixed := self._config.fixed) is not None and batch.slices:
            yield from self._grow(fixed)
        if unfit := (yield from self._unfit(batch)):
            return unfit
        if batch.work == REPLAY:
            return (yield from self._replay(batch))
        # What is bad of earlier records says nothing of what is read today.
        before = BadShare(self._config.bad_share) if batch.work else self.known.share
        share = before.after(
            sum(footer.rows for footer in footers.values()),
            sum(footer.bad for footer in footers.values()),
        )
        if share.exceeded:
            return (yield from self._too_many_bad(share))
        if self._columns is not None and batch.slices:
            batch = yield from self._as_columns(batch)
        bad_ends, lowest_bad = self._forget_bad_offsets()
        yield from self._land(batch)
        self.known = replace(self.known, bad_ends=bad_ends, lowest_bad=lowest_bad)
        if not batch.work:
            self.known = replace(self.known, share=share)
        skipped = sum(footer.skipped for footer in footers.values())
        return Committed(batch.bad, skipped, _newest_ms(read))

    def _replay(self, batch: Batch) -> Steps[Outcome]:
        """Append the rows alone: their records are among the bad ones, and leave those later (†).

        So none counts as landed before, and the share of bad records stays as it is.
        """
        columns = self._together(self._footers.values())
        batch = replace(batch, columns=columns, rows=self._footers[batch.files[0]].rows)
        if self._config.table.primary_key:
            yield from self._merge(replace(batch, deletes=True))
        else:
            yield from self._write(AppendRows(batch, self._request.lease, self._request.stamp))
        return Committed()

    def _merge(self, batch: Batch) -> Steps[None]:
        """Note what the batch deletes, then apply its changes (†: in this order).

        Else a change that is older could make a row of a key again that was deleted.
        """
        lease, stamp = self._request.lease, self._request.stamp
        if batch.deletes:
            yield from self._write(NoteDeleted(batch, lease, stamp))
        yield from self._write(MergeRows(batch, lease, self._request.number, stamp))

    def _forget_bad_offsets(self) -> tuple[BadEnds | None, LowestBad | None]:
        """Forget the bad offsets until all has landed; return them.

        A commit without verdict may have landed its bad records alone: they are found again (†).
        """
        known = self.known
        self.known = replace(known, bad_ends=None, lowest_bad=None)
        return known.bad_ends, known.lowest_bad

    def _land(self, batch: Batch) -> Steps[None]:
        """Commit the batch's bad records, then its rows (†: in this order), or its stamp alone."""
        lease, stamp = self._request.lease, self._request.stamp
        if batch.bad:
            yield from self._write(AppendBad(batch, lease, stamp))
        has_rows = batch.rows > batch.bad or not _is_whole(batch)
        if has_rows and self._config.table.primary_key:
            yield from self._merge(batch)
        elif has_rows:
            if (yield from self._add_files(batch)):
                return
            yield from self._write(AppendRows(batch, lease, stamp))
            if batch.columns is None or _is_whole(batch):
                return
            # Its rows may all be bad, or left out: Delta makes no commit of none.
            yield from self._stamp_after_rows()
        else:
            yield from self._write(CommitStamp(lease, self._request.number, stamp))

    def _add_files(self, batch: Batch) -> Steps[bool]:
        """Commit the batch's files as they are, if that can be; return whether it was done."""
        appending = self.known.appending
        if not self._config.in_place or not can_be_added(batch, self._footers):
            return False
        if appending is not None and self._now < appending.until:
            return False
        # What is late already does not wait for an append: many files are one commit, too.
        if not self._request.late and not saves_in_place(batch, self._config.small_file_bytes):
            self.known = replace(self.known, appending=Appending(MANY_SMALL, self._now))
            return False
        request = AddFiles(batch, self._request.lease, self._request.stamp)
        why = yield from self._write(request)
        if why is not None:
            until = self._now + APPEND_S[why.of_table]
            if appending is None or appending.because != why:
                self.logs.append(Log(TABLE_APPENDED, {"reason": why.reason}))
            self.known = replace(self.known, appending=Appending(why, until))
            return False
        if appending is not None:
            if appending.because != MANY_SMALL:
                self.logs.append(Log(TABLE_IN_PLACE, {}))
            self.known = replace(self.known, appending=None)
        return True

    def _stamp_after_rows(self) -> Steps[None]:
        """Commit the stamp alone; without it, whether the rows have landed is unknown (†)."""
        request = self._request
        try:
            yield from self._write(CommitStamp(request.lease, request.number, request.stamp))
        except _Ended as end:
            if isinstance(end.outcome, Unreadable | Refused | Conflict):
                reason = f"the stamp behind the rows has not landed: {end.outcome.reason}"
                raise _Ended(Unclear(reason)) from end
            raise

    def _write(
        self, write: AppendBad | AddFiles | AppendRows | NoteDeleted | MergeRows | CommitStamp
    ) -> Steps[NotInPlace | None]:
        """Commit; return why it cannot be done so, None once it is done."""
        outcome = yield from self._try(write)
        if isinstance(outcome, Committed):
            return None
        if isinstance(outcome, NotInPlace) and isinstance(write, AddFiles):
            return outcome
        if not isinstance(outcome, Unreadable):
            raise _end(outcome)
        # Deleted by another writer, which has landed them? Then the lease went before (†).
        yield from self._ask(CheckLease(self._request.lease), Done)
        lost = yield from self._unreadable(outcome.files)
        reason = outcome.reason
        raise _Ended(Unreadable(lost, reason) if lost else Refused(reason))

    def _unreadable(self, suspected: Collection[str]) -> Steps[frozenset[str]]:
        """Return the files of the batch that are missing or damaged, looking at suspects first."""
        every = frozenset(self._request.batch.files)
        for suspects in (every.intersection(suspected), every):
            outcome = yield from self._try(FindReadable(suspects))
            if not isinstance(outcome, FilesFound):
                break  # unknown, so no file is given up
            if lost := suspects.difference(outcome.files):
                return lost
        return frozenset()

    def _of_other_settings(self) -> Steps[Unreadable | Refused | None]:
        """Have files read again that were staged under other settings than the writer has (†).

        Also those of an older version, which knows no mask: they are plain. A file that is not of
        keys does not say which rows it deletes.
        """
        masking, keying = self._config.masking, self._config.keying
        footers = self._footers.items()
        masked = frozenset(f for f, each in footers if masking and each.masked_by != masking)
        keyed = frozenset(f for f, each in footers if not each.decoded_by.endswith(keying))
        for files, names in ((masked, "`mask`"), (keyed, "`mode` and its keys")):
            if files:
                reason = f"staged under other settings of {names} than the table's writer has"
                return (yield from self._read_again(files, reason, names))
        return None

    # --- columns ---------------------------------------------------------------------------------

    def _grow(self, fixed: Columns) -> Steps[None]:
        """Give the table the columns that files propose, and publish which ones it got.

        A file that has such a column proposes it, too, and first: a person may have dropped it.
        What is published is what the table has, so it is right again after each claim, at least.
        """
        files = self._footers.values()
        has = proposed_by(fixed, [(each.columns or (), each.proposed) for each in files])
        grown, now = self.known.grown, self._now
        if grown is not None and now < grown.at + GROW_S:
            if grown.is_full or has <= grown.proposed:
                return
            has |= grown.proposed
        there = (yield from self._ask(ReadColumns(ADDED), ColumnsRead)).there
        new = growth(has, there.names | self.known.unaddable, len(there.commented))
        if new.left and not (grown and grown.is_full):
            facts = {"fields": new.left, "most": MOST_ADDED}
            self.logs.append(Log(TABLE_COLUMNS_FULL, facts))
        added = (*there.commented, *(yield from self._add(new.columns)))
        yield from self._ask(PublishColumns(added), Done)
        self.known = replace(self.known, grown=Grown(now, has, is_full=new.left > 0))

    def _add(self, columns: Columns) -> Steps[Columns]:
        """Add columns to the table; return those that it takes: its rows land all the same."""
        if not columns:
            return ()
        outcome = yield from self._try(AddColumns(columns, ADDED))
        if isinstance(outcome, Done):
            self.logs.append(Log(TABLE_COLUMNS_ADDED, {"columns": columns_text(columns)}))
            return columns
        if not isinstance(outcome, Refused):
            raise _end(outcome)
        if len(columns) > 1:
            added: Columns = ()
            for column in columns:
                added += yield from self._add((column,))
            return added
        name = columns[0].name
        self.known = replace(self.known, unaddable=self.known.unaddable | {name})
        facts = {"column": name, "reason": outcome.reason}
        self.logs.append(Log(TABLE_COLUMN_REFUSED, facts))
        return ()

    def _unfit(self, batch: Batch) -> Steps[Unreadable | Refused | None]:
        """Give the table the columns of these files; return those that it does not take (†).

        What was staged under other settings is read again. Where columns come from a registry that
        may give the same ones again: then the table is refused for a while.
        """
        footers = self._footers
        for columns in dict.fromkeys(footer.columns for footer in footers.values()):
            if columns in self.known.taken:
                continue
            if reason := (yield from self._refusal(columns)):
                unfit = frozenset(file for file in footers if footers[file].columns == columns)
                of_registry = self._columns == () and bool(columns)
                once = columns_text(columns or ()) if of_registry else None
                return (yield from self._read_again(unfit, reason, once))
            self.known = replace(self.known, taken=self.known.taken | {columns})
        try:
            self._together(footers.values())
        except ValueError as exc:  # the table holds both types, and neither holds the other
            last = footers[batch.files[-1]].columns
            unfit = frozenset(file for file in footers if footers[file].columns != last)
            return (yield from self._read_again(unfit, str(exc), None))
        return None

    def _refusal(self, columns: Columns | None) -> Steps[str]:
        """Give the table these columns; return why it does not take them, "" if it does."""
        if columns is None or self._columns is None:
            return "staged as raw records, or with columns, and the table has the other"
        outcome = yield from self._try(AddColumns(columns))
        if isinstance(outcome, Refused):
            return outcome.reason
        if not isinstance(outcome, Done):
            raise _end(outcome)
        return ""

    def _together(self, footers: Iterable[Footer]) -> Columns:
        """Return the columns of all files; raise `ValueError` if one has two types."""
        columns: Columns = ()
        for each in dict.fromkeys(footer.columns or () for footer in footers):  # mostly one
            columns = united(columns, each, widen=self._config.table.widen)
        return columns

    # --- bad records -----------------------------------------------------------------------------

    def _too_many_bad(self, share: BadShare) -> Steps[Unreadable | Refused]:
        """Have bad records read again, where they were decoded by other settings or a registry."""
        bad = {file: footer for file, footer in self._footers.items() if footer.bad}
        reason = (
            f"{share.bad} of the newest {share.records} records are bad, and bad_share allows "
            f"{share.most:g} of them, as {next(iter(bad.values())).fault}"
        )
        before = frozenset(
            file for file, footer in bad.items() if footer.decoded_by != self._config.decoding
        )
        if before:
            return (yield from self._read_again(before, reason, None))
        return (yield from self._read_again(frozenset(bad), reason, "bad records"))

    def _as_columns(self, batch: Batch) -> Steps[Batch]:
        """Return the batch with what the files' footers say of its rows."""
        footers = [self._footers[file] for file in batch.files]
        topic_ids = {part.topic: self._footers[part.file].topic_id for part in batch.slices}
        if batch.work:
            in_part = yield from self._has_bad_records(batch)
        else:
            highest = yield from self._highest_bad(_firsts(batch.slices))
            in_part = may_have_landed(batch, topic_ids, highest)
        as_table = frozenset(file for file, each in self._footers.items() if each.as_table)
        return replace(
            batch,
            as_table=as_table,
            topic_ids=topic_ids,
            columns=self._together(footers),
            rows=sum(footer.rows for footer in footers),  # without what was skipped (†)
            bad=sum(footer.bad for footer in footers),
            deletes=any(footer.deleted for footer in footers),
            beside=frozenset(file for file in as_table if self._footers[file].bad),
            landed_in_part=in_part,
        )

    def _has_bad_records(self, batch: Batch) -> Steps[bool]:
        """Whether bad records of a portion may have landed, by an earlier try at its commit (†)."""
        known = self.known.lowest_bad
        if known is None or known.lease != self._request.lease:
            read = yield from self._ask(FindLowestBad(), LowestBadFound)
            known = LowestBad(self._request.lease, read.offsets)
        self.known = replace(self.known, lowest_bad=known)
        return any(
            known.offsets.get(TopicPartition(part.topic, number), end) < end
            for part in batch.slices
            for number, (_, end) in part.ranges.items()
        )

    def _highest_bad(
        self, firsts: PartitionOffsets
    ) -> Steps[Mapping[str | None, PartitionOffsets]]:
        """Return the highest offsets of bad records, at least of those from these offsets on."""
        known = bad_ends_of(self.known, self._request.lease)
        if any(first < known.since.get(p, inf) for p, first in firsts.items()):
            # All partitions at once: else each batch would look for those of some.
            since = {
                p: min(at, firsts.get(p, at)) for p, at in {**firsts, **self._committed}.items()
            }
            read = yield from self._ask(FindBadOffsets(since), BadOffsetsFound)
            known = BadEnds(known.lease, since, read.highest)
        self.known = replace(self.known, bad_ends=known)
        return known.highest

    # --- reading again ---------------------------------------------------------------------------

    def _read_again(
        self, files: frozenset[str], reason: str, once: str | None
    ) -> Steps[Unreadable | Refused]:
        """Have these files' records read again, if Kafka still has all of them (†); else refuse.

        Args:
            files: Those of the batch's files that the table does not take.
            reason: Why not.
            once: What is done once in `REREAD_S` only, as the records may be the same again; None:
                they will differ.
        """
        now, times = self._now, self.known.read_again_at
        if once is not None and now < times.get(once, -REREAD_S) + REREAD_S:
            return Refused(reason)
        needed = [part for part in self._request.batch.slices if part.file in files]
        topic_ids = {part.topic: self._footers[part.file].topic_id for part in needed}
        query = QueryKafka(frozenset(topic_ids), begins_of=frozenset())
        outcome = yield from self._try(query)
        if isinstance(outcome, Unclear):
            unknown = f"whether Kafka still has them is not known: {outcome.reason}"
            return Refused(f"{reason}; {unknown}")
        if not isinstance(outcome, KafkaState):
            raise _end(outcome)
        firsts = _firsts(needed)
        if outcome.unknown & topic_ids.keys() or outcome.leaderless & firsts.keys():
            unknown = "whether Kafka still has them is not known: it does not describe all of them"
            return Refused(f"{reason}; {unknown}")
        if not has_all(firsts, topic_ids, outcome):
            return Refused(
                f"{reason}; Kafka no longer has all of these records, so they are not read again: "
                f"{self._config.table.name}/{needed[0].file}"
            )
        if once is not None:
            self.known = replace(self.known, read_again_at={**times, once: now})
        return Unreadable(files, reason)


def _end(outcome: Outcome) -> Exception:
    """Return what ends the commit with this outcome, if it is one that does."""
    match outcome:
        case Refused():
            return _RefusedByTable(outcome)
        case LeaseGone() | Conflict() | Unclear():
            return _Ended(outcome)
    return ValueError(f"{outcome} is not an outcome of the request")


def bad_ends_of(known: TableKnowledge, lease: str) -> BadEnds:
    """Return which offsets of bad records are known under a lease.

    None is that an earlier claim has read: another writer may have landed some since (†).
    """
    ends = known.bad_ends
    return BadEnds(lease) if ends is None or ends.lease != lease else ends


def not_as_announced(batch: Batch, footers: Mapping[str, Footer]) -> frozenset[str]:
    """Return the files that do not hold what their announcements say (†).

    Spark would read an empty one as no rows. Whoever may write to the landing topic could announce
    other offsets than a file has, no rows, or a cut of its log.
    """
    return frozenset(
        part.file
        for part in batch.slices
        if (footer := footers.get(part.file)) is None or not _holds_slice(footer, part)
    )


def _holds_slice(footer: Footer, part: FileSlice) -> bool:
    if part.announced is not None and not footer.agrees(part.announced):
        return False
    if part.whole:
        return footer.ranges == part.ranges
    return all(
        p in footer.ranges and footer.ranges[p][0] <= first and end <= footer.ranges[p][1]
        for p, (first, end) in part.ranges.items()
    )


def has_all(
    firsts: PartitionOffsets, topic_ids: Mapping[str, str | None], kafka: KafkaState
) -> bool:
    """Whether Kafka still has these partitions from these offsets on, of topics with these ids (†).

    A topic of the same name that was made anew has other records.
    """
    bounds, ids = kafka.bounds, kafka.topic_ids
    same = all(t in ids and same_topic(ids[t], topic_id) for t, topic_id in topic_ids.items())
    return same and all(p in bounds and bounds[p][0] <= first for p, first in firsts.items())


def _firsts(parts: Iterable[FileSlice]) -> dict[TopicPartition, int]:
    """Return the first offset of each partition."""
    firsts: dict[TopicPartition, int] = {}
    for part in parts:
        for number, (first, _) in part.ranges.items():
            p = TopicPartition(part.topic, number)
            firsts[p] = min(first, firsts.get(p, first))
    return firsts


def may_have_landed(
    batch: Batch,
    topic_ids: Mapping[str, str | None],
    highest: Mapping[str | None, PartitionOffsets],
) -> bool:
    """Whether some of the batch's bad records may have landed before (†)."""
    return any(
        first <= highest.get(topic_ids[part.topic], {}).get(TopicPartition(part.topic, number), -1)
        for part in batch.slices
        for number, (first, _) in part.ranges.items()
    )


def can_be_added(batch: Batch, footers: Mapping[str, Footer]) -> bool:
    """Whether all rows of these files, and no others, land as they are (†).

    Bad records are beside a file that is laid out as its table's. What has landed as one may be a
    row of a file by now (†).
    """
    as_they_are = (each.columns is None or each.as_table for each in footers.values())
    return _is_whole(batch) and all(as_they_are)


def saves_in_place(batch: Batch, small_bytes: int) -> bool:
    """Whether Spark takes less CPU to commit these files and merge them than to append their rows.

    An append writes one file, of about their size, which is merged if it is small, too. Figures of
    docs/decisions/0033-landed-in-place.md.
    """
    sizes, decoded = [part.bytes for part in batch.slices], batch.columns is not None
    written = WRITE_CPU_S[decoded] * sum(sizes) / MB
    appended, in_place = (
        merge_cpu_s(files, small_bytes, decoded=decoded) for files in ([sum(sizes)], sizes)
    )
    return in_place < COMMIT_CPU_S + written + appended


def _newest_ms(read: FootersRead) -> int | None:
    """Return the highest timestamp of these files; one ahead of the wall clock counts as now."""
    highest = newest(*(footer.newest_ms for footer in read.footers.values()))
    return None if highest is None else min(highest, read.at_ms)


def _is_whole(batch: Batch) -> bool:
    """Whether all rows of the batch's files land with it."""
    return not batch.landed_in_part and all(part.whole for part in batch.slices)
