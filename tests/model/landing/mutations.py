"""Mutations of landing: each disables one rule by replacing a function of the product.

What claims do on Spark is the model's own: `delta`.
"""

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from binwright.consumer.decide.bad_share import BadShare
from binwright.consumer.decide.buffer import Buffer
from binwright.consumer.decide.land import (
    append,
    backfills,
    erasures,
    landed_offsets,
    landing,
    machine,
    operations,
)
from binwright.consumer.decide.land import chain as chains
from binwright.consumer.decide.land import commits as table_commits
from binwright.consumer.decide.land.append import (
    BadEnds,
    BatchCommit,
    LowestBad,
    Steps,
    TableKnowledge,
)
from binwright.consumer.decide.land.chain import Announcement, Chain
from binwright.consumer.decide.land.commits import Resolved
from binwright.consumer.decide.land.landed_offsets import Offsets
from binwright.consumer.decide.land.states import (
    AddFiles,
    Append,
    AppendBad,
    AppendRows,
    ChangeBad,
    Claiming,
    ClaimStep,
    CommitStamp,
    Committed,
    Conflict,
    Done,
    EarlierFound,
    EraseNoted,
    KafkaState,
    Landing,
    MergeRows,
    NoteDeleted,
    NoteErased,
    Outcome,
    ReadAnnouncements,
    Request,
    Resolving,
    StagePortion,
    Unclear,
    Unreadable,
    Writer,
)
from binwright.consumer.decode import one_by_one
from binwright.protocol.landing import Staged
from binwright.protocol.model import TopicPartition
from binwright.protocol.ports.kafka import GroupOffset
from binwright.tables.operations import BACKFILL
from binwright.tables.ports import Batch, Commit, Footer, PartitionOffsets, Ranges
from binwright.tables.stamp import Stamp, read_stamp

from . import backfills as model_backfills
from . import delta, replays
from . import reading_mutations as reading
from .world import TOPIC, Call, DeltaTable, Row, World

Patch = tuple[object, str, Any]
"""Module or class, name of the function, and its replacement."""


@contextmanager
def mutated(patches: tuple[Patch, ...]) -> Iterator[None]:
    """Apply a mutation while the context lasts."""
    before = [(where, name, getattr(where, name)) for where, name, _ in patches]
    for where, name, instead in patches:
        setattr(where, name, instead)
    try:
        yield
    finally:
        for where, name, what in before:
            setattr(where, name, what)


# --- chain ---------------------------------------------------------------------------------------

_joining = chains._BatchBuilder._joining


def _skips_gaps(self: chains._BatchBuilder, announced: Announcement) -> Ranges:
    ends = self.ends
    firsts = {p: found.first for p, found in announced.staged.ranges.items()}
    self.ends = {p: max(end, firsts.get(p, 0)) for p, end in ends.items()}
    joined = _joining(self, announced)
    self.ends = ends
    return joined


def _keeps_landed_offsets(self: chains._BatchBuilder, announced: Announcement) -> Ranges:
    return {p: announced.ranges[p] for p in _joining(self, announced)}


def _forgets_cut(chain: Chain, after: Chain) -> tuple[Chain, tuple[Announcement, ...]]:
    return _landed(chain, replace(after, cuts=chain.cuts, cut_files=chain.cut_files))


_landed = chains.landed


def _forgets_files_of_cuts(chain: Chain, after: Chain) -> tuple[Chain, tuple[Announcement, ...]]:
    return _landed(chain, replace(after, cut_files=chain.cut_files))


def _stamps_no(*names: str) -> Any:
    """Return a writer whose stamps lack these fields."""

    def send(*args: Any) -> tuple[Landing, Request]:
        state, wanted = _landing_send(*args)
        assert isinstance(wanted, Append)
        assert state.flight is not None
        stamp = replace(state.flight.stamp, **{name: {} for name in names})  # type: ignore[arg-type]
        return state, replace(wanted, stamp=stamp.encode())

    return send


def _continues_when_full(self: chains._BatchBuilder, candidates: Collection[Announcement]) -> None:
    for announced in candidates:
        self.take_ranges(announced)


def _all_topics_if_any_joins(chain: Chain) -> frozenset[str]:
    return frozenset(chain.topic_ids) if _joining_topics(chain) else frozenset()


_joining_topics = chains.joining_topics


def _all_touched_are_over(chain: Chain, after: Chain) -> tuple[Chain, tuple[Announcement, ...]]:
    ended = replace(chain, committed={**chain.committed, **after.committed}, cuts=after.cuts)
    over = tuple(a for a in chain.pending if set(a.staged.ranges) & set(after.committed))
    return chains.without(ended, over), over


def _any_topic_matches(_one: str | None, _other: str | None) -> bool:
    return True


def _drops_newer_topics(
    chain: Chain, topic: str, before: int
) -> tuple[Chain, tuple[Announcement, ...]]:
    return _without_old_topic(chain, topic, before + 1_000)


_without_old_topic = chains.without_old_topic


def _mixes_cuts(self: chains._BatchBuilder, announced: Announcement) -> Ranges:
    self.partitions = set()
    return _take_ranges(self, announced)


_take_ranges = chains._BatchBuilder.take_ranges

# --- claim ---------------------------------------------------------------------------------------

_apply_outcome, _apply_while_claiming, _apply_while_landing, _begin = (
    machine.apply_outcome,
    machine._apply_while_claiming,
    machine._apply_while_landing,
    machine._begin,
)


def _in_order(*steps: ClaimStep) -> Any:
    """Return a claim with these steps after the first."""

    def apply(writer: Writer, step: ClaimStep, outcome: Outcome) -> machine.Step:
        after, effects = _apply_while_claiming(writer, step, outcome)
        if not isinstance(outcome, Done | Committed):
            return after, effects
        done = (ClaimStep.WRITE_LEASE, *steps)
        following = dict(zip(done, (*steps, None), strict=True))[step]
        return replace(writer, phase=Claiming(following) if following else Resolving()), effects

    return apply


def _accepts_as_claim(kind: type[Outcome]) -> Any:
    def apply_outcome(writer: Writer, outcome: Outcome, now: float) -> machine.Step:
        if writer.phase == Claiming(ClaimStep.COMMIT) and isinstance(outcome, kind):
            outcome = Committed()
        return _apply_outcome(writer, outcome, now)

    return apply_outcome


@dataclass(frozen=True, slots=True)
class _Claiming(Claiming):
    kept: Landing | None = None


def _resolves_before_commit(
    writer: Writer, facts: KafkaState, found: Resolved, now: float
) -> machine.Step:
    after, effects = _begin(writer, facts, found, now)
    assert isinstance(after.phase, Landing)
    return replace(after, phase=_Claiming(ClaimStep.COMMIT, after.phase)), effects


def _commits_at_last(writer: Writer, step: ClaimStep, outcome: Outcome) -> machine.Step:
    if isinstance(writer.phase, _Claiming) and writer.phase.kept:
        if not isinstance(outcome, Committed):
            return writer, ()
        kept = writer.phase.kept
        return replace(writer, phase=kept), (ReadAnnouncements(kept.chain.next_announcement),)
    after, effects = _apply_while_claiming(writer, step, outcome)
    if after.phase == Claiming(ClaimStep.COMMIT):
        return replace(after, phase=Resolving()), effects
    return after, effects


# --- commit --------------------------------------------------------------------------------------


def _counts_as_committed(kind: type[Outcome]) -> Any:
    def landed(writer: Writer, phase: Landing, outcome: Outcome, now: float) -> machine.Step:
        if isinstance(outcome, kind) and phase.flight:
            outcome = Committed()
        return _apply_while_landing(writer, phase, outcome, now)

    return landed


_landing_send = landing._send


def _reads_no_lease(*args: Any) -> tuple[Landing, Request]:
    state, wanted = _landing_send(*args)
    assert isinstance(wanted, Append)
    return state, replace(wanted, lease="")


def _sends_another_batch(writer: Writer, _reason: str) -> machine.Step:
    assert isinstance(writer.phase, Landing)
    return replace(writer, phase=replace(writer.phase, flight=None)), ()


def _claims_again_and_keeps(writer: Writer, reason: str) -> machine.Step:
    after, effects = _claim_again(writer, reason)
    assert isinstance(writer.phase, Landing)
    kept = replace(writer.phase, flight=None, writer=after.name, lease=after.lease)
    return replace(after, phase=_Claiming(kept=kept)), effects


def _goes_on_with_what_it_kept(writer: Writer, step: ClaimStep, outcome: Outcome) -> machine.Step:
    kept = getattr(writer.phase, "kept", None)
    after, effects = _apply_while_claiming(writer, step, outcome)
    if kept is None:
        return after, effects
    if isinstance(after.phase, Resolving):
        return replace(after, phase=kept), effects
    assert isinstance(after.phase, Claiming)
    return replace(after, phase=_Claiming(after.phase.step, kept)), effects


_claim_again = machine._claim_again


def _claims_under_the_same_lease(writer: Writer, reason: str) -> machine.Step:
    after, effects = _claim_again(writer, reason)
    return replace(after, claim=writer.claim), effects


# --- stamps --------------------------------------------------------------------------------------

_resolve, _apply_announcements = table_commits.resolve, landing.apply_announcements


def _only_newest_stamp(commits: Any, table: Any, topic_ids: Any) -> Resolved:
    newest: list[Commit] = []
    for commit in commits:
        newest.append(commit)
        stamp = read_stamp(commit.metadata, table)
        if stamp is not None and stamp.sequence:
            break
    return replace(_resolve(newest, table, topic_ids), whole=True)


def _always_whole(commits: Any, table: Any, topic_ids: Any) -> Resolved:
    return replace(_resolve(commits, table, topic_ids), whole=True)


def _any_landing_topic(found: Resolved, _facts: Any) -> tuple[int, PartitionOffsets]:
    return found.needed_from, found.cuts


def _forgets_cuts(commits: Any, table: Any, topic_ids: Any) -> Resolved:
    return replace(_resolve(commits, table, topic_ids), cuts={}, cut_files={})


def _stamps_no_begin(
    writer: Writer, facts: KafkaState, found: Resolved, now: float
) -> machine.Step:
    after, effects = _begin(writer, facts, found, now)
    assert isinstance(after.phase, Landing)
    return replace(after, phase=replace(after.phase, stamp_due=False)), effects


def _begins_at_kafkas_first_record(state: Landing) -> Landing:
    new = state.undecided
    chain = chains.open_partitions(state.chain, new)
    return replace(state, chain=chain, undecided={}, stamp_due=state.stamp_due or bool(new))


def _deletes_before_stamp(state: Landing, read: Any, now: float) -> landing.Step:
    announced = [Announcement(offset, staged, now) for offset, staged in read]
    _, (over, _) = chains.add_announcements(state.chain, announced)
    after, _ = _apply_announcements(state, read, now)
    return after, landing._delete(over)


# --- several tables ------------------------------------------------------------------------------


def _highest_landed(tables: Collection[Offsets]) -> dict[TopicPartition, GroupOffset]:
    known = set.intersection(*(set(offsets) for offsets in tables))
    return {p: max((t[p] for t in tables), key=lambda offset: offset.offset) for p in known}


def _of_those_that_know(tables: Collection[Offsets]) -> dict[TopicPartition, GroupOffset]:
    known = {p for offsets in tables for p in offsets}
    return {
        p: min((t[p] for t in tables if p in t), key=lambda offset: offset.offset) for p in known
    }


_of_the_topics_table = property(lambda staged: staged.topic)


# --- several topics ------------------------------------------------------------------------------


def _of_the_first_topic(self: Announcement, number: int) -> TopicPartition:
    del self
    return TopicPartition(TOPIC, number)


def _reads_no_topics(text: str | None, table: Any) -> Stamp | None:
    stamp = read_stamp(text, table)
    if stamp is None:
        return None
    return replace(
        stamp,
        topic_ids={TOPIC: next(iter(stamp.topic_ids.values()), None)},
        committed={p._replace(topic=TOPIC): o for p, o in stamp.committed.items()},
    )


def _stamps_topics_of_the_batch(*args: Any) -> tuple[Landing, Request]:
    state, wanted = _landing_send(*args)
    assert isinstance(wanted, Append)
    assert state.flight is not None
    stamp, topics = state.flight.stamp, {part.topic for part in wanted.batch.slices}
    if not topics:
        return state, wanted
    own = {p: offset for p, offset in stamp.committed.items() if p.topic in topics}
    return state, replace(wanted, stamp=replace(stamp, committed=own).encode())


# --- decoded values ------------------------------------------------------------------------------


def _rows_first(self: BatchCommit, batch: Batch) -> Steps[None]:
    lease, stamp = self._request.lease, self._request.stamp
    yield from self._write(AppendRows(batch, lease, stamp))
    yield from self._write(AppendBad(batch, lease, stamp))


def _claims_no_bad(world: World, _call: Call) -> World:
    return world


def _keeps_bad_offsets(self: BatchCommit) -> tuple[BadEnds | None, LowestBad | None]:
    return self.known.bad_ends, self.known.lowest_bad


def _any_claims_bad_ends(known: TableKnowledge, lease: str) -> BadEnds:
    return known.bad_ends or BadEnds(lease)


def _stamps_only(self: BatchCommit) -> Steps[None]:
    request = self._request
    yield from self._write(CommitStamp(request.lease, request.number, request.stamp))


def _takes_any_answer(self: BatchCommit, batch: Batch) -> Steps[bool]:
    if not append.can_be_added(batch, self._footers):
        return False
    yield from self._write(AddFiles(batch, self._request.lease, self._request.stamp))
    return True


def _whole_files_can(batch: Batch, footers: Mapping[str, Footer]) -> bool:
    del footers
    return all(part.whole for part in batch.slices)


def _fits(self: BatchCommit, batch: Batch) -> Steps[None]:
    del self, batch
    yield from ()


def _looks_at_no_lease(
    self: BatchCommit, write: AppendBad | AppendRows | CommitStamp
) -> Steps[None]:
    outcome = yield from self._try(write)
    if isinstance(outcome, Unreadable):
        lost = yield from self._unreadable(outcome.files)
        raise append._Ended(Unreadable(lost, outcome.reason))
    if not isinstance(outcome, Committed):
        raise append._end(outcome)


def _is_as_announced(_batch: Batch, _footers: object) -> frozenset[str]:
    return frozenset()


def _never(*_: object) -> bool:
    return False


def _always(*_: object) -> bool:
    return True


# --- a replay ------------------------------------------------------------------------------------

_next_step = operations.next_step


def _removes_before_append(*args: Any) -> Any:
    state, step = _next_step(*args)
    if not isinstance(step, tuple):
        return state, step
    request = ChangeBad("")
    return replace(state, asked=request), request


def _ignores_unsettled(commits: Any, table: Any, topic_ids: Any) -> Resolved:
    found = _resolve(commits, table, topic_ids)
    operation = found.operation and replace(found.operation, unsettled={})
    return replace(found, operation=operation)


def _replays_what_may_land_again(*args: Any) -> Any:
    state, step = _next_step(*args)
    if isinstance(step, StagePortion):
        every = dict.fromkeys(step.query.below, 1_000)
        step = replace(step, query=replace(step.query, below=every))
        state = replace(state, asked=step)
    return state, step


# --- keys ---------------------------------------------------------------------------------------


def _any_is_newer(*_: object, **__: object) -> bool:
    return True


def _what_is_noted_too(table: DeltaTable) -> frozenset[Row]:
    return table.deletions | ({table.row} if table.row else set())


def _newer_by_its_offset(change: Row, known: Row, **_: object) -> bool:
    return change.offset > known.offset


def _notes_no_deletions(self: BatchCommit, batch: Batch) -> Steps[None]:
    yield from _merge(self, replace(batch, deletes=False))


def _notes_deletions_later(self: BatchCommit, batch: Batch) -> Steps[None]:
    lease, stamp = self._request.lease, self._request.stamp
    yield from self._write(MergeRows(batch, lease, self._request.number, stamp))
    if batch.deletes:
        yield from self._write(NoteDeleted(batch, lease, stamp))


_merge = BatchCommit._merge

# --- an erasure ----------------------------------------------------------------------------------


def _erases_unnoted(world: World, index: int, wanted: NoteErased | EraseNoted) -> Call:
    call = _erasing(world, index, wanted)
    return replace(call, part="erase") if call.part == "note" else call


_erasing, _without_noted = replays.erasing, delta.without_noted


def _removes_all(table: DeltaTable) -> DeltaTable:
    noted = table.noted
    return replace(_without_noted(replace(table, noted=table.landed)), noted=noted)


def _waits_for_its_order_alone(state: Landing) -> bool:
    return state.erasure is None


# --- a back-fill ---------------------------------------------------------------------------------


def _stamps_where_it_began(*args: Any) -> tuple[Landing, Request]:
    state, wanted = _landing_send(*args)
    assert isinstance(wanted, Append)
    assert state.flight is not None
    stamp = state.flight.stamp
    if wanted.batch.work != BACKFILL or stamp.operation is None:
        return state, wanted
    (part,) = wanted.batch.slices
    before = {TopicPartition(part.topic, n): (0, end) for n, (_, end) in part.ranges.items()}
    ranges = {**stamp.operation.ranges, **before}
    operation = replace(stamp.operation, ranges=ranges, state="running")
    return state, replace(wanted, stamp=replace(stamp, operation=operation).encode())


_earlier = backfills.earlier


def _begins_where_it_stands(operation: Any, committed: Any, found: EarlierFound) -> Any:
    return _earlier(operation, committed, replace(found, lowest={}))


def _finds_no_bad_records(self: BatchCommit, batch: Batch) -> Steps[bool]:
    del self, batch
    yield from ()
    return False


def _lowest_with_bad(world: World, table: DeltaTable) -> Any:
    return model_backfills.outermost(world, table.landed | table.noted)


def _no_fault(*_: object) -> str:
    return ""


def _goes_on(state: Landing, _partitions: object) -> Landing:
    return state


MUTATIONS: Mapping[str, tuple[Patch, ...]] = {
    # a back-fill
    "a stamp does not say that the table begins before a portion": (
        (landing, "_send", _stamps_where_it_began),
    ),
    "what a table has is back-filled": ((backfills, "earlier", _begins_where_it_stands),),
    "bad records of a portion that did not land are not left out": (
        (BatchCommit, "_has_bad_records", _finds_no_bad_records),
    ),
    "a table begins with bad records that landed alone": (
        (model_backfills, "lowest", _lowest_with_bad),
    ),
    "a log that is cut is back-filled": (
        (backfills, "waits", _never),
        (backfills, "without", _goes_on),
    ),
    "a topic that was recreated is back-filled": (
        (backfills, "_of_another_topic", _no_fault),
        (backfills, "without", _goes_on),
    ),
    # a replay
    "bad records leave before their rows land": (
        (operations, "next_step", _removes_before_append),
    ),
    "a stamp's unsettled records are decoded again": ((machine, "resolve", _ignores_unsettled),),
    "bad records are replayed that may land again": (
        (operations, "next_step", _replays_what_may_land_again),
    ),
    # keys
    "a change that is older becomes the row of its key": ((delta, "is_newer", _any_is_newer),),
    "changes of a topic made anew are older": ((delta, "is_newer", _newer_by_its_offset),),
    "a deletion is compared with its own note": ((delta, "known_of", _what_is_noted_too),),
    "deletions are not noted": ((BatchCommit, "_merge", _notes_no_deletions),),
    "deletions are noted after the changes are applied": (
        (BatchCommit, "_merge", _notes_deletions_later),
    ),
    # an erasure
    "rows are erased before their places are noted": (
        (replays, "erasing", _erases_unnoted),
        (delta, "without_noted", _removes_all),
    ),
    "an erasure does not wait for what has not landed": (
        (erasures, "waits", _waits_for_its_order_alone),
    ),
    # several tables
    "one table's offsets are committed": ((landed_offsets, "least_landed", _highest_landed),),
    "offsets of a table are committed that others do not know": (
        (landed_offsets, "least_landed", _of_those_that_know),
    ),
    "announcements of another table are taken": ((Staged, "target", _of_the_topics_table),),
    # several topics
    "ranges are those of the table's first topic": (
        (Announcement, "partition", _of_the_first_topic),
    ),
    "stamps have no topics": ((table_commits, "read_stamp", _reads_no_topics),),
    "a full stamp has the topics of its batch": ((landing, "_send", _stamps_topics_of_the_batch),),
    # chain
    "a range lands across a gap": ((chains._BatchBuilder, "_joining", _skips_gaps),),
    "landed offsets are not cut off": ((chains._BatchBuilder, "_joining", _keeps_landed_offsets),),
    "a cut is applied each time": ((chains, "landed", _forgets_cut),),
    "a cut counts each time that its file is announced": (
        (chains, "landed", _forgets_files_of_cuts),
    ),
    "a batch has what is before a cut and what is behind it": (
        (chains._BatchBuilder, "take_ranges", _mixes_cuts),
    ),
    "stamps have no cuts": ((landing, "_send", _stamps_no("cuts", "cut_files")),),
    "stamps have no files of cuts": ((landing, "_send", _stamps_no("cut_files")),),
    "a busy neighbour hides a topic that is recreated": (
        (chains, "joining_topics", _all_topics_if_any_joins),
    ),
    "files are taken after a full batch": (
        (chains._BatchBuilder, "take_all", _continues_when_full),
    ),
    "partly landed files are deleted": ((chains, "landed", _all_touched_are_over),),
    "topic ids are ignored": (
        (chains, "same_topic", _any_topic_matches),
        (table_commits, "same_topic", _any_topic_matches),
    ),
    "files of a newer topic are dropped": ((chains, "without_old_topic", _drops_newer_topics),),
    # claim
    "the metadata are committed before leases go": (
        (
            machine,
            "_apply_while_claiming",
            _in_order(ClaimStep.COMMIT, ClaimStep.DELETE_OTHERS),
        ),
    ),
    "other leases stay": ((machine, "_apply_while_claiming", _in_order(ClaimStep.COMMIT)),),
    "no metadata are committed": (
        (machine, "_apply_while_claiming", _in_order(ClaimStep.DELETE_OTHERS)),
    ),
    "a conflict is a claim": ((machine, "apply_outcome", _accepts_as_claim(Conflict)),),
    "an unclear result is a claim": ((machine, "apply_outcome", _accepts_as_claim(Unclear)),),
    "the history is read before the claim": (
        (machine, "_begin", _resolves_before_commit),
        (machine, "_apply_while_claiming", _commits_at_last),
    ),
    # commit
    "no lease is read": ((landing, "_send", _reads_no_lease),),
    "a conflict is a commit": ((machine, "_apply_while_landing", _counts_as_committed(Conflict)),),
    "an unclear result is a commit": (
        (machine, "_apply_while_landing", _counts_as_committed(Unclear)),
    ),
    "another batch after an unclear result": ((machine, "_claim_again", _sends_another_batch),),
    "the chain survives an unclear result": (
        (machine, "_claim_again", _claims_again_and_keeps),
        (machine, "_apply_while_claiming", _goes_on_with_what_it_kept),
    ),
    "a new claim has the same lease": ((machine, "_claim_again", _claims_under_the_same_lease),),
    # stamps
    "only the newest stamp counts": ((machine, "resolve", _only_newest_stamp),),
    "a short history is whole": ((machine, "resolve", _always_whole),),
    "landing topic ids are ignored": ((machine, "_landing_position", _any_landing_topic),),
    "applied cuts are forgotten": ((machine, "resolve", _forgets_cuts),),
    "a partition begins at Kafka's first record, whatever is staged": (
        (landing, "_decide_begins", _begins_at_kafkas_first_record),
    ),
    "begins are not stamped": ((machine, "_begin", _stamps_no_begin),),
    "files are deleted before the stamp": (
        (landing, "apply_announcements", _deletes_before_stamp),
    ),
    # ranges
    "a range begins at its first record": (
        (Buffer, "take_ranges", reading.begins_at_first_record),
    ),
    "a range begins too early": ((Buffer, "take_ranges", reading.begins_too_early),),
    "a range ends too late": ((Buffer, "take_ranges", reading.ends_too_late),),
    "rows survive a reset": (
        (Buffer, "begin", reading.keeps_rows),
        (Buffer, "drop", reading.drops_nothing),
    ),
    "a cut is not announced": ((Buffer, "begin", reading.ignores_cuts),),
    "a record is left out": ((Buffer, "add", reading.loses_record),),
    # decoded values
    "rows land before their bad records": ((BatchCommit, "_land", _rows_first),),
    "a claim leaves the table of bad records": ((delta, "claim_bad", _claims_no_bad),),
    "bad offsets are not found again after a conflict": (
        (BatchCommit, "_forget_bad_offsets", _keeps_bad_offsets),
    ),
    "a new claim knows the bad offsets of the one before": (
        (append, "bad_ends_of", _any_claims_bad_ends),
    ),
    "bad records that have landed are not left out": ((append, "may_have_landed", _never),),
    "rows have not landed if the stamp behind them has not": (
        (BatchCommit, "_stamp_after_rows", _stamps_only),
    ),
    "files that another writer deleted are read again": (
        (BatchCommit, "_write", _looks_at_no_lease),
    ),
    "files are taken for what is announced": ((append, "not_as_announced", _is_as_announced),),
    "any files are committed as they are": ((append, "can_be_added", _always),),
    "records that have landed as bad ones are committed as rows": (
        (append, "can_be_added", _whole_files_can),
    ),
    "files that were not committed as they are have landed": (
        (BatchCommit, "_add_files", _takes_any_answer),
    ),
    "files that do not fit land": ((BatchCommit, "_unfit", _fits),),
    "records are read again that Kafka has no more": ((append, "has_all", _always),),
    "too many bad records land": ((BadShare, "exceeded", property(_never)),),
    "an exception of one value is one of its file": (
        (one_by_one, "decode_parts", reading.raises_for_a_file),
    ),
    "an exception makes all values bad": ((one_by_one, "decode_parts", reading.all_are_bad),),
}
