"""Equal situations are equal digests: numbers are named in the order in which they are met.

What the core only compares (epochs, terms, revisions, deaths) keeps its order and loses its size.
"""

from collections.abc import Iterable, Mapping
from dataclasses import fields
from hashlib import blake2b
from marshal import dumps
from typing import Any

from tests.core.process import GROUP

from binwright.core.group import Group, Held, Parked, Place, Starting, Stopping
from binwright.core.handover import Active, Ahead, Closing, Opening
from binwright.core.handover import Consumer as Handover
from binwright.core.machine import Manage, Synchronize
from binwright.core.messages import (
    Claim,
    Dead,
    Fence,
    Fenced,
    Goodbye,
    Hello,
    Report,
)
from binwright.core.model import TopicPartition
from binwright.core.stamp import WRITES_PER_EPOCH, Stamp, read_stamp

from .process import Consumer
from .ruler import Controller
from .universe import Universe

Plain = Any  # nested tuples of numbers and text
_STAMPS: dict[str, Stamp | None] = {}


def digest(world: Universe) -> bytes:
    """Return 16 bytes that two worlds share if nothing that can happen tells them apart."""
    return blake2b(dumps(plain(world), 2), digest_size=16).digest()


def plain(world: Universe) -> Plain:
    names = _Names()
    told = names.world(world)
    order = tuple(names.known[number] for number in sorted(names.known))
    return told, order


def _stamp(text: str) -> Stamp | None:
    if text not in _STAMPS:
        _STAMPS[text] = read_stamp(text, GROUP)
    return _STAMPS[text]


class _Names:
    def __init__(self) -> None:
        self.known: dict[int, int] = {}
        self.revisions: dict[int, int] = {}

    def r(self, revision: int) -> int:
        """Revisions are only ever compared for equality."""
        return self.revisions.setdefault(revision, len(self.revisions))

    def n(self, number: int | None) -> int:
        return -1 if number is None else self.known.setdefault(number, len(self.known))

    def version(self, number: int) -> Plain:
        """A number under which something is written: an epoch's or a death's, and which write."""
        if number < 0:
            return -1
        return self.n(number // WRITES_PER_EPOCH), number % WRITES_PER_EPOCH

    def offsets(self, offsets: Mapping[TopicPartition, int | None]) -> Plain:
        return tuple(
            (*p, -1 if offset is None else offset) for p, offset in sorted(offsets.items())
        )

    def fences(self, fences: tuple[Fence, ...]) -> Plain:
        return tuple((f.slot, self.n(f.number)) for f in fences)

    # --- the whole ---------------------------------------------------------------------------

    def world(self, world: Universe) -> Plain:
        lands = tuple(self._table(world, name) for name in world.tables)
        consumers = sorted(world.consumers, key=lambda c: (c.slot, c.epoch))
        return (
            lands,
            tuple(self.consumer(world, c) for c in consumers),
            tuple(self._writes(world)),
            tuple(self.controller(c) for c in world.controllers),
            self.members(world.chronicle),
            self._last(world),
            world.faults,
            world.moves,
            tuple(self._hints(world)),
        )

    def _table(self, world: Universe, name: str) -> Plain:
        table = world.tables[name]
        numbers = tuple((app, self.version(v)) for app, v in sorted(table.numbers.items()))
        living = {(c.slot, c.epoch, c.sequence) for c in world.consumers if c.call}
        stamps: list[Plain] = []
        best: dict[TopicPartition, int] = {}
        for commit in table.commits:
            stamp = _stamp(commit.metadata) if commit.metadata else None
            if stamp is None:
                continue
            if (stamp.slot, stamp.epoch, stamp.sequence) in living:
                stamps.append((stamp.slot, self.n(stamp.epoch), stamp.sequence))
            if world.bounds.hints:
                stamps.append((commit.version, self.offsets(stamp.landed)))
            for p, offset in stamp.landed.items():
                best[p] = max(best.get(p, 0), offset)
        return numbers, self.offsets(table.landed), self.offsets(best), tuple(stamps)

    def _hints(self, world: Universe) -> Plain:
        for p, hint in sorted(world.hints.items()):
            yield (*p, hint.offset, hint.version)

    def _writes(self, world: Universe) -> Plain:
        awaited = {id(c.call.write) for c in world.consumers if c.call and not c.call.lost}
        told = [(self.write(w), id(w) in awaited, w.stuck) for w in world.writes]
        return sorted(told)

    def write(self, write: Any) -> Plain:
        rows = tuple((*p, *r) for p, r in sorted(write.rows.items()))
        stamp = _stamp(write.stamp) if write.stamp else None
        told = self.offsets(stamp.landed) if stamp else ()
        seen = self.version(write.seen)
        seen = seen if isinstance(seen, tuple) else (-1, 0)
        return write.topic, write.app, self.version(write.number), seen, rows, told

    def _last(self, world: Universe) -> Plain:
        """What compaction leaves of partition 0, as far as a new controller looks at it."""
        told = []
        for key, (offset, message) in sorted(world.last.items()):
            match message:
                case Report(epoch=epoch, ready=ready):
                    told.append((key, self.n(offset), self.n(epoch), ready))
                case Goodbye(epoch=epoch):
                    told.append((key, self.n(offset), self.n(epoch), False))
                case Fenced(number=number):
                    told.append((key, -1, self.n(number), False))
                case Hello() | Dead():
                    told.append((key, self.n(offset), -1, False))
                case _:
                    pass
        return tuple(told)

    # --- a consumer --------------------------------------------------------------------------

    def consumer(self, world: Universe, one: Consumer) -> Plain:
        call = one.call
        return (
            one.slot,
            one.owned,
            one.paused,
            self.handover(one.consumer) if one.consumer else (),
            tuple(self.message(m) for m in one.orders),
            tuple(self.deed(d) for d in one.deeds),
            tuple(
                (self.r(o.revision), _names(o.partitions), self.fences(o.fences)) for o in one.opens
            ),
            tuple((topic, f.slot, self.n(f.number)) for topic, f in one.raised),
            self.offsets(one.fetching),
            self.offsets(one.early),
            tuple(one.unclaimed),
            one.sequence,
            (
                call.kind,
                self.write(call.write),
                _verdict(call.write.verdict),
                call.tries > 1,
                call.lost,
            )
            if call
            else (),
            self.message(one.said) if one.said else (),
            tuple(sorted(one.versions.items())) if world.bounds.hints else (),
        )

    def handover(self, one: Handover) -> Plain:
        parts = tuple((*p, self.part(part)) for p, part in sorted(one.parts.items()))
        return (
            self.n(one.epoch),
            self.n(one.term),
            one.ready,
            one.leaving,
            one.ended,
            parts,
            self.offsets(one.flying),
        )

    def part(self, part: Any) -> Plain:
        match part:
            case Active(landed=landed):
                return "A", landed
            case Ahead(offset=offset):
                return "R", offset
            case Closing(revision=revision, landed=landed):
                return "C", self.r(revision), landed
            case Opening(revision=revision, fences=fences):
                return "O", self.r(revision), self.fences(fences)
        raise TypeError(part)

    def deed(self, deed: Any) -> Plain:
        message = getattr(deed, "message", None)
        if message is not None:
            return self.message(message)
        revision = getattr(deed, "revision", 0)
        partition = getattr(deed, "partition", ())
        return type(deed).__name__, tuple(partition), self.r(revision), getattr(deed, "offset", -1)

    # --- a controller ------------------------------------------------------------------------

    def controller(self, one: Controller) -> Plain:
        state = one.state
        told: Plain = ()
        match state:
            case Synchronize(answers=answers):
                told = tuple((s, self.message(r)) for s, r in sorted(answers.items()))
            case Manage(target=target):
                told = tuple((*p, s) for p, s in sorted(target.items()))
            case _:
                pass
        unread = tuple(
            (
                self.n(o) if isinstance(m, Hello | Claim | Dead) else -1,
                m.controller == one.name if isinstance(m, Claim) else self.message(m),
            )
            for o, m in one.unread
        )
        words = tuple(
            (
                type(w).__name__,
                getattr(w, "slot", -1),
                self.message(w.message) if hasattr(w, "message") else (),
            )
            for w in one.words
        )
        known = () if one.reigns else (one.compacted, self.members(one.known))
        return (
            type(state).__name__,
            one.paused,
            one.lags,
            told,
            unread,
            words,
            known,
            self.group(state.group),
        )

    def members(self, group: Group) -> Plain:
        members = tuple(
            (
                slot,
                self.n(m.hello),
                self.n(m.dead),
                self.n(m.goodbye),
                m.ready,
                m.leaving,
                self.n(m.answered) if group.term is not None else -1,
                m.condemned_at is not None,
            )
            for slot, m in sorted(group.members.items())
        )
        fenced = tuple((*key, self.n(number)) for key, number in sorted(group.fenced.items()))
        return members, fenced

    def group(self, group: Group) -> Plain:
        places = tuple((*p, self.place(place)) for p, place in sorted(group.places.items()))
        return self.n(group.term), self.members(group), places, tuple(sorted(group.doubt))

    def place(self, place: Place) -> Plain:
        at: Plain
        match place.at:
            case Held(slot=slot, epoch=epoch):
                at = slot, self.n(epoch)
            case Parked(offset=offset):
                at = ("parked", offset)
            case Stopping(owners=owners, revision=revision, twice=twice):
                held = tuple((s, self.n(e)) for s, e in sorted(owners.items()))
                at = held, self.r(revision), twice
            case Starting(slot=slot, command=command):
                at = ("start", slot, self.message(command))
            case _:
                at = ()
        tails = tuple(
            (t.slot, self.n(t.epoch), self.r(t.revision))
            for t in sorted(place.tails, key=lambda t: (t.slot, t.epoch, t.revision))
        )
        return at, tuple(sorted(place.owed)), tails

    # --- messages ----------------------------------------------------------------------------

    def message(self, message: Any) -> Plain:
        fields = _FIELDS.get(type(message)) or _fields(type(message))
        return message.kind, *(self.field(name, getattr(message, name)) for name in fields)

    def field(self, name: str, value: Any) -> Plain:
        if name in _NUMBERS:
            return self.n(value)
        if name == "revision":
            return self.r(value)
        if name == "fences":
            return self.fences(value)
        if isinstance(value, Mapping):
            return self.offsets(value)
        return _names(value) if isinstance(value, tuple) else value


_NUMBERS = frozenset({"epoch", "term", "number"})
_TOLD_TO_PEOPLE = frozenset(
    {
        "kind",
        "process",
        "version",
        "quit_ms",
        "controller",
        "rate",
        "landed_rows",
        "holes",
        "writing",
    }
)
_FIELDS: dict[type, tuple[str, ...]] = {}


def _fields(kind: type) -> tuple[str, ...]:
    _FIELDS[kind] = tuple(f.name for f in fields(kind) if f.name not in _TOLD_TO_PEOPLE)
    return _FIELDS[kind]


def _verdict(verdict: str | int | None) -> int | str:
    """How a call ended; which version it made is told by the hints, if by anything."""
    return "c" if isinstance(verdict, int) else str(verdict)


def _names(partitions: Iterable[TopicPartition]) -> Plain:
    return tuple(tuple(p) for p in partitions)
