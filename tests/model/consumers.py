"""What a consumer or its Spark session does when a rule of the protocol is left out."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from tests.core.process import Process

from binwright.core import handover, messages, stamp
from binwright.core.handover import Ahead, Closing, Opening
from binwright.core.ports import Hint

from .process import Consumer

_obey, _start_, _drain = handover.obey, handover._start, handover.drain
_among, _landed = handover.Consumer.among, handover.Consumer.landed


def obeys_any_term(one: handover.Consumer, command: Any, now_ms: int) -> handover.Done:
    return _obey(replace(one, term=min(one.term, command.term)), command, now_ms)


def start_resets(one: handover.Consumer, command: Any) -> handover.Done:
    parts = {p: part for p, part in one.parts.items() if p not in command.offsets}
    return _start_(replace(one, parts=parts), command)


def leaves_with_a_write_in_flight(one: handover.Consumer) -> handover.Done:
    after, deeds = _drain(one)
    if not one.flying or one.ended or not one.ready:
        return after, deeds
    return after, (*deeds, *handover._farewell(after))


def leaves_before_it_is_ready(one: handover.Consumer) -> handover.Done:
    after, deeds = _drain(replace(one, ready=True))
    return replace(after, ready=one.ready), deeds


def hides_what_closes(one: handover.Consumer, kind: Any) -> tuple[Any, ...]:
    return () if kind is Closing else _among(one, kind)


def lands_ahead(one: handover.Consumer) -> dict[Any, int]:
    ahead = {p: part.offset for p, part in one.parts.items() if isinstance(part, Ahead)}
    return {**_landed(one), **ahead}


def forgets_fences(one: handover.Consumer, command: Any) -> handover.Done:
    opening = {p: part for p, part in one.parts.items() if isinstance(part, Opening)}
    parts = {
        p: part for p, part in one.parts.items() if p not in opening or p not in command.offsets
    }
    return _start_(replace(one, parts=parts), command)


def stopped_is_always_settled(one: handover.Consumer, command: Any, now_ms: int) -> handover.Done:
    after, deeds = _STOP(one, command, now_ms)
    told = tuple(
        handover.Reply(replace(d.message, unsettled=()))
        if isinstance(d, handover.Reply) and isinstance(d.message, messages.Stopped)
        else d
        for d in deeds
    )
    return after, told


_STOP = handover._stop


def reports_before_it_answers(self: Any, deed: Any) -> None:
    if isinstance(deed, handover.ReportNow):
        self.world.publish(self._state())
    else:
        _DO(self, deed)


_DO = Process._do

# --- the session ---------------------------------------------------------------------------------

_open, _verdict, _stamped = Process._open, Process.take_verdict, Process._stamped


def reads_before_it_fences(self: Any, opening: Any) -> None:
    if not self.early:
        self.early = {p: self._resolve(p) for p in opening.partitions}
    _open(self, opening)
    if opening not in self.opens:
        self.early = {}


def what_was_read_before(self: Any, partition: Any) -> int:
    found: int = self.early[partition] if self.early else _RESOLVE(self, partition)
    return found


_RESOLVE = Process._resolve


def believes_conflicts(kind: str) -> Callable[[Any], None]:
    def verdict(self: Any) -> None:
        if self.call.kind == kind and self.call.write.verdict == "conflict":
            self.call.write.verdict = len(self.world.tables[self.call.write.topic].commits)
        _verdict(self)

    return verdict


def takes_skipped_for_landed(self: Any) -> None:
    if self.call.kind == "write" and self.call.write.verdict is None and not self.call.lost:
        self.call.write.verdict = len(self.world.tables[self.call.write.topic].commits)
    _verdict(self)


def writes_again_under_a_new_number(self: Any) -> None:
    call = self.call
    if call.kind == "write" and (call.lost or call.write.verdict == "conflict"):
        self.sequence += 1
        call.write.number += 1
    _verdict(self)


def stamps_what_is_read_ahead(self: Any, topic: str) -> dict[Any, int]:
    ahead = {p: x.offset for p, x in self.me.parts.items() if isinstance(x, Ahead)}
    return {**_stamped(self, topic), **{p: o for p, o in ahead.items() if p.topic == topic}}


def resolve_by_hint(partition: Any, hint: Any, commits: Any, name: str) -> int | None:
    return hint.offset if hint else stamp.resolve(partition, None, commits, name)


def resolve_by_last_stamp(partition: Any, hint: Any, commits: Any, name: str) -> int | None:
    after = hint.version if hint else -1
    told = stamp.resolve(partition, None, [c for c in commits if c.version > after], name)
    return told if told is not None or hint is None else hint.offset


def hints_what_is_ahead(self: Any) -> dict[Any, Hint]:
    ahead = {p: part for p, part in self.me.parts.items() if isinstance(part, Ahead)}
    more = {p: Hint(x.offset, self.versions[p.topic], p.topic) for p, x in ahead.items()}
    return {**_HINTS(self), **more}


_HINTS = Consumer.hints
