"""Rules of the product's code, each left out by changing one function of it."""

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from binwright.core.consumer import buffer as buffers
from binwright.core.consumer.buffer import Buffer, Stretch
from binwright.core.messages import OffsetRange
from binwright.core.model import TopicPartition
from binwright.core.ports import Commit, Record
from binwright.core.writer import chain as chains
from binwright.core.writer import landing, machine
from binwright.core.writer import stamp as stamps
from binwright.core.writer.batch import Ranges
from binwright.core.writer.chain import Announced, Chain
from binwright.core.writer.landing import Flight, Landing
from binwright.core.writer.machine import Claiming, Resolving, Writer
from binwright.core.writer.requests import (
    Committed,
    Conflict,
    Facts,
    Outcome,
    Skipped,
    Told,
    Unclear,
)
from binwright.core.writer.stamp import Resolved, Stamp

Patch = tuple[object, str, Any]
"""Where, what, and what instead."""


@contextmanager
def mutated(patches: tuple[Patch, ...]) -> Iterator[None]:
    """Run without a rule; everything is as it was afterwards."""
    before = [(where, name, getattr(where, name)) for where, name, _ in patches]
    for where, name, instead in patches:
        setattr(where, name, instead)
    try:
        yield
    finally:
        for where, name, what in before:
            setattr(where, name, what)


# --- chain ---------------------------------------------------------------------------------------

_joining = chains._Taking._joining


def _takes_what_comes_later(self: chains._Taking, announced: Announced) -> Ranges:
    ends = self.ends
    self.ends = {p: max(end, announced.ranges.get(p, (0,))[0]) for p, end in ends.items()}
    joined = _joining(self, announced)
    self.ends = ends
    return joined


def _cuts_nothing_off(self: chains._Taking, announced: Announced) -> Ranges:
    return {p: announced.ranges[p] for p in _joining(self, announced)}


def _forgets_the_cut(chain: Chain, after: Chain) -> tuple[Chain, tuple[str, ...]]:
    return _landed(chain, replace(after, cuts=chain.cuts))


_landed = chains.landed


def _goes_on_when_full(self: chains._Taking, candidates: Collection[Announced]) -> bool:
    found = False
    for announced in candidates:
        found = self.take(announced) or found
    return found


def _all_touched_are_over(chain: Chain, after: Chain) -> tuple[Chain, tuple[str, ...]]:
    ended = replace(chain, committed={**chain.committed, **after.committed}, cuts=after.cuts)
    over = [a for a in chain.pending if set(a.ranges) & set(after.committed)]
    return chains._without(ended, over), tuple(a.staged.file for a in over)


def _one_topic_is_as_good_as_another(_one: str | None, _other: str | None) -> bool:
    return True


def _forgets_all_strangers(chain: Chain, before: int) -> tuple[Chain, tuple[str, ...]]:
    return _without_strangers(chain, before + 1_000)


_without_strangers = chains.without_strangers

# --- claim ---------------------------------------------------------------------------------------

_answered, _looked, _resolving, _landing = (
    machine.answered,
    machine._looked,
    machine._resolving,
    machine._landing,
)


def _believes_a_claim(kind: type[Outcome]) -> Any:
    def answered(writer: Writer, outcome: Outcome, now: float) -> machine.Step:
        if isinstance(writer.phase, Claiming) and isinstance(outcome, kind):
            outcome = Committed()
        return _answered(writer, outcome, now)

    return answered


def _claims_nothing(
    writer: Writer, phase: machine.Looking, commits: Collection[Commit], *, complete: bool
) -> machine.Step:
    after, effects = _looked(writer, phase, commits, complete=complete)
    if isinstance(after.phase, Claiming):
        return replace(after, phase=Resolving(after.phase.epoch)), effects
    return after, effects


@dataclass(frozen=True, slots=True)
class _Claiming(Claiming):
    read: tuple[Commit, ...] = ()


@dataclass(frozen=True, slots=True)
class _Resolving(Resolving):
    read: tuple[Commit, ...] = ()


def _keeps_what_it_read(
    writer: Writer, phase: machine.Looking, commits: Collection[Commit], *, complete: bool
) -> machine.Step:
    after, effects = _looked(writer, phase, commits, complete=complete)
    if isinstance(after.phase, Claiming):
        return replace(after, phase=_Claiming(after.phase.epoch, tuple(commits))), effects
    return after, effects


def _hands_on_what_it_read(writer: Writer, outcome: Outcome, now: float) -> machine.Step:
    after, effects = _answered(writer, outcome, now)
    if isinstance(writer.phase, _Claiming) and isinstance(after.phase, Resolving):
        phase = _Resolving(after.phase.epoch, read=writer.phase.read)
        return replace(after, phase=phase), effects
    return after, effects


def _resolves_what_was_read_before(
    writer: Writer, phase: Resolving, outcome: Outcome, now: float
) -> machine.Step:
    if isinstance(outcome, Told) and isinstance(phase, _Resolving):
        outcome = Told(phase.read, outcome.complete)
    return _resolving(writer, phase, outcome, now)


# --- commit --------------------------------------------------------------------------------------


def _counts_as_committed(kind: type[Outcome], *, unclear: bool | None = None) -> Any:
    def landed(writer: Writer, phase: Landing, outcome: Outcome, now: float) -> machine.Step:
        flight = phase.flight
        if isinstance(outcome, kind) and flight and unclear in (None, flight.unclear):
            outcome = Committed()
        return _landing(writer, phase, outcome, now)

    return landed


_landing_unclear = landing.unclear


def _goes_again_under_the_next_number(state: Landing, reason: str, now: float) -> landing.Step:
    again, effects = _landing_unclear(state, reason, now)
    assert again.flight is not None
    sequence = again.sequence + 1
    stamp = replace(again.flight.stamp, sequence=sequence)
    return replace(again, sequence=sequence, flight=replace(again.flight, stamp=stamp)), effects


def _forms_another_batch(state: Landing, _reason: str, _now: float) -> landing.Step:
    return replace(state, flight=None), ()


_nothing = machine._nothing_committed


def _forgets_that_it_was_sent_before(
    writer: Writer, phase: Landing, flight: Flight, outcome: Any, now: float
) -> machine.Step:
    return _nothing(writer, phase, replace(flight, unclear=False), outcome, now)


# --- stamps --------------------------------------------------------------------------------------

_resolve, _begin, _heard = stamps.resolve, machine._begin, landing.heard


def _newest_stamp_alone(commits: Any, table: Any, topic_id: str | None) -> Resolved:
    kept: list[Commit] = []
    for commit in commits:
        kept.append(commit)
        stamp = stamps.read_stamp(commit.metadata, table)
        if isinstance(stamp, Stamp) and stamp.sequence:
            break
    return replace(_resolve(kept, table, topic_id), whole=True)


def _whole_however_short(commits: Any, table: Any, topic_id: str | None) -> Resolved:
    return replace(_resolve(commits, table, topic_id), whole=True)


def _fences_nobody(commits: Any, table: Any, topic_id: str | None) -> Resolved:
    return replace(_resolve(commits, table, topic_id), old_slots=frozenset())


def _any_landing_topic(found: Resolved, _facts: Any) -> tuple[int, Mapping[int, int]]:
    return found.needed_from, found.cuts


def _forgets_cuts(found: Resolved, facts: Any) -> tuple[int, Mapping[int, int]]:
    return _place(found, facts)[0], {}


_place = machine._place_in_landing


def _says_nothing_of_its_begin(
    writer: Writer, epoch: int, facts: Facts, found: Resolved, now: float
) -> machine.Step:
    after, effects = _begin(writer, epoch, facts, found, now)
    assert isinstance(after.phase, Landing)
    return replace(after, phase=replace(after.phase, stamp_due=False)), effects


def _deletes_before_it_is_stamped(
    state: Landing, offset: int, staged: Any, now: float
) -> landing.Step:
    _, over = chains.announce(state.chain, Announced(offset, staged, now))
    after, _ = _heard(state, offset, staged, now)
    return after, landing._delete(over)


# --- the buffer ----------------------------------------------------------------------------------

_take = Buffer.take


def _begins_at_its_first_record(self: Buffer, topic: str) -> Mapping[TopicPartition, Stretch]:
    return {
        p: replace(s, range=OffsetRange(s.records[0].offset, s.range.next))
        for p, s in _take(self, topic).items()
    }


def _begins_one_too_early(self: Buffer, topic: str) -> Mapping[TopicPartition, Stretch]:
    return {
        p: replace(s, range=OffsetRange(max(0, s.range.first - 1), s.range.next))
        for p, s in _take(self, topic).items()
    }


def _drops_nothing(_self: Buffer, _partition: TopicPartition) -> None:
    pass


def _keeps_its_rows(
    self: Buffer, partition: TopicPartition, offset: int, *, cut: bool = False
) -> None:
    rows = self._rows.setdefault(partition, buffers._Rows(offset, []))
    rows.begin, rows.cut = min(rows.begin, offset), cut


def _takes_no_notice_of_cuts(
    self: Buffer, partition: TopicPartition, offset: int, *, cut: bool = False
) -> None:
    del cut
    _buffer_begin(self, partition, offset)


_buffer_begin = Buffer.begin


def _counts_one_too_many(self: Buffer, topic: str) -> Mapping[TopicPartition, Stretch]:
    return {
        p: replace(s, range=OffsetRange(s.range.first, s.range.next + 1))
        for p, s in _take(self, topic).items()
    }


def _loses_one(self: Buffer, partition: TopicPartition, records: list[Record], now: float) -> None:
    _add(self, partition, records[1:] if len(records) > 1 else records, now)


_add = Buffer.add


MUTATIONS: Mapping[str, tuple[Patch, ...]] = {
    # chain
    "takes what does not join on": ((chains._Taking, "_joining", _takes_what_comes_later),),
    "cuts nothing off": ((chains._Taking, "_joining", _cuts_nothing_off),),
    "a cut counts each time": ((chains, "landed", _forgets_the_cut),),
    "goes on when a batch is full": ((chains._Taking, "take_all", _goes_on_when_full),),
    "deletes what is not landed whole": ((chains, "landed", _all_touched_are_over),),
    "topic ids do not count": (
        (chains, "same_topic", _one_topic_is_as_good_as_another),
        (stamps, "same_topic", _one_topic_is_as_good_as_another),
    ),
    "forgets files of a newer topic": ((chains, "without_strangers", _forgets_all_strangers),),
    # claim
    "a conflict is a claim": ((machine, "answered", _believes_a_claim(Conflict)),),
    "no answer is a claim": ((machine, "answered", _believes_a_claim(Unclear)),),
    "a skipped claim is mine": ((machine, "answered", _believes_a_claim(Skipped)),),
    "claims nothing": ((machine, "_looked", _claims_nothing),),
    "reads, then claims": (
        (machine, "_looked", _keeps_what_it_read),
        (machine, "answered", _hands_on_what_it_read),
        (machine, "_resolving", _resolves_what_was_read_before),
    ),
    # commit
    "a conflict is a commit": ((machine, "_landing", _counts_as_committed(Conflict)),),
    "no answer is a commit": ((machine, "_landing", _counts_as_committed(Unclear)),),
    "skipped is committed": ((machine, "_landing", _counts_as_committed(Skipped, unclear=False)),),
    "skipped is committed before": (
        (machine, "_landing", _counts_as_committed(Skipped, unclear=True)),
    ),
    "goes again under another version": ((landing, "unclear", _goes_again_under_the_next_number),),
    "another batch after no answer": ((landing, "unclear", _forms_another_batch),),
    "forgets what was sent before": (
        (machine, "_nothing_committed", _forgets_that_it_was_sent_before),
    ),
    # stamps
    "only the newest stamp counts": ((machine, "resolve", _newest_stamp_alone),),
    "a short history is whole": ((machine, "resolve", _whole_however_short),),
    "fences no old consumer": ((machine, "resolve", _fences_nobody),),
    "any landing topic will do": ((machine, "_place_in_landing", _any_landing_topic),),
    "forgets which cuts it read": ((machine, "_place_in_landing", _forgets_cuts),),
    "says nothing of its begin": ((machine, "_begin", _says_nothing_of_its_begin),),
    "deletes before its begin is said": ((landing, "heard", _deletes_before_it_is_stamped),),
    # ranges
    "a range begins at its first record": ((Buffer, "take", _begins_at_its_first_record),),
    "a range begins too early": ((Buffer, "take", _begins_one_too_early),),
    "a range ends too late": ((Buffer, "take", _counts_one_too_many),),
    "keeps rows of another place": (
        (Buffer, "begin", _keeps_its_rows),
        (Buffer, "drop", _drops_nothing),
    ),
    "a cut is not said": ((Buffer, "begin", _takes_no_notice_of_cuts),),
    "a record is left out": ((Buffer, "add", _loses_one),),
}
