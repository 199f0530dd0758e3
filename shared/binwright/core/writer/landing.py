"""The work of a writer whose claim is committed and whose resolve is done: commit after commit."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from binwright.core.messages import Staged
from binwright.core.writer import chain as chains
from binwright.core.writer.batch import Batch
from binwright.core.writer.chain import Announced, Chain
from binwright.core.writer.requests import (
    Append,
    AskKafka,
    Delete,
    Effect,
    Facts,
    Log,
    Offsets,
    ReadAgain,
    ReadAnnouncements,
    ReadHistory,
    Request,
    WriterRules,
)
from binwright.core.writer.stamp import COMMITS_PER_EPOCH, Stamp, app_id, txn_version

RETRY_S = 1.0
LOOK_S = 1.0  # from one look for what joins on, in vain, to the next, if nothing is heard
FIRST_GUESS_S = 1.0  # what a commit takes, before one was seen
WEIGHT = 0.3  # of the newest commit in the mean


@dataclass(frozen=True, slots=True)
class Flight:
    """A commit that was sent and has no verdict yet."""

    batch: Batch
    after: Chain
    stamp: Stamp
    sent_at: float
    unclear: bool = False  # it was sent before, and nothing came back that counts


@dataclass(frozen=True, slots=True)
class Landing:
    """What a writer knows of its table."""

    epoch: int
    chain: Chain
    landing_id: str | None = None
    sequence: int = 0
    flight: Flight | None = None
    looking: int = 0  # commits to be read for the verdict on a skipped commit; 0: none
    stamp_due: bool = False  # something was decided that no stamp says yet
    since_full: int = 0  # commits since the last full stamp; 0: none was made under this claim
    asked_again: Mapping[int, tuple[int, float]] = field(default_factory=dict)  # -> offset, when
    behind: Mapping[int, int] = field(default_factory=dict)  # committed, where below Kafka's end
    commit_s: float = FIRST_GUESS_S  # what a commit takes
    checked_at: float = 0.0
    asked_from: int = 0  # the announcement that was read next when Kafka was asked last
    stamped_at: float = 0.0
    looked_at: float = float("-inf")  # when nothing joined on
    retry_at: float = 0.0
    fault: str = ""
    late: bool = False  # commits take longer than rows may wait
    rows: int = 0
    commits: int = 0

    @property
    def spent(self) -> bool:
        """Tell whether the epoch's numbers are used up: then a new claim is needed."""
        return self.flight is None and self.sequence >= COMMITS_PER_EPOCH - 1


Step = tuple[Landing, tuple[Effect, ...]]


def heard(state: Landing, offset: int, staged: Staged, now: float) -> Step:
    """Take an announcement."""
    chain, over = chains.announce(state.chain, Announced(offset, staged, now))
    # While no stamp says yet where partitions begin, another writer's may say otherwise (†).
    return replace(state, chain=chain), () if state.stamp_due else _delete(over)


def _delete(files: Collection[str]) -> tuple[Effect, ...]:
    return (Delete(tuple(files)),) if files else ()


def due_at(state: Landing, rules: WriterRules, now: float) -> float:
    """Return when there is something to do, if nothing is heard before."""
    if state.flight is not None:
        return max(now, state.retry_at)
    found = [state.checked_at + rules.check_s, state.stamped_at + rules.idle_stamp_s]
    if state.stamp_due:
        found.append(now)
    if (at := _commit_at(state, rules, now)) is not None:
        found.append(max(at, state.looked_at + LOOK_S))
    return max(min(found), state.retry_at, now)


def _commit_at(state: Landing, rules: WriterRules, now: float) -> float | None:
    """Return when the next commit is to begin: as late as its oldest row allows."""
    oldest = state.chain.oldest_at
    if oldest is None:
        return None
    if state.chain.pending_bytes >= rules.batch_bytes:
        return now
    return oldest + rules.freshness_s - state.commit_s


def request(state: Landing, rules: WriterRules, now: float) -> tuple[Landing, Request | None]:
    """Return what is to be done now, if anything is."""
    if state.flight is not None:
        if state.looking:
            return state, ReadHistory(state.looking)
        # The same batch under the same version (†), until its verdict is known.
        return state, _append(rules, state.flight) if now >= state.retry_at else None
    if now < state.retry_at:
        return state, None
    if state.stamp_due or now >= state.stamped_at + rules.idle_stamp_s:
        return _send(state, rules, Batch(), state.chain, now)
    if now >= state.checked_at + (LOOK_S if _unexplained(state, rules, now) else rules.check_s):
        return replace(state, asked_from=state.chain.next_announcement), AskKafka()
    at = _commit_at(state, rules, now)
    if at is not None and now >= at:
        if (found := chains.next_batch(state.chain, rules.batch_bytes)) is not None:
            return _send(state, rules, *found, now)
        state = replace(state, looked_at=now)
    return state, None


def _unexplained(state: Landing, rules: WriterRules, now: float) -> bool:
    """Tell whether files wait for what only Kafka can tell, or for what was not announced."""
    chain = state.chain
    if chains.renewed_id(chain) is not None or chains.unknown_partitions(chain):
        return True
    missing = chains.gaps(chain, now, rules.gap_s)
    return any(state.asked_again.get(p, (-1, 0.0))[0] != offset for p, offset in missing.items())


def _send(
    state: Landing, rules: WriterRules, batch: Batch, after: Chain, now: float
) -> tuple[Landing, Request]:
    sequence = state.sequence + 1
    full = not batch.slices or not 0 < state.since_full < rules.full_stamp_every
    left, _ = chains.landed(state.chain, after)
    stamp = Stamp(
        group=rules.table.group,
        cluster=rules.table.cluster,
        writer=rules.writer,
        epoch=state.epoch,
        sequence=sequence,
        topic_id=after.topic_id,
        landing_id=state.landing_id,
        needed_from=left.needed_from,
        committed=after.committed if full else batch.ends,
        cuts=after.cuts,
        full=full,
    )
    flight = Flight(batch, after, stamp, now)
    return replace(state, flight=flight, sequence=sequence, looking=0), _append(rules, flight)


def _append(rules: WriterRules, flight: Flight) -> Append:
    version = txn_version(flight.stamp.epoch, flight.stamp.sequence)
    return Append(flight.batch, app_id(rules.table), version, flight.stamp.encode())


def committed(state: Landing, rules: WriterRules, now: float) -> Step:
    """Take that the commit in flight is in the table."""
    flight = state.flight
    if flight is None:
        raise ValueError("nothing is in flight")
    chain, over = chains.landed(state.chain, flight.after)
    took_s = now - flight.sent_at
    commit_s = state.commit_s + WEIGHT * (took_s - state.commit_s)
    late = commit_s >= rules.freshness_s
    effects: list[Effect] = [Offsets(flight.batch.ends or flight.stamp.committed)]
    if flight.batch.slices:
        if state.fault:
            effects.append(Log("table.recovered"))
        if late and not state.late:
            told = {"commit_s": round(commit_s, 1), "freshness_s": rules.freshness_s}
            effects.append(Log("table.behind", told, fault=True))
    done = replace(
        state,
        chain=chain,
        flight=None,
        looking=0,
        stamp_due=False,
        since_full=1 if flight.stamp.full else state.since_full + 1,
        commit_s=commit_s if flight.batch.slices else state.commit_s,
        late=late if flight.batch.slices else state.late,
        stamped_at=now,
        fault="",
        rows=state.rows + flight.batch.rows,
        commits=state.commits + 1,
    )
    return done, (*effects, *_delete(over))


def unclear(state: Landing, reason: str, now: float) -> Step:
    """Take that nothing is known of the commit in flight: it is sent again as it is."""
    if state.flight is None:
        raise ValueError("nothing is in flight")
    flight = replace(state.flight, unclear=True)
    again = replace(state, flight=flight, retry_at=now + RETRY_S)
    return again, (Log("commit.unclear", {"reason": reason}),)


def unreadable(state: Landing, files: Collection[str], reason: str) -> Step:
    """Take that staged files are gone: nothing was committed, their ranges must be read again.

    A stamp comes next: who has lost the table without knowing finds files gone that landed, and is
    to learn why.
    """
    chain, again = chains.without_files(state.chain, files)
    log = Log("staging.lost", {"files": sorted(files), "reason": reason}, fault=True)
    effects: list[Effect] = [log, *_delete(files)]
    if again:
        effects.append(ReadAgain(again))
    return replace(state, chain=chain, flight=None, stamp_due=True), tuple(effects)


def refused(state: Landing, rules: WriterRules, reason: str, now: float) -> Step:
    """Take that the table does not want the batch: it is tried again, others are not held up."""
    log = (Log("table.refused", {"reason": reason}, fault=True),) if state.fault != reason else ()
    retry_at = now + rules.refused_s
    return replace(state, flight=None, fault=reason, retry_at=retry_at), log


def informed(state: Landing, rules: WriterRules, facts: Facts, now: float) -> Step:
    """Take what Kafka says: new partitions, a topic made anew, rows that nobody announced."""
    state = replace(state, checked_at=now)
    effects: list[Effect] = []
    if not chains.same_topic(facts.landing_id, state.landing_id):
        # Its records are numbered anew. What was announced is read again from Kafka.
        chain = replace(state.chain, pending=(), cuts={}, next_announcement=0)
        state = replace(state, chain=chain, landing_id=facts.landing_id, stamp_due=True)
        effects += [Log("landing.recreated", fault=True), ReadAnnouncements(0)]
    if chains.next_batch(state.chain, rules.batch_bytes) is not None:
        pass  # what joins on lands first, also of a topic that is no more
    elif not chains.same_topic(facts.topic_id, state.chain.topic_id):
        begins = {p: begin for p, (begin, _) in facts.bounds.items()}
        chain, over = chains.renew(state.chain, facts.topic_id, begins, state.asked_from)
        told = {"was": state.chain.topic_id, "topic_id": facts.topic_id}
        effects += [Log("topic.recreated", told, fault=True), *_delete(over)]
        state = replace(state, chain=chain, stamp_due=True, behind={}, asked_again={})
    elif chains.renewed_id(state.chain) is not None:
        chain, over = chains.without_strangers(state.chain, state.asked_from)
        state = replace(state, chain=chain)
        effects += _delete(over)
    if not chains.same_topic(facts.topic_id, state.chain.topic_id):
        return state, tuple(effects)  # its offsets are another topic's
    known = state.chain.committed
    if new := {p: begin for p, (begin, _) in facts.bounds.items() if p not in known}:
        # Decided here, once; said in a stamp before any row of theirs lands.
        state = replace(state, chain=chains.open_partitions(state.chain, new), stamp_due=True)
    state, again = _read_again(state, rules, facts, now)
    return state, (*effects, *again)


def _read_again(state: Landing, rules: WriterRules, facts: Facts, now: float) -> Step:
    """Ask for what should follow and was not announced, each no more often than every check."""
    missing = dict(chains.gaps(state.chain, now, rules.gap_s))
    announced = {p for a in state.chain.pending for p in a.ranges}
    known = state.chain.committed
    behind = {
        p: known[p]
        for p, (_, end) in facts.bounds.items()
        if p not in announced and known.get(p, end) < end
    }
    # Where nothing moved since the last look: readers may only be slow, then nobody heeds this.
    missing |= {p: offset for p, offset in behind.items() if state.behind.get(p) == offset}
    again = {
        p: offset
        for p, offset in missing.items()
        if state.asked_again.get(p, (-1, now))[0] != offset
        or now - state.asked_again[p][1] >= rules.check_s
    }
    asked = {**state.asked_again, **{p: (offset, now) for p, offset in again.items()}}
    state = replace(state, behind=behind, asked_again=asked)
    return state, (ReadAgain(again),) if again else ()
