"""One table's writer: it claims the table, resolves what is committed, then commits batches.

Pure. The service calls `next_request`, performs that request, and passes the outcome to
`apply_outcome`; announcements go to `apply_announcement`. One request is in flight at a time.
Without the rules marked † rows are lost or doubled (docs/design/protocol.md).
"""

from collections.abc import Collection, Mapping
from dataclasses import replace

from binwright.consumer.decide.writer import chain as chains
from binwright.consumer.decide.writer import landing
from binwright.consumer.decide.writer.chain import Chain
from binwright.consumer.decide.writer.commits import Resolved, find_own, resolve
from binwright.consumer.decide.writer.states import (
    FIRST_LOOK,
    LONGER,
    Claiming,
    ClaimTable,
    CommitOffsets,
    Committed,
    Conflict,
    Effect,
    HistoryRead,
    InFlightCommit,
    LandedOffsets,
    Landing,
    Log,
    Lost,
    Outcome,
    QueryKafka,
    ReadAnnouncements,
    ReadHistory,
    ReadingHistory,
    ReadLandedOffsets,
    Refused,
    Request,
    Resolving,
    Skipped,
    TopicState,
    Unclear,
    Unreadable,
    Writer,
)
from binwright.protocol.messages import Staged
from binwright.protocol.ports.lake import Commit
from binwright.protocol.stamp import Stamp, app_id, txn_version

Step = tuple[Writer, tuple[Effect, ...]]


def next_request(writer: Writer, now: float) -> tuple[Writer, Request | None]:
    """Return the request that is due; None: wait for an announcement, or until `due_at`."""
    match writer.phase:
        case Landing(spent=True):
            return replace(writer, phase=ReadingHistory()), ReadHistory(FIRST_LOOK)
        case Landing() as phase:
            phase, wanted = landing.next_request(phase, writer.config, now)
            return replace(writer, phase=phase), wanted
        case Lost():
            return writer, None
        case phase:
            return writer, _first_request(writer, phase)


def _first_request(writer: Writer, phase: ReadingHistory | Claiming | Resolving) -> Request:
    """Return the next request on the way to the landing phase."""
    table = writer.config.table
    match phase:
        case ReadingHistory(limit=limit):
            return ReadHistory(limit)
        case Claiming(epoch=epoch):
            return ClaimTable(app_id(table), txn_version(epoch), _stamp(writer, epoch).encode())
        case Resolving(topic_state=None):
            return QueryKafka()
        case Resolving(resolved=None, limit=limit):
            return ReadHistory(limit)
        case _:
            return ReadLandedOffsets()


def due_at(writer: Writer, now: float) -> float:
    """Return when to call `next_request` again at the latest; seconds, monotonic."""
    if isinstance(writer.phase, Landing):
        return landing.due_at(writer.phase, writer.config, now)
    return now


def apply_announcement(writer: Writer, offset: int, staged: Staged, now: float) -> Step:
    """Apply a record of the landing topic; one of another table is ignored."""
    if not isinstance(writer.phase, Landing) or staged.topic != writer.config.table.topic:
        return writer, ()
    phase, effects = landing.apply_announcement(writer.phase, offset, staged, now)
    return replace(writer, phase=phase), effects


def apply_outcome(writer: Writer, outcome: Outcome, now: float) -> Step:
    """Apply the outcome of the request in flight.

    Raises:
        ValueError: The outcome does not belong to the request.
    """
    match writer.phase, outcome:
        case ReadingHistory() as phase, HistoryRead(commits=commits, complete=complete):
            return _apply_history(writer, phase, commits, complete=complete)
        case Claiming(epoch=epoch), Committed():
            log = Log("table.claimed", {"epoch": epoch})
            return replace(writer, phase=Resolving(epoch)), (log,)
        case Claiming(epoch=epoch), Skipped():
            return replace(writer, phase=ReadingHistory(skipped=epoch)), ()
        case Claiming(), Conflict() | Unclear():
            return writer, ()  # proves nothing (†): the same claim is sent again
        case Resolving() as phase, _:
            return _apply_while_resolving(writer, phase, outcome, now)
        case Landing() as phase, _:
            return _apply_while_landing(writer, phase, outcome, now)
        case _, Refused() | Unclear():
            return writer, ()  # the request is repeated
    raise ValueError(f"{outcome} is not an outcome of a request in {writer.phase}")


# --- claim -------------------------------------------------------------------------------------


def _apply_history(
    writer: Writer, phase: ReadingHistory, commits: Collection[Commit], *, complete: bool
) -> Step:
    """Claim above the highest known epoch, or find the result of a claim that was skipped."""
    table = writer.config.table
    resolved = resolve(commits, table, None)
    if phase.skipped:
        own = _stamp(writer, phase.skipped)
        if find_own(commits, table, own) is not None and resolved.epoch == phase.skipped:
            log = Log("table.claimed", {"epoch": phase.skipped, "reply": "lost"})
            return replace(writer, phase=Resolving(phase.skipped)), (log,)
        if resolved.epoch >= phase.skipped:
            return _lose(writer, f"another writer claimed epoch {resolved.epoch}")
    if not resolved.epoch and not complete:
        return replace(writer, phase=replace(phase, limit=phase.limit * LONGER)), ()
    # The history, and with it the epochs, may have been cleaned up: then try higher ones.
    epoch = max(resolved.epoch + 1, 2 * phase.skipped)
    return replace(writer, phase=Claiming(epoch)), ()


def _lose(writer: Writer, reason: str) -> Step:
    return replace(writer, phase=Lost(reason)), (Log("table.lost", {"reason": reason}),)


def _stamp(writer: Writer, epoch: int) -> Stamp:
    config = writer.config
    return Stamp(
        group=config.table.group,
        cluster=config.table.cluster,
        writer=config.writer,
        epoch=epoch,
        sequence=0,
    )


# --- resolve -----------------------------------------------------------------------------------


def _apply_while_resolving(writer: Writer, phase: Resolving, outcome: Outcome, now: float) -> Step:
    match outcome:
        case TopicState():
            return replace(writer, phase=replace(phase, topic_state=outcome)), ()
        case HistoryRead(commits=commits, complete=complete) if phase.topic_state is not None:
            resolved = resolve(commits, writer.config.table, phase.topic_state.topic_id)
            if not (resolved.whole or complete):
                longer = replace(phase, limit=phase.limit * LONGER)
                if longer.limit <= writer.config.max_history:
                    return replace(writer, phase=longer), ()
            if resolved.whole or _reaches_creation(commits):
                return _begin(writer, phase.epoch, phase.topic_state, resolved, now)
            return replace(writer, phase=replace(phase, resolved=resolved)), ()
        case LandedOffsets(highest_offsets=newest, group=group) if (
            phase.resolved and phase.topic_state
        ):
            # The history was cleaned up: continue after the rows and the group's offsets.
            known = dict(phase.resolved.committed)
            for p, offset in (*((p, last + 1) for p, last in newest.items()), *group.items()):
                known[p] = max(offset, known.get(p, 0))
            before = phase.resolved.written_before or bool(known)
            resolved = replace(phase.resolved, committed=known, written_before=before)
            return _begin(writer, phase.epoch, phase.topic_state, resolved, now)
        case _:
            return writer, ()  # no conclusive outcome: the request is repeated


def _reaches_creation(commits: Collection[Commit]) -> bool:
    return any(commit.version == 0 for commit in commits)


def _begin(writer: Writer, epoch: int, facts: TopicState, resolved: Resolved, now: float) -> Step:
    """Enter the landing phase; decide, once, where partitions begin that no stamp has."""
    config = writer.config
    first = not resolved.written_before and config.from_latest
    begins = {p: end if first else begin for p, (begin, end) in facts.bounds.items()}
    needed_from, cuts = _landing_position(resolved, facts)
    chain = chains.open_partitions(
        Chain(
            topic_id=facts.topic_id,
            committed=resolved.committed,
            cuts=cuts,
            next_announcement=needed_from,
        ),
        begins,
    )
    phase = Landing(
        epoch=epoch,
        chain=chain,
        landing_id=facts.landing_id,
        stamp_due=not begins.keys() <= resolved.committed.keys() or not resolved.whole,
        checked_at=now,
        stamped_at=now,
    )
    log = Log(
        "table.resolved",
        {"epoch": epoch, "committed": dict(sorted(chain.committed.items()))},
    )
    return replace(writer, phase=phase), (
        log,
        CommitOffsets(resolved.committed),  # new decisions are published once a stamp has them (†)
        ReadAnnouncements(needed_from),
    )


def _landing_position(resolved: Resolved, facts: TopicState) -> tuple[int, Mapping[int, int]]:
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
    config, flight = writer.config, phase.flight
    if flight is None:
        if isinstance(outcome, TopicState):
            return _with_phase(writer, landing.apply_topic_state(phase, config, outcome, now))
        # Kafka did not reply: it is asked again at the next check, announced files land meanwhile.
        return replace(writer, phase=replace(phase, checked_at=now)), ()
    match outcome:
        case Committed():
            return _with_phase(writer, landing.committed(phase, config, now))
        case Conflict() | Unclear():
            return _with_phase(writer, landing.unclear(phase, outcome.reason, now))
        case Skipped() if not flight.unclear:
            return _lose(writer, "a later writer's claim precedes this commit")
        case Skipped():
            # An earlier attempt was committed, or a later writer claimed: read the history (†).
            return replace(writer, phase=replace(phase, verdict_limit=FIRST_LOOK)), ()
        case HistoryRead():
            return _apply_verdict(writer, phase, flight, outcome, now)
        case Unreadable() | Refused():
            return _nothing_committed(writer, phase, flight, outcome, now)
        case _:
            raise ValueError(f"{outcome} is not an outcome of a commit")


def _with_phase(writer: Writer, step: landing.Step) -> Step:
    phase, effects = step
    return replace(writer, phase=phase), effects


def _nothing_committed(
    writer: Writer,
    phase: Landing,
    flight: InFlightCommit,
    outcome: Unreadable | Refused,
    now: float,
) -> Step:
    """Apply that this call committed nothing; the result of earlier calls may be unknown."""
    if flight.unclear:
        # An earlier call may still be committed: only a new claim prevents that (†).
        log = Log("table.reclaimed", {"reason": outcome.reason})
        return replace(writer, phase=ReadingHistory()), (log,)
    if isinstance(outcome, Unreadable) and outcome.files:
        return _with_phase(writer, landing.unreadable(phase, outcome.files, outcome.reason))
    return _with_phase(writer, landing.refused(phase, writer.config, outcome.reason, now))


def _apply_verdict(
    writer: Writer, phase: Landing, flight: InFlightCommit, history: HistoryRead, now: float
) -> Step:
    """Find the result of a commit that was sent more than once and skipped."""
    table, own = writer.config.table, flight.stamp
    if find_own(history.commits, table, own) is not None:
        return _with_phase(writer, landing.committed(phase, writer.config, now))
    resolved = resolve(history.commits, table, None)
    enough = history.complete or phase.verdict_limit >= writer.config.max_history
    if resolved.epoch > own.epoch or enough:
        return _lose(writer, f"a later writer claimed epoch {resolved.epoch}")
    return replace(writer, phase=replace(phase, verdict_limit=phase.verdict_limit * LONGER)), ()
