"""One table's writer: it claims the table, resolves what is committed, then commits batches.

Pure. The service calls `next_request`, performs that request, and passes the outcome to
`apply_outcome`; announcements go to `apply_announcements`. One request is in flight at a time.
Without the rules marked † rows are lost or doubled (docs/design/protocol.md).
"""

from collections.abc import Collection, Sequence
from dataclasses import replace

from binwright.consumer.decide.land import backfills, landing, operations
from binwright.consumer.decide.land import chain as chains
from binwright.consumer.decide.land.begins import (
    at_first_record,
    begin_at_end,
    begin_offsets,
)
from binwright.consumer.decide.land.chain import Chain
from binwright.consumer.decide.land.commits import Resolved, resolve
from binwright.consumer.decide.land.states import (
    LONGER,
    Claiming,
    ClaimStep,
    ClaimTable,
    CommitOffsets,
    Committed,
    Conflict,
    Contradicted,
    DeleteOtherLeases,
    Done,
    Effect,
    HistoryRead,
    KafkaState,
    LandedOffsets,
    Landing,
    LeaseGone,
    Lost,
    Outcome,
    QueryKafka,
    ReadAnnouncements,
    ReadHistory,
    ReadLandedOffsets,
    Refused,
    Request,
    Resolving,
    Unclear,
    Unreadable,
    WriteLease,
    Writer,
    by_name,
)
from binwright.protocol.landing import Staged
from binwright.protocol.log_events import Log, LogEvent
from binwright.protocol.orders import OperationOrder, TableOrder
from binwright.tables.ports import PartitionOffsets, Table
from binwright.tables.stamp import Stamp

TABLE_CLAIMED = LogEvent.info(
    "table.claimed", "This consumer is the writer of a table from now on."
)
TABLE_RECLAIMED = LogEvent.info(
    "table.reclaimed",
    "A commit ended without a verdict; the writer claims the table anew and reads what is "
    "committed.",
)
TABLE_CONTRADICTED = LogEvent.error(
    "table.contradicted",
    "Rows, offsets or a stamp (the event names its version) reach above the end of the topic, or "
    "a stamp is a later version's or no writer's: nothing lands until a person decides.",
)
TABLE_RESOLVED = LogEvent.info(
    "table.resolved", "The writer knows from the table's stamps what is committed."
)
TABLE_LOST = LogEvent.info("table.lost", "Another consumer is the writer of the table now.")

Step = tuple[Writer, tuple[Effect, ...]]


def next_request(writer: Writer, now: float) -> tuple[Writer, Request | None]:
    """Return the request that is due; None: wait for an announcement, or until `due_at`."""
    match writer.phase:
        case Claiming(step=step):
            return writer, _claim_request(writer, step)
        case Resolving() as phase:
            return writer, _resolve_request(phase, writer.config.table)
        case Landing() as phase:
            request = landing.next_query if phase.doubted else landing.next_request
            phase, wanted = request(phase, writer.config, now)
            return replace(writer, phase=phase), wanted
        case _:
            return writer, None


def due_at(writer: Writer, now: float) -> float:
    """Return when to call `next_request` again at the latest; seconds, monotonic."""
    if isinstance(writer.phase, Landing):
        return landing.due_at(writer.phase, writer.config, now)
    return now


def apply_announcements(writer: Writer, read: Sequence[tuple[int, Staged]], now: float) -> Step:
    """Apply records of the landing topic, in order of their offsets.

    One of another table is ignored, and all outside the landing phase.
    """
    if not isinstance(writer.phase, Landing):
        return writer, ()
    own = [(offset, each) for offset, each in read if each.target == writer.config.table.name]
    phase, effects = landing.apply_announcements(writer.phase, own, now)
    return replace(writer, phase=phase), effects


def apply_order(writer: Writer, order: TableOrder, read_at: float) -> Step:
    """Apply the newest order about the table, as of `read_at` (s, monotonic); again has no effect.

    Outside the landing phase it is ignored.
    """
    if not isinstance(writer.phase, Landing):
        return writer, ()
    return _with_phase(writer, landing.follow(writer.phase, order, read_at))


def apply_operation(writer: Writer, order: OperationOrder, read_at: float) -> Step:
    """Apply the newest order of work on the table, as of `read_at`; see `apply_order`."""
    if not isinstance(writer.phase, Landing) or writer.phase.flight is not None:
        return writer, ()
    return _with_phase(writer, operations.follow(writer.phase, writer.config, order, read_at))


def apply_read_up_to(writer: Writer, offset: int) -> Writer:
    """Apply that the table has no further announcement before `offset` of the landing topic."""
    if not isinstance(writer.phase, Landing):
        return writer
    return replace(writer, phase=landing.read_up_to(writer.phase, offset))


def with_topics(writer: Writer, topics: Collection[str]) -> Writer:
    """Apply that the table takes these topics: Kafka is asked about new ones at once."""
    table = writer.config.table
    first, *more = [t for t in table.topics if t in topics] or sorted(topics)
    more += sorted({*topics}.difference((first, *more)))
    phase = writer.phase
    if isinstance(phase, Landing):
        phase = replace(phase, checked_at=float("-inf"))
    elif isinstance(phase, Resolving):
        phase = Resolving()  # Kafka is asked about all of them
    config = replace(writer.config, table=replace(table, topic=first, more_topics=tuple(more)))
    return replace(writer, config=config, phase=phase)


def apply_outcome(writer: Writer, outcome: Outcome, now: float) -> Step:
    """Apply the outcome of the request in flight.

    Raises:
        ValueError: The outcome does not belong to the request.
    """
    match writer.phase, outcome:
        case Claiming(step=step), _:
            return _apply_while_claiming(writer, step, outcome)
        case Resolving() as phase, _:
            return _apply_while_resolving(writer, phase, outcome, now)
        case Landing() as phase, _:
            return _apply_while_landing(writer, phase, outcome, now)
    raise ValueError(f"{outcome} is not an outcome of a request in {writer.phase}")


# --- claim -------------------------------------------------------------------------------------


def _claim_request(writer: Writer, step: ClaimStep) -> Request:
    match step:
        case ClaimStep.WRITE_LEASE:
            return WriteLease(writer.lease)
        case ClaimStep.DELETE_OTHERS:
            return DeleteOtherLeases(writer.lease)
        case _:
            return ClaimTable(writer.name, _claim_stamp(writer).encode())


def _claim_stamp(writer: Writer) -> Stamp:
    table = writer.config.table
    return Stamp(group=table.group, cluster=table.cluster, writer=writer.name, sequence=0)


def _apply_while_claiming(writer: Writer, step: ClaimStep, outcome: Outcome) -> Step:
    """Go on to the next step of the claim (†: in this order), or repeat this one.

    An append that takes its snapshot before the metadata commit is refused by Delta when it comes
    to commit after it. One that takes it later finds its lease gone: the leases go first.
    """
    match step, outcome:
        case _, Conflict() | Unclear() | Refused():
            return writer, ()  # proves nothing (†): the same step is repeated
        case ClaimStep.WRITE_LEASE, Done():
            return replace(writer, phase=Claiming(ClaimStep.DELETE_OTHERS)), ()
        case ClaimStep.DELETE_OTHERS, Done():
            return replace(writer, phase=Claiming(ClaimStep.COMMIT)), ()
        case ClaimStep.COMMIT, Committed():
            return replace(writer, phase=Resolving()), (
                Log(TABLE_CLAIMED, {"writer": writer.name}),
            )
    raise ValueError(f"{outcome} is not an outcome of a claim")


def _claim_again(writer: Writer, reason: str) -> Step:
    """Claim under another lease: what is in flight has landed before, or never lands (†)."""
    last = writer.phase if isinstance(writer.phase, Landing) else writer.last
    again = replace(writer, claim=writer.claim + 1, phase=Claiming(), last=last)
    return again, (Log(TABLE_RECLAIMED, {"reason": reason}),)


# --- resolve -----------------------------------------------------------------------------------


def _resolve_request(phase: Resolving, table: Table) -> Request:
    if phase.kafka is None:
        topics = frozenset(table.topics)
        return QueryKafka(topics, begins_of=topics)
    return ReadLandedOffsets() if phase.resolved else ReadHistory(phase.limit)


def _apply_while_resolving(writer: Writer, phase: Resolving, outcome: Outcome, now: float) -> Step:
    match outcome:
        case KafkaState():
            return replace(writer, phase=replace(phase, kafka=outcome)), ()
        case HistoryRead(commits=commits, complete=complete) if phase.kafka is not None:
            resolved = resolve(commits, writer.config.table, phase.kafka.topic_ids)
            if reason := _later(resolved.later) or _false_stamp(resolved, phase.kafka):
                return _contradicted(writer, reason)
            if resolved.whole:
                return _begin(writer, phase.kafka, resolved, now)
            longer = replace(phase, limit=phase.limit * LONGER)
            if not complete and longer.limit <= writer.config.max_history:
                return replace(writer, phase=longer), ()
            # Rows may be older than all stamps: of a clone, of another group, after a clean-up (†).
            return replace(writer, phase=replace(phase, resolved=resolved)), ()
        case LandedOffsets() if phase.resolved and phase.kafka:
            resolved = _with_landed_offsets(phase.resolved, outcome)
            if reason := _contradiction(phase.resolved, resolved, phase.kafka):
                return _contradicted(writer, reason)
            return _begin(writer, phase.kafka, resolved, now)
        case _:  # no conclusive outcome: the request is repeated
            missing = phase.kafka is not None and bool(phase.kafka.unknown)
            # Topics of which nothing was known may be known by now.
            again = Resolving() if missing and isinstance(outcome, Unclear) else phase
            return replace(writer, phase=again), ()


def _contradicted(writer: Writer, reason: str) -> Step:
    log = Log(TABLE_CONTRADICTED, {"reason": reason})
    return replace(writer, phase=Contradicted(reason)), (log,)


def _false_stamp(resolved: Resolved, facts: KafkaState) -> str:
    """Return which version has a stamp that no writer has made; empty if none is known to (†).

    Whoever may write the table's place can commit any. What is above the end of a log may be true,
    if the log was cut: `landing.resolve_doubts`.
    """
    instead = "somebody else made it: set another lake.path, or move the table away"
    if (version := resolved.unfounded) is not None:
        return (
            f"version {version} of the table says what has landed, and no version before it says "
            f"all of it, as each writer's first commit does: {instead}"
        )
    end = facts.landing_end
    if resolved.landing_id != facts.landing_id or end is None or resolved.needed_from > end:
        return ""
    for p, offset in sorted(resolved.cuts.items()):
        if offset >= end:
            return (
                f"version {resolved.cut_versions[p]} of the table says that announcement {offset} "
                f"told of a cut of partition {p}, but the landing topic ends at {end}: {instead}, "
                "or have the landing topic made anew, if its log was cut"
            )
    return ""


def _later(kind: str) -> str:
    return kind and (
        f"the table has commits of a later version of binwright ({kind}), which this one does not "
        "read: it lands nothing. Run that version, or a later one, again"
    )


def _with_landed_offsets(stamped: Resolved, landed: LandedOffsets) -> Resolved:
    """Continue after the rows and the group's offsets, where no full stamp is left."""
    known = dict(stamped.committed)
    after_rows = ((p, last + 1) for p, last in landed.highest_offsets.items())
    for p, offset in (*after_rows, *landed.group.items()):
        known[p] = max(offset, known.get(p, 0))
    written = stamped.written.union(p.topic for p in landed.highest_offsets)
    return replace(stamped, committed=known, written=written)


def _contradiction(stamped: Resolved, resolved: Resolved, facts: KafkaState) -> str:
    """Return why rows or group offsets cannot be of their topic; empty if they can (†).

    Rows above the end of the log are of another cluster's or an earlier topic's, or their log was
    truncated: what is written next would count as landed. A stamp of this topic outweighs that.
    """
    for p, (_, end) in sorted(facts.bounds.items()):
        offset = resolved.committed.get(p, 0)
        if offset > max(end, stamped.committed.get(p, 0)):
            return (
                f"rows or the group's offset of partition {p} reach up to offset {offset}, but the "
                f"topic ends at {end}: they are of another topic of this name. Set another "
                "lake.path, or move the table away and reset the group's offsets of this topic"
            )
    return ""


def _begin(writer: Writer, facts: KafkaState, resolved: Resolved, now: float) -> Step:
    """Enter the landing phase; decide, once, where partitions begin that no stamp has."""
    latest = writer.config.from_latest
    begins = begin_offsets(facts, resolved.written, latest=latest)
    needed_from, cuts = _landing_position(resolved, facts)
    begins = {p: at for p, at in begins.items() if p not in resolved.committed}
    until = facts.landing_end or 0
    first = at_first_record(facts, resolved.written, latest=latest)
    first_begins = {p: at for p, at in begins.items() if p in first}
    undecided = first_begins if needed_from < until else {}
    fixed = {p: at for p, at in begins.items() if p not in undecided}
    chain = chains.open_partitions(
        Chain(
            topic_ids={**resolved.topic_ids, **facts.topic_ids},
            committed=resolved.committed,
            cuts=cuts,
            cut_files=resolved.cut_files,
            next_announcement=needed_from,
        ),
        fixed,
    )
    is_new = not resolved.written and resolved.operation is None
    ordered = writer.config.from_earliest and is_new
    phase = Landing(
        chain=chain,
        writer=writer.name,
        lease=writer.lease,
        landing_id=facts.landing_id,
        stamp_due=bool(fixed) or ordered or not (resolved.whole or undecided),
        undecided=undecided,
        undecided_until=until,
        doubted={
            p: resolved.versions[p]
            for p, (_, end) in facts.bounds.items()
            if p in resolved.versions and resolved.committed[p] > end
        },
        doubted_from=needed_from,
        begins={p: at for p, at in first_begins.items() if p in fixed},
        paused=resolved.paused,
        operation=backfills.at_first(writer.config) if ordered else resolved.operation,
        resolved_at=now,
        begin_at_end=begin_at_end(facts, resolved.written, latest=latest),
        ends={p: end for p, (_, end) in facts.bounds.items()},
        checked_at=now,
        full_at=now,
    )
    log = Log(TABLE_RESOLVED, {"committed": by_name(chain.committed)})
    if phase.doubted:
        return replace(writer, phase=phase), (log, ReadAnnouncements(needed_from))
    return replace(writer, phase=phase), (
        log,
        CommitOffsets(resolved.committed),  # new decisions are published once a stamp has them (†)
        ReadAnnouncements(needed_from),
    )


def _landing_position(resolved: Resolved, facts: KafkaState) -> tuple[int, PartitionOffsets]:
    """Return the first announcement that is needed, and which announcements were cuts.

    A recreated landing topic has none that were read, so all are needed. One that was truncated
    before the first needed one is read from its end; cuts are then placed before that end, so that
    each still counts once (†).
    """
    if resolved.landing_id is None or resolved.landing_id != facts.landing_id:
        return 0, {}
    end = facts.landing_end
    if end is None or resolved.needed_from <= end:
        return resolved.needed_from, resolved.cuts
    return end, {p: min(at, end - 1) for p, at in resolved.cuts.items()}


# --- land --------------------------------------------------------------------------------------


def _apply_while_landing(writer: Writer, phase: Landing, outcome: Outcome, now: float) -> Step:
    config = writer.config
    if phase.flight is None:
        return _apply_answer(writer, phase, outcome, now)
    if phase.flight.batch.work and isinstance(outcome, Committed | Unreadable | Refused):
        return _with_phase(writer, operations.apply_verdict(phase, config, outcome, now))
    match outcome:
        case Committed():
            return _with_phase(writer, landing.committed(phase, config, now, outcome))
        case Conflict(reason=reason):
            return _with_phase(writer, landing.conflict(phase, reason, now))
        case Unclear(reason=reason):
            return _claim_again(writer, reason)
        case LeaseGone():
            reason = "another writer claimed the table"
            return replace(writer, phase=Lost(reason)), (Log(TABLE_LOST, {"reason": reason}),)
        case Unreadable(files=files, reason=reason) if files:
            return _with_phase(writer, landing.unreadable(phase, files, reason))
        case Unreadable(reason=reason) | Refused(reason=reason):
            return _with_phase(writer, landing.refused(phase, config, reason, now))
        case _:
            raise ValueError(f"{outcome} is not an outcome of a commit")


def _apply_answer(writer: Writer, phase: Landing, outcome: Outcome, now: float) -> Step:
    """Apply what became of a step of an operation; what Kafka answers, or that it does not.

    Then it is asked again at the next check.
    """
    if phase.asked is not None:
        return _with_phase(writer, operations.apply_outcome(phase, writer.config, outcome, now))
    if not isinstance(outcome, KafkaState):
        return replace(writer, phase=replace(phase, checked_at=now)), ()
    if not phase.doubted:
        return _with_phase(writer, landing.apply_kafka_state(phase, writer.config, outcome, now))
    step, false = landing.resolve_doubts(phase, outcome, now)
    return _contradicted(writer, false) if false else _with_phase(writer, step)


def _with_phase(writer: Writer, step: landing.Step) -> Step:
    phase, effects = step
    return replace(writer, phase=phase), effects
