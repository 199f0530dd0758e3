"""What a controller does when a rule of the protocol is left out."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from binwright.core import group, hearing, messages, moving, synchronize
from binwright.core.group import Group, Held, Parked, Place, Starting, Unassigned
from binwright.core.messages import Fence, Report
from binwright.core.stamp import WRITES_PER_EPOCH

from . import universe

_dead, _word, _report, _fences = hearing._dead, hearing._word, hearing._report, group.fences
_take_answer, _lose, _hello = hearing.take_answer, group.lose, hearing._hello
_concluded, _wanted, _started = synchronize.concluded, moving._wanted, hearing._started


def ignores_the_deposed(known: Group, slot: Any, event: Any) -> Any:
    if known.term is not None and event.message.term < known.term:
        return known, ()
    return _dead(known, slot, event)


def tells_nobody_to_leave(known: Group, message: Any, event: Any) -> Any:
    return (
        _word(known, message, event)
        if message.epoch == known.member(message.slot).epoch
        else (known, ())
    )


def _of_any_epoch(known: Group, message: Any) -> Any:
    epoch = known.member(message.slot).epoch
    return message if epoch is None else replace(message, epoch=epoch)


def hears_any_epoch(known: Group, message: Any, event: Any) -> Any:
    return _word(known, _of_any_epoch(known, message), event)


def takes_answers_of_any_epoch(known: Group, message: Any, now: float) -> Any:
    if isinstance(message, messages.Stopped | messages.Landed | messages.Started):
        message = _of_any_epoch(known, message)
    return _take_answer(known, message, now)


def collects_any_epoch(known: Group, answers: Any, message: Any) -> Any:
    if isinstance(message, Report):
        message = _of_any_epoch(known, message)
    return _collect(known, answers, message)


_collect = synchronize.collect


def ready_by_any_report(known: Group, member: Any, report: Any) -> Any:
    known, said = _report(known, member, report)
    return group.pay(known, report.slot), said


def doubts_only_the_dead(known: Group) -> frozenset[Any]:
    return frozenset(
        s for s, m in known.members.items() if not (m.left_nothing or m.epoch is not None)
    )


def fences_above_all(known: Group, owed: Any) -> Any:
    raised = _fences(known, owed)
    high = WRITES_PER_EPOCH >> 4
    return raised and tuple(Fence(slot=f.slot, number=high) for f in raised)


def fences_only_the_dead(known: Group, owed: Any) -> Any:
    raised = [(slot, known.member(slot).dead) for slot in sorted(owed)]
    return tuple(Fence(slot=slot, number=dead) for slot, dead in raised if dead is not None)


def owes_only_the_last(known: Group, slot: Any) -> Group:
    after = _lose(known, slot)
    places = {
        p: replace(place, owed=frozenset({slot})) if place is not known.places[p] else place
        for p, place in after.places.items()
    }
    return replace(after, places=places)


def owes_nothing(known: Group, slot: Any) -> Group:
    after = _lose(known, slot)
    places = {p: replace(place, owed=known.places[p].owed) for p, place in after.places.items()}
    return replace(after, places=places)


def knows_only_the_fleet(self: Any, *, compacted: bool) -> Group:
    known = _HISTORY(self, compacted=compacted)
    there = {c.slot for c in self.consumers if c.owned}
    return replace(known, members={s: m for s, m in known.members.items() if s in there})


_HISTORY = universe.Universe.history


def lets_readers_ahead_land(known: Group, answers: Any, now: float) -> Any:
    held = {
        s: replace(r, held={**r.held, **dict.fromkeys(r.ahead, 0)}, ahead=())
        for s, r in answers.items()
    }
    return _concluded(known, held, now)


def _starts_while_tails_are_out(_place: Place, _heir: Any, _raised: Any) -> bool:
    return True


def resolves_while_tails_are_out(known: Group, target: Any) -> Any:
    places = {
        p: replace(place, tails=frozenset()) if isinstance(place.at, Unassigned) else place
        for p, place in known.places.items()
    }
    return _wanted(replace(known, places=places), target)


def gives_it_back_to_its_writer(place: Place, _heir: Any, raised: Any) -> bool:
    return not place.tails or (isinstance(place.at, Parked) and not raised)


def never_ahead(known: Group, kind: Any, offsets: Any, now: float) -> Any:
    return _START(known, kind._replace(ahead=False), offsets, now)


_START = moving._start


def goes_on_where_the_dead_began(known: Group, kind: Any, offsets: Any, now: float) -> Any:
    return _START(known, kind, dict.fromkeys(offsets, 0) if kind.fences else offsets, now)


def any_landed_will_do(known: Group, message: Any) -> Any:
    tails = {t for place in known.places.values() for t in place.tails}
    mine = [t.revision for t in tails if (t.slot, t.epoch) == (message.slot, message.epoch)]
    return _LANDED(known, replace(message, revision=mine[0]) if mine else message)


_LANDED = group.landed


def any_stopped_will_do(known: Group, message: Any) -> Any:
    at = [known.places[p].at for p in message.next if p in known.places]
    mine = [a.revision for a in at if isinstance(a, group.Stopping) and message.slot in a.owners]
    return _STOPPED(known, replace(message, revision=mine[0]) if mine else message)


_STOPPED = group.stopped


def any_started_will_do(known: Group, slot: Any, revision: int, partitions: Any) -> Any:
    partitions = list(partitions)
    at = [known.places[p].at for p in partitions if p in known.places]
    mine = [a.command.revision for a in at if isinstance(a, Starting) and a.slot == slot]
    return _STARTED(known, slot, mine[0] if mine else revision, partitions)


_STARTED = group.started


def lets_the_heir_land(known: Group, slot: Any, now: float) -> Any:
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


def pays_every_death(known: Group, message: Any) -> Any:
    after, said = _started(known, message)
    for fence in message.fences if said else ():
        after = group.pay(after, fence.slot)
    return after, said


def believes_any_goodbye(known: Group, message: Any, event: Any) -> Any:
    member = known.member(message.slot)
    if isinstance(message, messages.Goodbye) and message.epoch == member.epoch:
        known = hearing._known(known, message.slot, replace(member, ready=True))
    return _word(known, message, event)


def any_last_word(member: Any, epoch: int) -> bool:
    return bool(epoch == member.goodbye)


def believes_both(known: Group, answers: Any, now: float) -> Any:
    after, said = _concluded(known, answers, now)
    places = {
        p: replace(place, at=replace(place.at, twice=False))
        if isinstance(place.at, group.Stopping)
        else place
        for p, place in after.places.items()
    }
    return replace(after, places=places), said


def repeats_it_all(known: Group, now: float) -> Any:
    after, actions = _REPEAT(known, now)
    places = known.places.values()
    said = {p.at.command.revision: p.at.command for p in places if isinstance(p.at, Starting)}
    return after, tuple(_in_full(action, said) for action in actions)


def _in_full(action: Any, said: Mapping[int, Any]) -> Any:
    if not isinstance(action.message, messages.StartConsuming):
        return action
    return replace(action, message=said[action.message.revision])


_REPEAT = moving.repeat


def misses_no_landed(_report: Any, _partition: Any, _place: Any) -> bool:
    return False


def blank_history(_self: Any, **_compacted: bool) -> Group:
    return universe.blank()


def moves_on_while_tails_are_out(known: Group, target: Any) -> Any:
    places = {
        p: replace(place, tails=frozenset()) if isinstance(place.at, Held) else place
        for p, place in known.places.items()
    }
    return _wanted(replace(known, places=places), target)
