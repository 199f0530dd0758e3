"""Rules of the protocol, each left out by changing one function: what the explorer must find."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from tests.core import process as little
from tests.core.process import Process

from binwright.core import group, handover, hearing, machine, messages, moving, stamp, synchronize
from binwright.core.group import Group, Held, Parked, Place, Starting, Unassigned
from binwright.core.handover import Ahead, Closing, Opening
from binwright.core.messages import Fence, Report
from binwright.core.ports import Hint
from binwright.core.stamp import WRITES_PER_EPOCH

from . import universe
from .process import Consumer

Patch = tuple[object, str, Any]
"""Where, what, and what instead."""


@contextmanager
def left_out(patches: tuple[Patch, ...]) -> Iterator[None]:
    """Run without a rule; everything is as it was afterwards."""
    before = [(where, name, getattr(where, name)) for where, name, _ in patches]
    for where, name, instead in patches:
        setattr(where, name, instead)
    try:
        yield
    finally:
        for where, name, what in before:
            setattr(where, name, what)


# --- the consumer --------------------------------------------------------------------------------

_obey, _start_, _drain = handover.obey, handover._start, handover.drain
_among, _landed = handover.Consumer.among, handover.Consumer.landed


def _obeys_any_term(one: handover.Consumer, command: Any, now_ms: int) -> handover.Done:
    return _obey(replace(one, term=min(one.term, command.term)), command, now_ms)


def _start_resets(one: handover.Consumer, command: Any) -> handover.Done:
    parts = {p: part for p, part in one.parts.items() if p not in command.offsets}
    return _start_(replace(one, parts=parts), command)


def _leaves_with_a_write_in_flight(one: handover.Consumer) -> handover.Done:
    after, deeds = _drain(one)
    if not one.flying or one.ended or not one.ready:
        return after, deeds
    return after, (*deeds, *handover._farewell(after))


def _hides_what_closes(one: handover.Consumer, kind: Any) -> tuple[Any, ...]:
    return () if kind is Closing else _among(one, kind)


def _lands_ahead(one: handover.Consumer) -> dict[Any, int]:
    ahead = {p: part.offset for p, part in one.parts.items() if isinstance(part, Ahead)}
    return {**_landed(one), **ahead}


def _forgets_fences(one: handover.Consumer, command: Any) -> handover.Done:
    opening = {p: part for p, part in one.parts.items() if isinstance(part, Opening)}
    parts = {
        p: part for p, part in one.parts.items() if p not in opening or p not in command.offsets
    }
    return _start_(replace(one, parts=parts), command)


def _stopped_is_always_settled(one: handover.Consumer, command: Any, now_ms: int) -> handover.Done:
    after, deeds = _STOP(one, command, now_ms)
    told = tuple(
        handover.Reply(replace(d.message, unsettled=()))
        if isinstance(d, handover.Reply) and isinstance(d.message, messages.Stopped)
        else d
        for d in deeds
    )
    return after, told


_STOP = handover._stop


def _reports_before_it_answers(self: Any, deed: Any) -> None:
    if isinstance(deed, handover.ReportNow):
        self.world.publish(self._state())
    else:
        _DO(self, deed)


_DO = Process._do

# --- the session ---------------------------------------------------------------------------------

_open, _verdict, _stamped = Process._open, Process.take_verdict, Process._stamped


def _reads_before_it_fences(self: Any, opening: Any) -> None:
    if not self.early:
        self.early = {p: self._resolve(p) for p in opening.partitions}
    _open(self, opening)
    if opening not in self.opens:
        self.early = {}


def _what_was_read_before(self: Any, partition: Any) -> int:
    found: int = self.early[partition] if self.early else _RESOLVE(self, partition)
    return found


_RESOLVE = Process._resolve


def _takes_conflicts_for_success(kind: str) -> Callable[[Any], None]:
    def verdict(self: Any) -> None:
        if self.call.kind == kind and self.call.write.verdict == "conflict":
            self.call.write.verdict = len(self.world.tables[self.call.write.topic].commits)
        _verdict(self)

    return verdict


def _takes_skipped_for_landed(self: Any) -> None:
    if self.call.kind == "write" and self.call.write.verdict is None and not self.call.lost:
        self.call.write.verdict = len(self.world.tables[self.call.write.topic].commits)
    _verdict(self)


def _writes_again_under_a_new_number(self: Any) -> None:
    call = self.call
    if call.kind == "write" and (call.lost or call.write.verdict == "conflict"):
        self.sequence += 1
        call.write.number += 1
    _verdict(self)


def _stamps_what_is_read_ahead(self: Any, topic: str) -> dict[Any, int]:
    ahead = {p: x.offset for p, x in self.me.parts.items() if isinstance(x, Ahead)}
    return {**_stamped(self, topic), **{p: o for p, o in ahead.items() if p.topic == topic}}


def _resolve_by_hint(partition: Any, hint: Any, commits: Any, name: str) -> int | None:
    return hint.offset if hint else stamp.resolve(partition, None, commits, name)


def _resolve_by_last_stamp(partition: Any, hint: Any, commits: Any, name: str) -> int | None:
    after = hint.version if hint else -1
    told = stamp.resolve(partition, None, [c for c in commits if c.version > after], name)
    return told if told is not None or hint is None else hint.offset


def _hints_what_is_ahead(self: Any) -> dict[Any, Hint]:
    ahead = {p: part for p, part in self.me.parts.items() if isinstance(part, Ahead)}
    more = {p: Hint(x.offset, self.versions[p.topic], p.topic) for p, x in ahead.items()}
    return {**_HINTS(self), **more}


_HINTS = Consumer.hints

# --- the controller ------------------------------------------------------------------------------

_dead, _word, _report, _fences = hearing._dead, hearing._word, hearing._report, group.fences
_take_answer, _lose, _hello = hearing.take_answer, group.lose, hearing._hello
_concluded, _wanted, _started = synchronize.concluded, moving._wanted, hearing._started


def _ignores_the_deposed(known: Group, slot: Any, event: Any) -> Any:
    if known.term is not None and event.message.term < known.term:
        return known, ()
    return _dead(known, slot, event)


def _tells_nobody_to_leave(known: Group, message: Any, event: Any) -> Any:
    return (
        _word(known, message, event)
        if message.epoch == known.member(message.slot).epoch
        else (known, ())
    )


def _of_any_epoch(known: Group, message: Any) -> Any:
    epoch = known.member(message.slot).epoch
    return message if epoch is None else replace(message, epoch=epoch)


def _hears_any_epoch(known: Group, message: Any, event: Any) -> Any:
    return _word(known, _of_any_epoch(known, message), event)


def _takes_answers_of_any_epoch(known: Group, message: Any, now: float) -> Any:
    if isinstance(message, messages.Stopped | messages.Landed | messages.Started):
        message = _of_any_epoch(known, message)
    return _take_answer(known, message, now)


def _collects_any_epoch(known: Group, answers: Any, message: Any) -> Any:
    if isinstance(message, Report):
        message = _of_any_epoch(known, message)
    return _collect(known, answers, message)


_collect = synchronize.collect


def _ready_by_any_report(known: Group, member: Any, report: Any) -> Any:
    known, said = _report(known, member, report)
    return group.pay(known, report.slot), said


def _doubts_only_the_dead(known: Group) -> frozenset[Any]:
    return frozenset(
        s for s, m in known.members.items() if not (m.left_nothing or m.epoch is not None)
    )


def _fences_above_all(known: Group, owed: Any) -> Any:
    raised = _fences(known, owed)
    high = WRITES_PER_EPOCH >> 4
    return raised and tuple(Fence(slot=f.slot, number=high) for f in raised)


def _fences_only_the_dead(known: Group, owed: Any) -> Any:
    raised = [(slot, known.member(slot).dead) for slot in sorted(owed)]
    return tuple(Fence(slot=slot, number=dead) for slot, dead in raised if dead is not None)


def _owes_only_the_last(known: Group, slot: Any) -> Group:
    after = _lose(known, slot)
    places = {
        p: replace(place, owed=frozenset({slot})) if place is not known.places[p] else place
        for p, place in after.places.items()
    }
    return replace(after, places=places)


def _owes_nothing(known: Group, slot: Any) -> Group:
    after = _lose(known, slot)
    places = {p: replace(place, owed=known.places[p].owed) for p, place in after.places.items()}
    return replace(after, places=places)


def _knows_only_the_fleet(self: Any, *, compacted: bool) -> Group:
    known = _HISTORY(self, compacted=compacted)
    there = {c.slot for c in self.consumers if c.owned}
    return replace(known, members={s: m for s, m in known.members.items() if s in there})


_HISTORY = universe.Universe.history


def _lets_readers_ahead_land(known: Group, answers: Any, now: float) -> Any:
    held = {
        s: replace(r, held={**r.held, **dict.fromkeys(r.ahead, 0)}, ahead=())
        for s, r in answers.items()
    }
    return _concluded(known, held, now)


def _starts_while_tails_are_out(_place: Place, _heir: Any, _raised: Any) -> bool:
    return True


def _starts_resolving_while_tails_are_out(known: Group, target: Any) -> Any:
    places = {
        p: replace(place, tails=frozenset()) if isinstance(place.at, Unassigned) else place
        for p, place in known.places.items()
    }
    return _wanted(replace(known, places=places), target)


def _gives_it_back_to_its_writer(place: Place, _heir: Any, raised: Any) -> bool:
    return not place.tails or (isinstance(place.at, Parked) and not raised)


def _never_ahead(known: Group, kind: Any, offsets: Any, now: float) -> Any:
    return _START(known, kind._replace(ahead=False), offsets, now)


_START = moving._start


def _goes_on_where_the_dead_began(known: Group, kind: Any, offsets: Any, now: float) -> Any:
    return _START(known, kind, dict.fromkeys(offsets, 0) if kind.fences else offsets, now)


def _any_landed_will_do(known: Group, message: Any) -> Any:
    tails = {t for place in known.places.values() for t in place.tails}
    mine = [t.revision for t in tails if (t.slot, t.epoch) == (message.slot, message.epoch)]
    return _LANDED(known, replace(message, revision=mine[0]) if mine else message)


_LANDED = group.landed


def _any_stopped_will_do(known: Group, message: Any) -> Any:
    at = [known.places[p].at for p in message.next if p in known.places]
    mine = [a.revision for a in at if isinstance(a, group.Stopping) and message.slot in a.owners]
    return _STOPPED(known, replace(message, revision=mine[0]) if mine else message)


_STOPPED = group.stopped


def _any_started_will_do(known: Group, slot: Any, revision: int, partitions: Any) -> Any:
    partitions = list(partitions)
    at = [known.places[p].at for p in partitions if p in known.places]
    mine = [a.command.revision for a in at if isinstance(a, Starting) and a.slot == slot]
    return _STARTED(known, slot, mine[0] if mine else revision, partitions)


_STARTED = group.started


def _lets_the_heir_land(known: Group, slot: Any, now: float) -> Any:
    """The writer died; its heir goes on from where it was told."""
    readers = group.readers_ahead(known, slot)
    heirs: dict[Any, dict[Any, int]] = {}
    places = dict(known.places)
    for heir, partitions in readers.items():
        for p in partitions:
            place = places[p]
            at = place.at
            offset = at.command.offsets[p] if isinstance(at, Starting) else 1
            heirs.setdefault(heir, {})[p] = offset or 0
            places[p] = replace(place, tails=frozenset())
    known, said = moving.release(replace(known, places=places), heirs, now)
    return group.lose(known, slot), said


def _pays_every_death(known: Group, message: Any) -> Any:
    after, said = _started(known, message)
    for fence in message.fences if said else ():
        after = group.pay(after, fence.slot)
    return after, said


def _believes_any_goodbye(known: Group, message: Any, event: Any) -> Any:
    member = known.member(message.slot)
    if isinstance(message, messages.Goodbye) and message.epoch == member.epoch:
        known = hearing._known(known, message.slot, replace(member, ready=True))
    return _word(known, message, event)


def _leaves_before_it_is_ready(one: handover.Consumer) -> handover.Done:
    after, deeds = _drain(replace(one, ready=True))
    return replace(after, ready=one.ready), deeds


def _any_last_word(member: Any, epoch: int) -> bool:
    return bool(epoch == member.goodbye)


def _believes_both(known: Group, answers: Any, now: float) -> Any:
    after, said = _concluded(known, answers, now)
    places = {
        p: replace(place, at=replace(place.at, twice=False))
        if isinstance(place.at, group.Stopping)
        else place
        for p, place in after.places.items()
    }
    return replace(after, places=places), said


def _repeats_it_all(known: Group, now: float) -> Any:
    after, actions = _REPEAT(known, now)
    places = known.places.values()
    said = {p.at.command.revision: p.at.command for p in places if isinstance(p.at, Starting)}
    return after, tuple(_in_full(action, said) for action in actions)


def _in_full(action: Any, said: Mapping[int, Any]) -> Any:
    if not isinstance(action.message, messages.StartConsuming):
        return action
    return replace(action, message=said[action.message.revision])


_REPEAT = moving.repeat


def _misses_no_landed(_report: Any, _partition: Any, _place: Any) -> bool:
    return False


def _blank_history(_self: Any, **_compacted: bool) -> Group:
    return universe.blank()


def _moves_on_while_tails_are_out(known: Group, target: Any) -> Any:
    places = {
        p: replace(place, tails=frozenset()) if isinstance(place.at, Held) else place
        for p, place in known.places.items()
    }
    return _wanted(replace(known, places=places), target)


LEFT_OUT: Mapping[str, tuple[Patch, ...]] = {
    # the consumer
    "no_term_check": ((handover, "obey", _obeys_any_term),),
    "start_resets": ((handover, "_start", _start_resets),),
    "fences_of_an_earlier_start": ((handover, "_start", _forgets_fences),),
    "report_overtakes": ((Process, "_do", _reports_before_it_answers),),
    "bye_in_flight": ((handover, "drain", _leaves_with_a_write_in_flight),),
    "bye_before_ready": (
        (handover, "drain", _leaves_before_it_is_ready),
        (hearing, "_word", _believes_any_goodbye),
    ),
    "report_hides_unsettled": ((handover.Consumer, "among", _hides_what_closes),),
    "stopped_hides_unsettled": ((handover, "_stop", _stopped_is_always_settled),),
    "lands_what_is_read_ahead": ((handover.Consumer, "landed", _lands_ahead),),
    # the session
    "read_then_fence": (
        (Process, "_open", _reads_before_it_fences),
        (Process, "_resolve", _what_was_read_before),
    ),
    "lost_fence_is_fine": ((Process, "take_verdict", _takes_conflicts_for_success("fence")),),
    "lost_claim_is_fine": ((Process, "take_verdict", _takes_conflicts_for_success("claim")),),
    "conflict_is_landed": ((Process, "take_verdict", _takes_conflicts_for_success("write")),),
    "skip_is_landed": ((Process, "take_verdict", _takes_skipped_for_landed),),
    "retry_new_version": ((Process, "take_verdict", _writes_again_under_a_new_number),),
    "stamp_names_read_ahead": ((Process, "_stamped", _stamps_what_is_read_ahead),),
    "hint_names_read_ahead": ((Consumer, "hints", _hints_what_is_ahead),),
    "hint_truth": ((little, "resolve", _resolve_by_hint),),
    "stamp_over_hint": ((little, "resolve", _resolve_by_last_stamp),),
    # the controller
    "old_epoch_reports": (
        (hearing, "_word", _hears_any_epoch),
        (machine, "collect", _collects_any_epoch),
    ),
    "old_answers": (
        (machine, "take_answer", _takes_answers_of_any_epoch),
        (hearing, "stopped", _any_stopped_will_do),
    ),
    "old_epoch_answers": ((machine, "take_answer", _takes_answers_of_any_epoch),),
    "old_revision_stopped": ((hearing, "stopped", _any_stopped_will_do),),
    "old_revision_started": ((hearing, "started", _any_started_will_do),),
    "old_revision_landed": ((hearing, "landed", _any_landed_will_do),),
    "ignores_deposed_dead": ((hearing, "_dead", _ignores_the_deposed),),
    "voided_not_told": ((hearing, "_word", _tells_nobody_to_leave),),
    "goodbye_said_again": ((hearing, "_just_left", _any_last_word),),
    "unready_pays": (
        (hearing, "_report", _ready_by_any_report),
        (synchronize, "_doubted", _doubts_only_the_dead),
    ),
    "fence_above_all": ((moving, "fences", _fences_above_all),),
    "fences_only_the_dead": ((moving, "fences", _fences_only_the_dead),),
    "owes_only_the_last": ((hearing, "lose", _owes_only_the_last),),
    "owes_nothing": ((hearing, "lose", _owes_nothing),),
    "fences_with_offset": (
        (moving, "_start", _goes_on_where_the_dead_began),
        (messages.StartConsuming, "__post_init__", lambda _: None),
    ),
    "pays_every_death": ((hearing, "_started", _pays_every_death),),
    "never_ahead": ((moving, "_start", _never_ahead),),
    "resolves_with_a_tail": ((moving, "_wanted", _starts_resolving_while_tails_are_out),),
    "back_to_its_writer": ((moving, "_may_start", _gives_it_back_to_its_writer),),
    "moves_on_with_a_tail": ((moving, "_wanted", _moves_on_while_tails_are_out),),
    "dead_writer_heir_lands": ((hearing, "_lost", _lets_the_heir_land),),
    "repeats_it_all": ((machine, "repeat", _repeats_it_all),),
    # Synchronize
    "lost_landed_not_missed": ((hearing, "_unheard", _misses_no_landed),),
    "asks_only_the_fleet": ((universe.Universe, "history", _knows_only_the_fleet),),
    "reads_from_claim": ((universe.Universe, "history", _blank_history),),
    "awaits_lost_landed": ((machine, "concluded", _lets_readers_ahead_land),),
    "held_twice_believed": ((machine, "concluded", _believes_both),),
}
