"""The landing phase of a writer: decides when each commit is due and what follows its outcome."""

from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from binwright.consumer.decide.land import backfills, erasures, operations
from binwright.consumer.decide.land import chain as chains
from binwright.consumer.decide.land.begins import (
    at_first_record,
    begin_at_end,
    begin_offsets,
)
from binwright.consumer.decide.land.chain import Announcement, Chain
from binwright.consumer.decide.land.states import (
    Append,
    CommitOffsets,
    Committed,
    DeleteFiles,
    Effect,
    InFlightCommit,
    KafkaState,
    Landing,
    QueryKafka,
    ReadAnnouncements,
    Request,
    RereadPartitions,
    WriterConfig,
    by_name,
)
from binwright.protocol.fields import LATEST_MS
from binwright.protocol.landing import Staged
from binwright.protocol.log_events import Log, LogEvent
from binwright.protocol.model import TopicPartition, newest
from binwright.protocol.orders import TableOrder
from binwright.tables.ports import Batch
from binwright.tables.stamp import Stamp

ANNOUNCEMENT_REFUSED = LogEvent.error(
    "announcement.refused",
    "An announcement of a staged file contradicts itself, its file, an earlier one or Kafka. Who "
    "may write to the landing topic?",
)
ANNOUNCEMENTS_DROPPED = LogEvent.error(
    "announcements.dropped",
    "More announcements of a table wait for rows before theirs than are kept: the oldest are "
    "dropped, and read again.",
)
ROWS_PASSED_OVER = LogEvent.error(
    "rows.passed_over",
    "Rows were announced from before the offset at which their partition begins in the table: "
    "they are not in it. Kafka's retention is shorter than the time until the first claim.",
)
TABLE_PAUSED = LogEvent.info(
    "table.paused", "A person has paused a table: nothing lands until it is resumed."
)
TABLE_RESUMED = LogEvent.info("table.resumed", "A person has a paused table land again.")
TABLE_RECOVERED = LogEvent.info("table.recovered", "A table takes rows again.")
TABLE_BEHIND = LogEvent.error(
    "table.behind",
    "Commits take longer than `lake.freshness_s`: Spark cannot keep up with this table.",
)
COMMIT_CONFLICTED = LogEvent.info(
    "commit.conflicted",
    "A commit is not in the table, because another one came first or a task of it failed; its "
    "rows go again.",
)
STAGING_LOST = LogEvent.error(
    "staging.lost", "Staged files are missing or damaged; their offsets are read again."
)
TABLE_REFUSED = LogEvent.error(
    "table.refused",
    "A table does not take the rows; the other tables land, and it is tried again every 10 s.",
)
LANDING_RECREATED = LogEvent.error(
    "landing.recreated",
    "The landing topic was deleted and created again; the writer reads it from its beginning.",
)
TOPIC_RECREATED = LogEvent.error(
    "topic.recreated", "A topic was deleted and created again; it is read from its beginning."
)

RETRY_S = 1.0  # until rows are sent again whose commit met a conflict
BATCH_RETRY_S = 1.0  # until a batch is tried again after no range joined
NEWEST_WEIGHT = 0.3  # of the newest commit's duration in their mean
SPREADS = 1.0  # mean differences that a commit may take longer than the mean
MOST_NAME, MOST_WORDS = 100, 400  # characters of an order
MOST_WAITING = 1_000  # announcements of which nothing joins
GATHER_S = 0.2  # between the announcements of consumers that stage together


Step = tuple[Landing, tuple[Effect, ...]]


def apply_announcements(state: Landing, read: Sequence[tuple[int, Staged]], now: float) -> Step:
    """Add announcements to the chain: (offset of the record, message)."""
    announced = [Announcement(offset, message, now) for offset, message in read]
    if state.doubted:
        return _look_for_cuts(state, announced)
    chain, (finished, refused) = chains.add_announcements(state.chain, announced)
    effects: list[Effect] = []
    if refused:
        files = sorted({a.staged.file for a in refused})
        reason = "it differs from the announcement by which its file waits"
        effects.append(Log(ANNOUNCEMENT_REFUSED, {"files": files, "reason": reason}))
    chain, excess = chains.without_excess(chain, MOST_WAITING)
    if excess:
        effects.append(Log(ANNOUNCEMENTS_DROPPED, {"files": len(excess)}))
    # Until a stamp fixes where partitions begin, another writer may decide differently (†).
    if not state.stamp_due:
        effects += _delete(finished)
    if passed := _passed_over(state, announced):
        effects.append(Log(ROWS_PASSED_OVER, {"ranges": passed}))
    return _decide_begins(replace(state, chain=chain)), tuple(effects)


def read_up_to(state: Landing, offset: int) -> Landing:
    """Apply that there is no further announcement before `offset`."""
    return _decide_begins(replace(state, chain=chains.read_up_to(state.chain, offset)))


def _decide_begins(state: Landing) -> Landing:
    """Decide where partitions begin of which something is announced, or nothing was (†).

    What was staged counts also if Kafka no longer has it. A reader announces in order, so its first
    announcement says where it began.
    """
    if not state.undecided or state.doubted:
        return state
    chain = state.chain
    firsts: dict[TopicPartition, int] = {}
    for a in chain.pending:
        if chain.is_of_chain(a):
            for p, (first, _) in a.staged.ranges.items():
                firsts[p] = min(first, firsts.get(p, first))
    all_read = chain.next_announcement >= state.undecided_until
    new = {
        p: min(begin, firsts.get(p, begin))
        for p, begin in state.undecided.items()
        if all_read or p in firsts
    }
    if not new:
        return state
    return replace(
        state,
        chain=chains.open_partitions(chain, new),
        undecided={p: begin for p, begin in state.undecided.items() if p not in new},
        begins={**state.begins, **new},
        stamp_due=True,
    )


def _look_for_cuts(state: Landing, read: Sequence[Announcement]) -> Step:
    """Read on for announcements of cuts; others are read again once there are no doubts."""
    chain, cut = state.chain, {p for a in read for p in chains.new_cuts(state.chain, a)}
    chain = chains.read_up_to(chain, max((a.offset + 1 for a in read), default=0))
    return _without_doubts(replace(state, chain=chain), cut)


def _without_doubts(state: Landing, partitions: Collection[TopicPartition]) -> Step:
    """Believe what stamps have of these partitions; land, once there are no other doubts."""
    left = {p: version for p, version in state.doubted.items() if p not in partitions}
    if left:
        return replace(state, doubted=left), ()
    chain = replace(state.chain, next_announcement=state.doubted_from)
    state = replace(state, doubted={}, chain=chain, stamp_due=True)
    return state, (ReadAnnouncements(state.doubted_from),)


def resolve_doubts(state: Landing, facts: KafkaState, now: float) -> tuple[Step, str]:
    """Apply Kafka's state while there are doubts; return also what is false, "" if it may be true.

    The logs may have grown since; or all is read that was announced, and nothing tells of a cut.
    """
    known = state.chain
    true = {
        p
        for p in state.doubted
        if not chains.same_topic(facts.topic_ids.get(p.topic), known.topic_ids.get(p.topic))
        or facts.bounds.get(p, (0, 0))[1] >= known.committed[p]
    }
    step = _without_doubts(replace(state, checked_at=now), true)
    false = sorted(p for p in step[0].doubted if p in facts.bounds)
    if not false or known.next_announcement < (facts.landing_end or 0):
        return step, ""
    first = false[0]
    return step, (
        f"version {state.doubted[first]} of the table says that partition {first} has landed up to "
        f"offset {known.committed[first]}, but its log ends at {facts.bounds[first][1]}, and no "
        "reader has announced that it was cut: it does so with the next record. If the log was not "
        "cut, somebody else made this version: set another lake.path, or move the table away"
    )


def _passed_over(state: Landing, read: Sequence[Announcement]) -> dict[str, tuple[int, int]]:
    """Return what was staged before its partition began: nobody lands it."""
    return {
        str(p): (found.first, min(found.next, state.begins[p]))
        for a in read
        if state.chain.is_of_chain(a)
        for p, found in a.staged.ranges.items()
        if found.first < state.begins.get(p, 0)
    }


def follow(state: Landing, order: TableOrder, read_at: float) -> Step:
    """Pause, or land again; a stamp records it before anything else is committed (†).

    Args:
        state: Of the writer.
        order: The newest about the table.
        read_at: As of when that is known, s, monotonic. What was read before the claim was resolved
            may be older than the order that the stamp has.
    """
    by = _words(order)
    paused = by if order.paused else ""
    if read_at < state.resolved_at or paused == state.paused:
        return state, ()
    log = Log(TABLE_PAUSED if paused else TABLE_RESUMED, {"order": by})
    return replace(state, paused=paused, stamp_due=True), (log,)


def _words(order: TableOrder) -> str:
    """Return who gave an order, when and why: short, since every stamp has it."""
    at = datetime.fromtimestamp(min(order.at_ms, LATEST_MS) / 1000, UTC)
    reason = f": {order.reason}" if order.reason else ""
    return f"by {order.by[:MOST_NAME]} at {at:%Y-%m-%d %H:%M:%S} UTC{reason}"[:MOST_WORDS]


def _delete(finished: Collection[Announcement], landed: Collection[str] = ()) -> tuple[Effect, ...]:
    """Delete the files of announcements: those that have `landed` were compared with them."""
    files = tuple(a.staged.file for a in finished)
    unproven = tuple(a.staged for a in finished if a.staged.file not in landed)
    return (DeleteFiles(files, unproven),) if files else ()


def due_at(state: Landing, config: WriterConfig, now: float) -> float:
    """Return when there is something to do, unless an announcement comes first."""
    times = [state.full_at + config.idle_stamp_s]
    if state.stamp_due:
        times.append(now)
    if state.doubted:
        return max(state.checked_at + BATCH_RETRY_S, now)
    if state.paused:
        return max(min(times), state.retry_at, now)
    times.append(state.checked_at + config.check_s)
    if (at := _commit_at(state, config, now)) is not None:
        times.append(max(at, state.looked_at + BATCH_RETRY_S))
    if (step_at := operations.due_at(state, at, now)) is not None:
        times.append(step_at)
    return max(min(times), state.retry_at, now)


def _commit_at(state: Landing, config: WriterConfig, now: float) -> float | None:
    """Return when the next commit begins; None: no rows.

    That is so late that its oldest row lands in time, however slow the commit. If consumers stage
    nothing more until then, it is as soon as what they staged together has arrived.
    """
    chain = state.chain
    oldest = chain.oldest_at
    if oldest is None:
        return None
    if chain.pending_bytes >= config.batch_bytes:
        return now
    latest = oldest + config.freshness_s - state.commit_s - SPREADS * state.commit_spread_s
    newest = chain.pending[-1].seen_at
    if config.staging_s and newest + config.staging_s > latest:
        return min(newest + GATHER_S, latest)
    return latest


def next_request(
    state: Landing, config: WriterConfig, now: float
) -> tuple[Landing, Request | None]:
    """Return the request that is due now; None: there is none."""
    if state.flight is not None:
        raise ValueError("a commit is in flight")
    if now < state.retry_at:
        return state, None
    if state.stamp_due or now >= state.full_at + config.idle_stamp_s:
        return _send(state, config, Batch(), state.chain, now)
    if state.paused:
        return state, None
    if now >= state.checked_at + (
        BATCH_RETRY_S if _needs_kafka_state(state, config, now) else config.check_s
    ):
        return _query(state, config)
    at = _commit_at(state, config, now)
    if at is not None and now >= at:
        if _must_ask_for_ends(state):
            if state.asking_from > state.asked_from and now < state.checked_at + BATCH_RETRY_S:
                return replace(state, looked_at=now), None  # Kafka did not answer
            return _query(state, config)
        if (batch := chains.next_batch(state.chain, config.batch_bytes)) is not None:
            return _send(state, config, *batch, now)
        state, at = replace(state, looked_at=now, joins=False), None
    return _next_step(state, config, at, now)


def _next_step(
    state: Landing, config: WriterConfig, commit_at: float | None, now: float
) -> tuple[Landing, Request | None]:
    """Return the request of the operation that is due; None: there is none, or rows come first."""
    if not operations.may_begin(state, commit_at, now):
        return state, None
    state, step = operations.next_step(state, config, now)
    if isinstance(step, tuple):
        batch, operation = step
        sending = replace(state, operation=operation)
        sent, request = _send(sending, config, batch, state.chain, now)
        return replace(sent, operation=state.operation), request  # it is so once that is committed
    return state, step


def next_query(state: Landing, config: WriterConfig, now: float) -> tuple[Landing, Request | None]:
    """Return the query that is due while there are doubts; None: there is none yet."""
    return _query(state, config) if now >= state.checked_at + BATCH_RETRY_S else (state, None)


def _query(state: Landing, config: WriterConfig) -> tuple[Landing, Request]:
    """Ask about the table's topics, and those of which files are announced."""
    chain = state.chain
    topics = {*config.table.topics, *(a.staged.topic for a in chain.pending)}
    query = QueryKafka(frozenset(topics), begins_of=frozenset(topics - chain.topic_ids.keys()))
    return replace(state, asking_from=chain.next_announcement), query


def _must_ask_for_ends(state: Landing) -> bool:
    """Whether a range may exceed its log, by ends that were asked before it was announced (†)."""
    beyond = chains.beyond_ends(state.chain, state.ends)
    return any(a.offset >= state.asked_from for a in beyond)


def _needs_kafka_state(state: Landing, config: WriterConfig, now: float) -> bool:
    """Whether pending files wait for Kafka's metadata, or for a gap that is not requested yet."""
    chain = state.chain
    if chains.recreated_topics(chain) or chains.unknown_partitions(chain):
        return True
    missing = chains.gaps(chain, now, config.gap_s)
    return any(
        state.reread_requests.get(p, (-1, 0.0))[0] != offset for p, offset in missing.items()
    )


def _send(
    state: Landing, config: WriterConfig, batch: Batch, after: Chain, now: float
) -> tuple[Landing, Request]:
    cuts = {p for p, at in after.cuts.items() if state.chain.cuts.get(p) != at}
    state = backfills.without(state, cuts)
    sequence = state.sequence + 1
    full = not batch.ends or not 0 < state.since_full < config.full_stamp_every
    left, _ = chains.landed(state.chain, after)
    offsets = after.committed if full else batch.ends
    changed = {p.topic for p in (*offsets, *after.cuts, *after.cut_files)}
    named = after.topic_ids.keys() if full else changed
    stamp = Stamp(
        group=config.table.group,
        cluster=config.table.cluster,
        writer=state.writer,
        sequence=sequence,
        topic_ids={topic: after.topic_ids.get(topic) for topic in sorted(named)},
        landing_id=state.landing_id,
        needed_from=left.needed_from,
        committed=offsets,
        cuts=after.cuts,
        cut_files=after.cut_files,
        full=full,
        several=len(after.topic_ids) > 1,
        paused=state.paused,
        operation=state.operation,
    )
    flight = InFlightCommit(batch, after, stamp, now)
    oldest = state.chain.oldest_of(batch.files)
    late = oldest is not None and now > oldest + config.freshness_s
    request = Append(batch, state.lease, sequence, stamp.encode(), late)
    state = replace(state, flight=flight, sequence=sequence)
    return replace(state, joins=True) if batch.slices else state, request


def committed(state: Landing, config: WriterConfig, now: float, outcome: Committed) -> Step:
    """Apply that the commit in flight is in the table."""
    flight = state.flight
    if flight is None:
        raise ValueError("nothing is in flight")
    chain, finished = chains.landed(state.chain, flight.after)
    took_s = now - flight.sent_at
    commit_s = _mean(state.commit_s, took_s)
    spread_s = _mean(state.commit_spread_s, abs(took_s - state.commit_s))
    late = commit_s >= config.freshness_s
    effects: list[Effect] = [CommitOffsets(flight.batch.ends or flight.stamp.committed)]
    if flight.batch.slices:
        if state.fault:
            effects.append(Log(TABLE_RECOVERED))
        if late and not state.late:
            facts = {"commit_s": round(commit_s, 1), "freshness_s": config.freshness_s}
            effects.append(Log(TABLE_BEHIND, facts))
    done = replace(
        state,
        chain=chain,
        flight=None,
        # An order that came meanwhile, or a begin.
        stamp_due=state.paused != flight.stamp.paused
        or not chain.committed.keys() <= flight.after.committed.keys(),
        since_full=1 if flight.stamp.full else state.since_full + 1,
        commit_s=commit_s if flight.batch.slices else state.commit_s,
        commit_spread_s=spread_s if flight.batch.slices else state.commit_spread_s,
        late=late if flight.batch.slices else state.late,
        full_at=now if flight.stamp.full else state.full_at,
        fault="",
        rows=state.rows + flight.batch.rows - outcome.skipped,
        bad=state.bad + outcome.bad,
        skipped=state.skipped + outcome.skipped,
        newest_ms=newest(state.newest_ms, outcome.newest_ms),
        commits=state.commits + 1,
    )
    return done, (*effects, *_delete(finished, {*flight.batch.files}))


def _mean(mean: float, newest: float) -> float:
    """Return a moving mean after one more value."""
    return mean + NEWEST_WEIGHT * (newest - mean)


def conflict(state: Landing, reason: str, now: float) -> Step:
    """Apply that the commit is not in the table: its rows go again, under the same lease."""
    log = Log(COMMIT_CONFLICTED, {"reason": reason})
    return replace(state, flight=None, retry_at=now + RETRY_S), (log,)


def unreadable(state: Landing, files: Collection[str], reason: str) -> Step:
    """Apply that staged files are lost: nothing was committed, their ranges are read again.

    The lease is still there, so no other writer has landed and deleted them. They are not deleted
    here: a file that cannot be read now is left to collection by age.
    """
    chain, again = chains.without_files(state.chain, files)
    log = Log(STAGING_LOST, {"files": sorted(files), "reason": reason})
    effects: list[Effect] = [log]
    if again:
        effects.append(RereadPartitions(again))
    return replace(state, chain=chain, flight=None), tuple(effects)


def refused(state: Landing, config: WriterConfig, reason: str, now: float) -> Step:
    """Apply that the table rejects the batch: it is tried again after `refused_s`."""
    log = (Log(TABLE_REFUSED, {"reason": reason}),) if state.fault != reason else ()
    retry_at = now + config.refused_s
    return replace(state, flight=None, fault=reason, retry_at=retry_at), log


def apply_kafka_state(state: Landing, config: WriterConfig, facts: KafkaState, now: float) -> Step:
    """Apply Kafka's state: new topics and partitions, recreated ones, rows not announced."""
    state = replace(state, checked_at=now, asked_from=state.asking_from)
    effects: list[Effect] = []
    if not chains.same_topic(facts.landing_id, state.landing_id):
        # The new topic's offsets begin at 0; its announcements are read from the beginning.
        chain = replace(state.chain, pending=(), cuts={}, next_announcement=0)
        state = replace(state, chain=chain, landing_id=facts.landing_id, stamp_due=True)
        effects += [Log(LANDING_RECREATED), ReadAnnouncements(0)]
    if facts.landing_end is not None:  # it may have been cut, or made anew
        until = min(state.undecided_until, facts.landing_end)
        state = replace(state, undecided_until=until)
    joining = chains.joining_topics(state.chain)
    for topic, topic_id in sorted(facts.topic_ids.items()):
        if topic not in joining:  # what joins lands first, also of a topic that no longer exists
            state, changes = _follow_topic(state, topic, topic_id, facts)
            effects += changes
    # The others' bounds are of another topic than the chain.
    current = {
        topic: topic_id
        for topic, topic_id in facts.topic_ids.items()
        if chains.same_topic(topic_id, state.chain.topic_ids.get(topic))
    }
    bounds = {p: bound for p, bound in facts.bounds.items() if p.topic in current}
    # Of a topic that is gone, or of which nothing is known now, no log can be exceeded: what was
    # staged of it is true, and lands.
    state = replace(state, ends={p: end for p, (_, end) in bounds.items()})
    if current == facts.topic_ids:
        state = erasures.with_ends(state, facts)
    facts = replace(facts, topic_ids=current, bounds=bounds)
    state, refusals = _refuse_ranges_beyond_ends(state)
    state = _open_partitions(state, config, facts)
    state, again = _request_rereads(state, config, facts, now)
    return state, (*effects, *refusals, *again)


def _follow_topic(state: Landing, topic: str, topic_id: str | None, facts: KafkaState) -> Step:
    """Begin anew with a recreated topic, or delete files of an earlier one."""
    chain, before = state.chain, state.chain.topic_ids.get(topic)
    if not chains.same_topic(topic_id, before):
        begins = {p: begin for p, (begin, _) in facts.bounds.items() if p.topic == topic}
        state = backfills.without(state, [p for p in chain.committed if p.topic == topic])
        chain, finished = chains.begin_new_topic(chain, topic, topic_id, state.asked_from)
        ids = {"topic": topic, "was": before, "topic_id": topic_id}
        log = Log(TOPIC_RECREATED, ids)
        state = replace(
            state,
            chain=chain,
            stamp_due=True,
            undecided={p: at for p, at in state.undecided.items() if p.topic != topic} | begins,
            undecided_until=facts.landing_end or 0,
            begins={p: at for p, at in state.begins.items() if p.topic != topic},
            behind={p: at for p, at in state.behind.items() if p.topic != topic},
            reread_requests={p: at for p, at in state.reread_requests.items() if p.topic != topic},
        )
        return _decide_begins(state), (log, *_delete(finished))
    if topic not in chains.recreated_topics(chain):
        return state, ()
    chain, finished = chains.without_old_topic(chain, topic, state.asked_from)
    return replace(state, chain=chain), _delete(finished)


def _open_partitions(state: Landing, config: WriterConfig, facts: KafkaState) -> Landing:
    """Decide, once, where new partitions begin; a stamp has it before any of their rows (†)."""
    known = state.chain
    written, latest = known.topic_ids.keys(), config.from_latest
    begins = begin_offsets(facts, written, latest=latest)
    at_end = {p: end for p, end in state.ends.items() if p in state.begin_at_end}
    new = {
        p: at_end.get(p, begin)
        for p, begin in begins.items()
        if p not in known.committed and p not in state.undecided
    }
    if not new and facts.topic_ids.keys() <= written:
        return state
    first = at_first_record(facts, written, latest=latest) - at_end.keys()
    undecided = {p: begin for p, begin in new.items() if p in first}
    fixed = {p: begin for p, begin in new.items() if p not in first}
    state = replace(
        state,
        chain=chains.open_partitions(known, fixed, facts.topic_ids),
        begin_at_end=state.begin_at_end | begin_at_end(facts, written, latest=latest),
        undecided={**state.undecided, **undecided},
        undecided_until=facts.landing_end or 0 if undecided else state.undecided_until,
        stamp_due=state.stamp_due or bool(fixed) or not facts.topic_ids.keys() <= written,
    )
    return _decide_begins(state)


def _refuse_ranges_beyond_ends(state: Landing) -> Step:
    """Drop announcements that are false: no record is at or above the end of its log (†)."""
    beyond = chains.beyond_ends(state.chain, state.ends)
    false = [a for a in beyond if a.offset < state.asked_from]
    if not false:
        return state, ()
    facts = {"files": sorted(a.staged.file for a in false), "ends": by_name(state.ends)}
    log = Log(ANNOUNCEMENT_REFUSED, facts)
    return replace(state, chain=chains.without(state.chain, false)), (log,)


def _request_rereads(state: Landing, config: WriterConfig, facts: KafkaState, now: float) -> Step:
    """Request the next rows that were not announced, each at most once per check."""
    missing = dict(chains.gaps(state.chain, now, config.gap_s))
    announced = {p for a in state.chain.pending for p in a.staged.ranges}
    known = state.chain.committed
    behind = {
        p: known[p]
        for p, (_, end) in facts.bounds.items()
        if p not in announced and known.get(p, end) < facts.readable.get(p, end)
    }
    # Behind and unchanged since the last check, and all that was announced until then is read; a
    # consumer that is only slow ignores the request.
    if state.landing_end is None or state.chain.next_announcement >= state.landing_end:
        missing |= {p: offset for p, offset in behind.items() if state.behind.get(p) == offset}
    again = {
        p: offset
        for p, offset in missing.items()
        if state.reread_requests.get(p, (-1, now))[0] != offset
        or now - state.reread_requests[p][1] >= config.check_s
    }
    requests = {**state.reread_requests, **{p: (offset, now) for p, offset in again.items()}}
    state = replace(state, behind=behind, reread_requests=requests, landing_end=facts.landing_end)
    return state, (RereadPartitions(again),) if again else ()
