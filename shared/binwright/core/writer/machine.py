"""One table's writer: claim, resolve, then commit batch after batch, each with its verdict.

Pure. The shell asks `request` what to do next, does that one thing, and hands the outcome to
`answered`; announcements go in by `heard`. One request is under way at a time. The rules marked †
lose or double rows when left out (docs/protocol.md).
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from binwright.core.messages import Staged
from binwright.core.model import Slot
from binwright.core.ports import Commit
from binwright.core.writer import chain as chains
from binwright.core.writer import landing
from binwright.core.writer.chain import Chain
from binwright.core.writer.landing import Flight, Landing
from binwright.core.writer.requests import (
    AskKafka,
    Claim,
    Committed,
    Conflict,
    Effect,
    Facts,
    Fence,
    Log,
    Offsets,
    Outcome,
    ReadAnnouncements,
    ReadHistory,
    ReadRows,
    Refused,
    Request,
    Rows,
    Skipped,
    Told,
    Unclear,
    Unreadable,
    WriterRules,
)
from binwright.core.writer.stamp import (
    COMMITS_PER_EPOCH,
    Resolved,
    Stamp,
    app_id,
    find_own,
    old_app_id,
    resolve,
    txn_version,
)

FIRST_LOOK, LONGER = 128, 16
"""Commits that are read of the history at first, and how many times more if that is not enough."""


@dataclass(frozen=True, slots=True)
class Looking:
    """The history is read, for the epoch that is claimed last."""

    limit: int = FIRST_LOOK
    skipped: int = 0  # the epoch whose claim was skipped; 0: none was sent yet


@dataclass(frozen=True, slots=True)
class Claiming:
    """A claim is sent, again and again until it commits or is skipped."""

    epoch: int


@dataclass(frozen=True, slots=True)
class Resolving:
    """The claim is committed. Only now it is read what is in the table (†)."""

    epoch: int
    facts: Facts | None = None
    limit: int = FIRST_LOOK
    fenced: frozenset[Slot] = frozenset()  # of version 0.1, which can write no more
    to_fence: tuple[Slot, ...] = ()
    found: Resolved | None = None  # what the history says, where it does not reach far enough


@dataclass(frozen=True, slots=True)
class Lost:
    """Another writer has the table. The end."""

    reason: str


Phase = Looking | Claiming | Resolving | Landing | Lost


@dataclass(frozen=True, slots=True)
class Writer:
    """A table's writer, from the grant of the role until it is lost or given up."""

    rules: WriterRules
    phase: Phase = Looking()

    @property
    def chain(self) -> Chain | None:
        """Return what is committed and pending, once that is known."""
        return self.phase.chain if isinstance(self.phase, Landing) else None


Step = tuple[Writer, tuple[Effect, ...]]


def request(writer: Writer, now: float) -> tuple[Writer, Request | None]:
    """Return what is to be done now; None: wait for announcements, or until `due_at`."""
    match writer.phase:
        case Landing(spent=True):
            return replace(writer, phase=Looking()), ReadHistory(FIRST_LOOK)
        case Landing() as phase:
            phase, wanted = landing.request(phase, writer.rules, now)
            return replace(writer, phase=phase), wanted
        case Lost():
            return writer, None
        case phase:
            return writer, _first_request(writer, phase)


def _first_request(writer: Writer, phase: Looking | Claiming | Resolving) -> Request:
    """Return what leads to the first commit."""
    table = writer.rules.table
    match phase:
        case Looking(limit=limit):
            return ReadHistory(limit)
        case Claiming(epoch=epoch):
            return Claim(app_id(table), txn_version(epoch), _stamp(writer, epoch).encode())
        case Resolving(facts=None):
            return AskKafka()
        case Resolving(to_fence=(slot, *_)):
            last = txn_version(writer.rules.term, COMMITS_PER_EPOCH - 1)
            return Fence(old_app_id(table.group, slot), last)
        case Resolving(found=None, limit=limit):
            return ReadHistory(limit)
        case _:
            return ReadRows()


def due_at(writer: Writer, now: float) -> float:
    """Return when `request` should be asked again at the latest; seconds, monotonic."""
    if isinstance(writer.phase, Landing):
        return landing.due_at(writer.phase, writer.rules, now)
    return now


def heard(writer: Writer, offset: int, staged: Staged, now: float) -> Step:
    """Take a record of the landing topic; one about another table is passed over."""
    if not isinstance(writer.phase, Landing) or staged.topic != writer.rules.table.topic:
        return writer, ()
    phase, effects = landing.heard(writer.phase, offset, staged, now)
    return replace(writer, phase=phase), effects


def answered(writer: Writer, outcome: Outcome, now: float) -> Step:
    """Take the outcome of the request that was under way."""
    match writer.phase, outcome:
        case Looking() as phase, Told(commits=commits, complete=complete):
            return _looked(writer, phase, commits, complete=complete)
        case Claiming(epoch=epoch), Committed():
            log = Log("table.claimed", {"epoch": epoch})
            return replace(writer, phase=Resolving(epoch)), (log,)
        case Claiming(epoch=epoch), Skipped():
            return replace(writer, phase=Looking(skipped=epoch)), ()
        case Claiming(), Conflict() | Unclear():
            return writer, ()  # proves nothing (†): the same claim again
        case Resolving() as phase, _:
            return _resolving(writer, phase, outcome, now)
        case Landing() as phase, _:
            return _landing(writer, phase, outcome, now)
        case _, Refused() | Unclear():
            return writer, ()  # asked again
    raise ValueError(f"{outcome} is no answer in {writer.phase}")


# --- claim -------------------------------------------------------------------------------------


def _looked(writer: Writer, phase: Looking, commits: Collection[Commit], *, complete: bool) -> Step:
    """Claim above the highest epoch there is, or see what became of a claim that was skipped."""
    table = writer.rules.table
    found = resolve(commits, table, None)
    if phase.skipped:
        own = _stamp(writer, phase.skipped)
        if find_own(commits, table, own) is not None and found.epoch == phase.skipped:
            log = Log("table.claimed", {"epoch": phase.skipped, "answer": "lost"})
            return replace(writer, phase=Resolving(phase.skipped)), (log,)
        if found.epoch >= phase.skipped:
            return _lose(writer, f"another writer claimed epoch {found.epoch}")
    if not found.epoch and not complete:
        return replace(writer, phase=replace(phase, limit=phase.limit * LONGER)), ()
    # The history may be cleaned up, and its epochs with it: then try upwards.
    epoch = max(found.epoch + 1, 2 * phase.skipped)
    return replace(writer, phase=Claiming(epoch)), ()


def _lose(writer: Writer, reason: str) -> Step:
    return replace(writer, phase=Lost(reason)), (Log("table.lost", {"reason": reason}),)


def _stamp(writer: Writer, epoch: int) -> Stamp:
    rules = writer.rules
    return Stamp(
        group=rules.table.group,
        cluster=rules.table.cluster,
        writer=rules.writer,
        epoch=epoch,
        sequence=0,
    )


# --- resolve -----------------------------------------------------------------------------------


def _resolving(writer: Writer, phase: Resolving, outcome: Outcome, now: float) -> Step:
    match outcome:
        case Facts():
            return replace(writer, phase=replace(phase, facts=outcome)), ()
        case Committed() | Skipped() if phase.to_fence:
            done, *rest = phase.to_fence
            fenced = replace(phase, fenced=phase.fenced | {done}, to_fence=tuple(rest))
            return replace(writer, phase=fenced), ()
        case Told(commits=commits, complete=complete) if phase.facts is not None:
            found = resolve(commits, writer.rules.table, phase.facts.topic_id)
            if not (found.whole or complete):
                longer = replace(phase, limit=phase.limit * LONGER)
                if longer.limit <= writer.rules.most_history:
                    return replace(writer, phase=longer), ()
            if old := sorted(found.old_slots - phase.fenced):
                # Fence first, then read again (†): a dead consumer's commit may come late.
                return replace(writer, phase=replace(phase, to_fence=tuple(old))), ()
            if found.whole or _from_its_creation(commits):
                return _begin(writer, phase.epoch, phase.facts, found, now)
            return replace(writer, phase=replace(phase, found=found)), ()
        case Rows(newest=newest, group=group) if phase.found and phase.facts:
            # The history was cleaned up: the rows and Kafka's group say where to go on.
            known = dict(phase.found.committed)
            for p, offset in (*((p, last + 1) for p, last in newest.items()), *group.items()):
                known[p] = max(offset, known.get(p, 0))
            before = phase.found.written_before or bool(known)
            found = replace(phase.found, committed=known, written_before=before)
            return _begin(writer, phase.epoch, phase.facts, found, now)
        case _:
            return writer, ()  # no answer, or none yet: asked again


def _from_its_creation(commits: Collection[Commit]) -> bool:
    return any(commit.version == 0 for commit in commits)


def _begin(writer: Writer, epoch: int, facts: Facts, found: Resolved, now: float) -> Step:
    """Begin to land; where partitions begin that no stamp knows is decided now, once."""
    rules = writer.rules
    first = not found.written_before and rules.from_latest
    begins = {p: end if first else begin for p, (begin, end) in facts.bounds.items()}
    needed_from, cuts = _place_in_landing(found, facts)
    chain = chains.open_partitions(
        Chain(
            topic_id=facts.topic_id,
            committed=found.committed,
            cuts=cuts,
            next_announcement=needed_from,
        ),
        begins,
    )
    began = Landing(
        epoch=epoch,
        chain=chain,
        landing_id=facts.landing_id,
        stamp_due=not begins.keys() <= found.committed.keys() or not found.whole,
        checked_at=now,
        stamped_at=now,
    )
    told = {"epoch": epoch, "committed": dict(sorted(chain.committed.items()))}
    return replace(writer, phase=began), (
        Log("table.resolved", told),
        Offsets(found.committed),  # what is decided now is told once a stamp says it (†)
        ReadAnnouncements(needed_from),
    )


def _place_in_landing(found: Resolved, facts: Facts) -> tuple[int, Mapping[int, int]]:
    """Return from where announcements are needed, and which of them were cuts.

    A landing topic that was made anew holds none that were read. One that was cut holds at its end
    none that is needed; the cuts that were read are no later than that (†: each counts once).
    """
    if found.landing_id is None or found.landing_id != facts.landing_id:
        return 0, {}
    end = facts.landing_end
    if end is None or found.needed_from <= end:
        return found.needed_from, found.cuts
    return end, {p: min(at, end - 1) for p, at in found.cuts.items()}


# --- land --------------------------------------------------------------------------------------


def _landing(writer: Writer, phase: Landing, outcome: Outcome, now: float) -> Step:
    rules, flight = writer.rules, phase.flight
    if flight is None:
        if isinstance(outcome, Facts):
            return _landed(writer, landing.informed(phase, rules, outcome, now))
        # Kafka did not tell: it is asked again later, what was announced lands meanwhile.
        return replace(writer, phase=replace(phase, checked_at=now)), ()
    match outcome:
        case Committed():
            return _landed(writer, landing.committed(phase, rules, now))
        case Conflict() | Unclear():
            return _landed(writer, landing.unclear(phase, outcome.reason, now))
        case Skipped() if not flight.unclear:
            return _lose(writer, "a later writer's claim stands above this commit")
        case Skipped():
            # It landed before, or a later writer claimed: the history tells (†).
            return replace(writer, phase=replace(phase, looking=FIRST_LOOK)), ()
        case Told():
            return _verdict(writer, phase, flight, outcome, now)
        case Unreadable() | Refused():
            return _nothing_committed(writer, phase, flight, outcome, now)
        case _:
            raise ValueError(f"{outcome} is no answer to a commit")


def _landed(writer: Writer, step: landing.Step) -> Step:
    phase, effects = step
    return replace(writer, phase=phase), effects


def _nothing_committed(
    writer: Writer, phase: Landing, flight: Flight, outcome: Unreadable | Refused, now: float
) -> Step:
    """This call committed nothing; what the ones before it did may not be known."""
    if flight.unclear:
        # What was sent before may still land: only a new claim shuts that out (†).
        log = Log("table.reclaimed", {"reason": outcome.reason})
        return replace(writer, phase=Looking()), (log,)
    if isinstance(outcome, Unreadable) and outcome.files:
        return _landed(writer, landing.unreadable(phase, outcome.files, outcome.reason))
    return _landed(writer, landing.refused(phase, writer.rules, outcome.reason, now))


def _verdict(writer: Writer, phase: Landing, flight: Flight, told: Told, now: float) -> Step:
    """See what became of a commit that was sent more than once and skipped."""
    table, own = writer.rules.table, flight.stamp
    if find_own(told.commits, table, own) is not None:
        return _landed(writer, landing.committed(phase, writer.rules, now))
    found = resolve(told.commits, table, None)
    if found.epoch > own.epoch or told.complete or phase.looking >= writer.rules.most_history:
        return _lose(writer, f"a later writer claimed epoch {found.epoch}")
    return replace(writer, phase=replace(phase, looking=phase.looking * LONGER)), ()
