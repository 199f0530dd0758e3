"""A controller without a clock: what time would bring about is a step of its own."""

from collections import deque
from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING

from tests.core.ruler import Ruler

from binwright.core import machine, wire
from binwright.core.events import Event, Heard, Pack, Packed, Publish, Reconcile, Say, Tick
from binwright.core.group import Held, Starting, Stopping
from binwright.core.machine import Manage, Reassign, Sentinel
from binwright.core.messages import Claim, Inbound, Planned
from binwright.core.model import Slot, TopicPartition

if TYPE_CHECKING:
    from .universe import Universe

LONG_AGO = -1000.0


class Controller(Ruler):
    """It reads and speaks at once, unless it lags; it takes no notice of time by itself."""

    world: "Universe"

    def __init__(self, world: "Universe", name: str, *, compacted: bool = False) -> None:
        super().__init__(world, name)
        self.compacted = compacted  # how it will find partition 0
        self.known = self.state.group  # what that held before the claim
        self.unread = deque[tuple[int, Inbound]]()
        self.lags = world.bounds.lazy
        world.measure_for(self)

    def copy(self, world: "Universe") -> "Controller":
        twin = object.__new__(Controller)
        twin.__dict__.update(self.__dict__)
        twin.world = world
        twin.unread, twin.words = self.unread.copy(), self.words.copy()
        return twin

    @property
    def name(self) -> str:
        return self.state.group.controller

    @property
    def reigns(self) -> bool:
        return self.state.group.term is not None

    def ends(self) -> bool:
        """Whether it will read that it is deposed: nothing after that matters."""
        return any(isinstance(m, Claim) and m.controller != self.name for _, m in self.unread)

    def read(self) -> None:
        offset, message = self.unread.popleft()
        if isinstance(message, Claim) and not self.reigns and message.controller == self.name:
            # All before it is history, folded already.
            members, fenced = self.known.members, self.known.fenced
            group = replace(self.state.group, members=members, fenced=fenced)
            self.state = replace(self.state, group=group)
        self.feed(Heard(0.0, offset, message))
        self.lags = self.world.bounds.lazy or (self.lags and bool(self.unread))

    def feed(self, event: Event) -> None:
        self.state, words = machine.transition(self.state, event)
        for word in words:
            match word:
                case Pack():  # the explorer packs, when it likes
                    self.state = Sentinel(self.state.group, 0.0)
                case Reconcile() | Publish(message=Planned()):
                    pass  # the fleet of the explorer keeps every slot, and nobody obeys a plan
                case Say():
                    self._say(word)  # nobody waits for it
                case _:
                    self.words.append(word)

    # --- what time brings about ------------------------------------------------------------------

    def overdue_slots(self) -> list[Slot]:
        """Return who may be found silent."""
        if not self.reigns:
            return []
        members = sorted(self.state.group.members.items())
        return [s for s, m in members if m.epoch is not None and m.condemned_at is None]

    def miss(self, slot: Slot) -> None:
        """Everybody but this slot has reported in time."""
        group = self.state.group
        silent = replace(group.member(slot), heard_at=LONG_AGO)
        known = replace(group, members={**group.members, slot: silent})
        self.state = replace(self.state, group=known)
        self.feed(Tick(0.0))
        group = self.state.group
        heard = {s: replace(m, heard_at=0.0) for s, m in group.members.items()}
        self.state = replace(self.state, group=replace(group, members=heard))

    def unanswered(self) -> bool:
        return any(isinstance(p.at, Starting | Stopping) for p in self.state.group.places.values())

    def repeat(self) -> None:
        """Nothing was answered for long."""
        group = self.state.group
        places = {
            p: replace(place, at=replace(place.at, sent_at=LONG_AGO))
            if isinstance(place.at, Starting | Stopping)
            else place
            for p, place in group.places.items()
        }
        self.state = replace(self.state, group=replace(group, places=places))
        self.feed(Tick(0.0))

    def gives_up_plan(self) -> bool:
        """Whether a plan waits for who may never be ready."""
        if not isinstance(self.state, Manage):
            return False
        group, target = self.state.group, self.state.target
        return any(
            place.free and not group.member(target[p]).usable
            for p, place in group.places.items()
            if p in target
        )

    def overdue_plan(self) -> None:
        self.state = replace(self.state, since=LONG_AGO)
        self.feed(Tick(0.0))

    # --- plans -----------------------------------------------------------------------------------

    def plans(self) -> list[tuple[bool, dict[TopicPartition, Slot]]]:
        """Return where partitions may be sent, and whether it is a move that nothing forces."""
        if not isinstance(self.state, Sentinel):
            return []
        group = self.state.group
        usable = sorted(s for s, m in group.members.items() if m.usable)
        assigned = group.assignment()
        free = sorted(p for p, place in group.places.items() if place.free)
        if free:
            heirs = product(usable, repeat=len(free))
            return [(False, {**assigned, **dict(zip(free, h, strict=True))}) for h in heirs]
        return [
            (True, {**assigned, p: heir})
            for p, place in sorted(group.places.items())
            if isinstance(place.at, Held) and not place.tails
            for heir in usable
            if heir != place.at.slot
        ]

    def plan(self, target: dict[TopicPartition, Slot]) -> None:
        self.state = Reassign(self.state.group, 0.0, ("the explorer wants it",))
        self.feed(Packed(0.0, target))

    def told_to_leave(self, slot: Slot, epoch: int) -> bool:
        """Whether a report of this epoch would be answered with `Leave`."""
        return (
            self.reigns
            and not (self.unread or self.words)
            and self.state.group.member(slot).epoch != epoch
        )

    def compact(self) -> None:
        """Only the last word of each kind and slot is left of what it has still to read."""
        kept = {wire.key(message): (offset, message) for offset, message in self.unread}
        self.unread = deque(sorted(kept.values(), key=lambda word: word[0]))
