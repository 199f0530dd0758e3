"""Runs the requests of a table's writer on Spark, Kafka and the staging location.

They run one at a time, and each has one outcome.
"""

from collections.abc import Awaitable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from binwright.consumer.decide.land.append import (
    BatchCommit,
    TableKnowledge,
    knowledge_at_first,
)
from binwright.consumer.decide.land.states import (
    AddColumns,
    AddFiles,
    Append,
    AppendBad,
    AppendRequest,
    AppendRows,
    BadOffsetsFound,
    ChangeBad,
    CheckLease,
    ClaimTable,
    ColumnsRead,
    CommitStamp,
    Committed,
    Conflict,
    DeleteOtherLeases,
    Done,
    EarlierFound,
    EarlierPortion,
    EarlierStaged,
    ErasedNoted,
    EraseNoted,
    FilesFound,
    FindBadOffsets,
    FindEarlier,
    FindLowestBad,
    FindReadable,
    FootersRead,
    HistoryRead,
    KafkaState,
    LeaseGone,
    LowestBadFound,
    MergeRows,
    NoteDeleted,
    NoteErased,
    OperationRequest,
    Outcome,
    Portion,
    PortionStaged,
    PublishColumns,
    QueryKafka,
    ReadColumns,
    ReaderBusy,
    ReadFooters,
    ReadHistory,
    ReadLandedOffsets,
    Refused,
    Request,
    RowsErased,
    SettleBad,
    StageEarlier,
    StagePortion,
    TooLarge,
    TopicGone,
    Unclear,
    Unreadable,
    WriteLease,
    WriterConfig,
)
from binwright.consumer.land.context import WriterContext
from binwright.consumer.land.kafka_queries import KafkaQueries
from binwright.consumer.land.replay import DecodedAgain
from binwright.consumer.stage.added_columns import publish_added
from binwright.protocol.errors import (
    BrokerUnavailable,
    LakeUnavailable,
    MaskUnavailable,
    RangeRefused,
    RegistryUnavailable,
    SchemaAtFault,
    StagedUnreadable,
    StagingUnavailable,
    TableRefused,
    TopicMissing,
    WriteConflict,
    WriteUnclear,
)
from binwright.protocol.landing import OffsetRange
from binwright.runtime.clock import loop_s, wall_ms
from binwright.runtime.logs import log
from binwright.tables.ports import Lake, PartitionOffsets
from binwright.tables.targets import Target

_NOT_DECODED = (RegistryUnavailable, SchemaAtFault, MaskUnavailable)
_WITHOUT_VERDICT = (
    WriteUnclear,
    LakeUnavailable,
    BrokerUnavailable,
    TopicMissing,
    StagingUnavailable,
)


NONE_COMMITTED: PartitionOffsets = MappingProxyType({})


@dataclass(slots=True)
class RequestRunner:
    """Runs the requests of one table's writer."""

    lake: Lake
    context: WriterContext
    config: WriterConfig
    table: str = field(init=False)  # its name
    known: TableKnowledge = field(init=False)  # of the table
    decoded: DecodedAgain | None = None  # of the portion that was staged last
    _kafka: KafkaQueries = field(init=False)

    def __post_init__(self) -> None:
        """Know what the table was opened with."""
        self.table = self.config.table.name
        self.known = knowledge_at_first(self.config)
        self._kafka = KafkaQueries(self.context, self.table)

    @property
    def appended(self) -> str:
        """Return why rows are appended; empty: files are committed as they are, where they can."""
        if self.config.table.primary_key:
            return 'mode = "upsert": a MERGE applies the changes of keys'
        if not self.config.in_place:
            return 'lake.commit = "append"'
        return "" if self.known.appending is None else self.known.appending.because.reason

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
        return await _outcome(self._dispatch(request, topic_ids, committed))

    async def altered(self) -> str:
        """Return what a person changed: a table is gone, or a column is; empty if nothing is."""
        known = dict.fromkeys(c for columns in self.known.taken if columns for c in columns)
        try:
            await self.lake.check(self.table, tuple(known))
        except TableRefused as exc:
            return str(exc)
        except LakeUnavailable:
            return ""
        return ""

    async def _dispatch(
        self, request: Request, topic_ids: Mapping[str, str | None], committed: PartitionOffsets
    ) -> Outcome:
        lake, staging, table = self.lake, self.context.staging, self.table
        match request:
            case ReadHistory(limit=limit):
                history = await lake.history(table, limit)
                return HistoryRead(history.commits, history.complete)
            case WriteLease(lease=lease):
                await staging.write_lease(table, lease)
                return Done()
            case DeleteOtherLeases(lease=lease):
                await staging.delete_other_leases(table, lease)
                return Done()
            case ClaimTable(writer=writer, stamp=stamp):
                await lake.claim(table, writer, stamp)
                return Committed()
            case QueryKafka():
                return await self._kafka.state(request)
            case ReadLandedOffsets():
                highest = await lake.highest_offsets(table)
                return await self._kafka.landed_offsets(highest, topic_ids)
            case Append():
                return await self._append(BatchCommit(request, self.known, self.config, committed))
            case _:
                return await self._take_step(request)

    async def _take_step(self, request: OperationRequest) -> Outcome:
        """Take a step of an operation, but for the append of what it has staged."""
        lake, table = self.lake, self.table
        match request:
            case StagePortion():
                return await self._stage_portion(request)
            case FindEarlier():
                return await self._find_earlier(request)
            case StageEarlier():
                return await self._stage_earlier(request)
            case ChangeBad(note=note):
                decoded = self.decoded or DecodedAgain(Portion())
                await lake.change_bad(table, decoded.removed, decoded.changed, note)
            case SettleBad(places=places, note=note):
                landed = await lake.landed_bad(table, places)
                await lake.change_bad(table, landed, (), note)
            case NoteErased(query=query, note=note, dry_run=dry_run):
                counts = await lake.note_erased(table, query, note, dry_run=dry_run)
                return ErasedNoted(counts, wall_ms())
            case EraseNoted(operation=operation, note=note):
                await lake.erase_noted(table, operation, note)
                return RowsErased(wall_ms())
        return Done()

    async def _stage_portion(self, request: StagePortion) -> Outcome:
        """Read bad records of a topic, decode them again and stage the rows."""
        self.decoded, table = None, self.table
        read = await self.lake.bad_portion(table, request.query)
        topic = read.rows[0].place.partition.topic if read.rows else self.config.table.topic
        target = self._target(topic)
        decoding = self.context.bad_records.decode(target, read, dry_run=request.dry_run)
        try:
            self.decoded = await decoding
        except _NOT_DECODED as exc:
            return Unclear(str(exc))
        return PortionStaged(self.decoded.portion)

    def _target(self, topic: str) -> Target:
        """Return a topic's part of the table; raise `TableRefused` if it has none any more."""
        for target in self.context.targets(topic):
            if target.name == self.table:
                return target
        raise TableRefused(f"topic {topic} no longer lands in the table {self.table}")

    async def _find_earlier(self, request: FindEarlier) -> Outcome:
        """Ask the table where it begins, and Kafka what it has of before.

        Which bad records it has is asked anew (†): portions of an earlier one have landed since.
        """
        self.known = replace(self.known, lowest_bad=None)
        lowest = await self.lake.lowest_offsets(self.table) if request.scan else None
        kafka = await self._kafka.state(QueryKafka(request.topics, begins_of=frozenset()))
        if isinstance(kafka, Unclear):
            return kafka
        kept_since_ms = wall_ms() - round(request.keep_s * 1000) if request.keep_s else 0
        if not (since_ms := max(request.since_ms, kept_since_ms)) or lowest is None:
            return EarlierFound(lowest, kafka)
        since = await self.context.reader.offsets_at(kafka.bounds.keys(), since_ms)
        return EarlierFound(lowest, kafka, since)

    async def _stage_earlier(self, request: StageEarlier) -> Outcome:
        """Stage a range, but for what Kafka has deleted of it, of one topic and one log."""
        p, wanted, earlier = request.partition, request.range, self.context.earlier
        if earlier.reader.busy:  # nobody's rows wait for another table's
            return ReaderBusy()
        query = QueryKafka(frozenset({p.topic}), begins_of=frozenset())
        try:
            kafka = await self._kafka.state(query)
        except TopicMissing:
            return TopicGone()
        if isinstance(kafka, Unclear) or p not in kafka.bounds:
            return Unclear(f"Kafka does not describe {p} now")
        start, end = kafka.bounds[p]
        if end < wanted.next:
            return EarlierStaged(EarlierPortion(partition=p, first=wanted.next), kafka)
        first = min(max(wanted.first, start), wanted.next)
        left, target = OffsetRange(first, wanted.next), self._target(p.topic)
        topic_id = kafka.topic_ids[p.topic]
        try:
            staged = await earlier.stage(target, topic_id, p, left, request.most_bytes)
        except (*_NOT_DECODED, RangeRefused) as exc:
            return Unclear(str(exc))
        if isinstance(staged, TooLarge):
            return staged
        after: KafkaState | Unclear
        try:
            after = await self._kafka.state(query)
        except (BrokerUnavailable, TopicMissing) as exc:
            after = Unclear(str(exc))
        if isinstance(after, KafkaState) and after.topic_ids == kafka.topic_ids:
            return EarlierStaged(staged, after)
        await earlier.delete(self.table, [part.file for part in staged.slices])
        reason = f": {after.reason}" if isinstance(after, Unclear) else ""
        return Unclear(f"what was read of {p} may be of a topic that is there no more{reason}")

    async def _append(self, commit: BatchCommit) -> Outcome:
        """Run an append: the requests of which it consists, one at a time."""
        request: AppendRequest | None = commit.begin()
        while request is not None:
            outcome = await _outcome(self._run_part(request))
            request = commit.apply_outcome(outcome, loop_s())
            self.known = commit.known
            while commit.logs:
                decided = commit.logs.pop(0)
                log(decided.event, table=self.table, **decided.facts)
        if commit.verdict is None:
            raise RuntimeError(f"the commit of {self.table} has ended without a verdict")
        return commit.verdict

    async def _run_part(self, request: AppendRequest) -> Outcome:
        staging, table = self.context.staging, self.table
        match request:
            case CheckLease(lease=lease):
                there = await staging.existing(table, {lease})
                return Done() if lease in there else LeaseGone()
            case ReadFooters(files=files):
                return FootersRead(await staging.footers(table, files), wall_ms())
            case FindReadable(files=files):
                return FilesFound(await staging.readable(table, files))
            case PublishColumns(columns=columns):
                await publish_added(staging, table, columns)
                return Done()
            case QueryKafka():
                return await self._kafka.state(request)
            case _:
                return await self._run_on_spark(request)

    async def _run_on_spark(
        self,
        request: (
            ReadColumns
            | AddColumns
            | FindBadOffsets
            | FindLowestBad
            | AppendBad
            | AddFiles
            | AppendRows
            | NoteDeleted
            | MergeRows
            | CommitStamp
        ),
    ) -> Outcome:
        lake, table = self.lake, self.table
        match request:
            case ReadColumns(comment=comment):
                return ColumnsRead(await lake.columns(table, comment))
            case AddColumns(columns=columns, comment=comment):
                await lake.add_columns(table, columns, comment)
                return Done()
            case FindBadOffsets(since=since):
                return BadOffsetsFound(await lake.highest_bad_offsets(table, since))
            case FindLowestBad():
                return LowestBadFound(await lake.lowest_bad_offsets(table))
            case AddFiles(batch=batch, lease=lease, stamp=stamp):
                return await lake.add_files(table, batch, lease, stamp) or Committed()
            case _:
                return await self._commit(request)

    async def _commit(
        self, request: AppendBad | AppendRows | NoteDeleted | MergeRows | CommitStamp
    ) -> Outcome:
        lake, table = self.lake, self.table
        match request:
            case AppendBad(batch=batch, lease=lease, stamp=stamp):
                await lake.append_bad(table, batch, lease, stamp)
            case AppendRows(batch=batch, lease=lease, stamp=stamp):
                await lake.append(table, batch, lease, stamp)
            case NoteDeleted(batch=batch, lease=lease, stamp=stamp):
                await lake.note_deleted(table, batch, lease, stamp)
            case MergeRows(batch=batch, lease=lease, number=number, stamp=stamp):
                await lake.merge(table, batch, lease, number, stamp)
            case CommitStamp(lease=lease, number=number, stamp=stamp):
                await lake.commit_stamp(table, lease, number, stamp)
        return Committed()


async def _outcome(work: Awaitable[Outcome]) -> Outcome:
    """Return the outcome of a request; errors are outcomes, too."""
    try:
        return await work
    except WriteConflict as exc:
        return Conflict(str(exc))
    except _WITHOUT_VERDICT as exc:
        return Unclear(str(exc))
    except TableRefused as exc:
        return Refused(str(exc))
    except StagedUnreadable as exc:
        return Unreadable(exc.files, str(exc))
