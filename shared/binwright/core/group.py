"""What a controller knows of its group: every slot, and where every partition is.

All of it is folded from metadata partition 0, so any controller that reads it knows the same.
The rules are those of `docs/protocol.md`; the ones marked † there lose or double rows when broken.
"""

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, field, replace

from binwright.core.drift import Drift
from binwright.core.messages import (
    Accepted,
    Fence,
    Landed,
    Proposed,
    StartConsuming,
    Stopped,
)
from binwright.core.model import BytesPerSecond, Slot, TopicPartition
from binwright.core.monitors import Monitors
from binwright.core.rules import Rules

REVISIONS_PER_TERM = 1 << 20


@dataclass(frozen=True, slots=True)
class Member:
    """A slot, by what was said by it and of it; numbers are offsets in partition 0."""

    hello: int | None = None
    dead: int | None = None
    goodbye: int | None = None  # the epoch that left in good order
    ready: bool = False
    leaving: bool = False  # asked to end, and says so
    answered: int | None = None  # the term it last reported under
    heard_at: float = 0.0
    arrived_at: float = 0.0  # when its Hello was heard
    vain: int = 0  # how many of its epochs on end were declared dead before they were ready
    condemned_at: float | None = None  # when we last wrote Dead, not read back yet

    @property
    def epoch(self) -> int | None:
        """Return the living process: the last Hello, unless voided by a Dead or ended."""
        voided = self.hello is not None and self.dead is not None and self.dead > self.hello
        return None if voided or self.goodbye == self.hello else self.hello

    @property
    def left_nothing(self) -> bool:
        """Whether no write of this slot can be on its way: it never lived, or said Goodbye."""
        return self.goodbye == self.hello

    @property
    def usable(self) -> bool:
        """Whether it may be given partitions: alive, its claims stand, and it is to stay."""
        return self.claimed and not self.leaving

    @property
    def claimed(self) -> bool:
        """Whether it lives and its claims stand above all that its slot's older epochs wrote."""
        return self.epoch is not None and self.ready


@dataclass(frozen=True, slots=True)
class Unassigned:
    """Nobody reads it; whoever takes it must resolve where to begin."""


@dataclass(frozen=True, slots=True)
class Parked:
    """Nobody reads it; everything before `offset` has landed, or will by what its tails say."""

    offset: int


@dataclass(frozen=True, slots=True)
class Held:
    """One consumer reads it."""

    slot: Slot
    epoch: int


@dataclass(frozen=True, slots=True)
class Stopping:
    """A stop is out. Two owners can only be after a fault; then neither's offset is believed."""

    owners: Mapping[Slot, int]  # -> epoch
    revision: int
    sent_at: float
    twice: bool = False


@dataclass(frozen=True, slots=True)
class Starting:
    """A start is out."""

    slot: Slot
    epoch: int
    command: StartConsuming
    sent_at: float


@dataclass(frozen=True, slots=True)
class Tail:
    """A former owner's last write, still on its way: it reads no more, and will say `Landed`."""

    slot: Slot
    epoch: int
    revision: int  # of the stop


@dataclass(frozen=True, slots=True)
class Place:
    """Where a partition is, and whose late writes must be shut out or awaited.

    A debt is paid by the fence that a `Started` confirms or by the claim of the slot's newcomer.
    It stays owed through any number of heirs that die first (†). While there is a tail, whoever
    has the partition only reads ahead.
    """

    at: Unassigned | Parked | Held | Stopping | Starting
    owed: frozenset[Slot] = frozenset()
    tails: frozenset[Tail] = frozenset()

    @property
    def slot(self) -> Slot | None:
        """Return who has it, or had it last while a stop is out."""
        match self.at:
            case Held(slot=slot) | Starting(slot=slot):
                return slot
            case Stopping(owners=owners):
                return min(owners)
            case _:
                return None

    @property
    def free(self) -> bool:
        """Whether nobody reads it, so that it may be started."""
        return isinstance(self.at, Unassigned | Parked)

    @property
    def idle(self) -> bool:
        """Whether nobody reads it and nobody's rows of it are on their way."""
        return self.free and not self.tails


@dataclass(frozen=True, slots=True)
class Offer:
    """A plan that is shown and not carried out, or not yet."""

    plan: Proposed
    number: int | None = None  # its record's offset; None: not read back yet
    approved: bool = False


@dataclass(frozen=True, slots=True)
class Group:
    """Everything one reign knows."""

    rules: Rules
    controller: str  # the id in our Claim
    term: int | None = None
    members: Mapping[Slot, Member] = field(default_factory=dict)
    places: Mapping[TopicPartition, Place] = field(default_factory=dict)
    doubt: frozenset[Slot] = frozenset()  # owed by partitions not seen yet
    fenced: Mapping[tuple[Slot, str], int] = field(default_factory=dict)  # slot, topic -> number
    rates: Mapping[TopicPartition, BytesPerSecond] = field(default_factory=dict)
    there: Mapping[str, Container[int]] = field(default_factory=dict)  # as last measured
    monitors: Monitors = field(default_factory=Monitors)
    drift: Drift = field(default_factory=Drift)
    offer: Offer | None = None
    kept: Accepted | None = None  # the plan that was approved last; no targets: it is void
    measured_at: float | None = None
    ticked_at: float = 0.0
    revisions: int = 0

    def member(self, slot: Slot) -> Member:
        """Return what is known of a slot; of one never heard of, nothing."""
        return self.members.get(slot, Member())

    def loads(self) -> dict[Slot, BytesPerSecond]:
        """Return bytes/s per consumer, as assigned now."""
        loads: dict[Slot, BytesPerSecond] = {}
        for partition, place in self.places.items():
            if (slot := place.slot) is not None:
                rate = self.rates.get(partition, 0.0)
                loads[slot] = BytesPerSecond(loads.get(slot, 0.0) + rate)
        return loads

    def assignment(self) -> dict[TopicPartition, Slot]:
        """Return who has what, moves in flight counted where they are."""
        return {p: slot for p, place in self.places.items() if (slot := place.slot) is not None}

    def gone(self, partition: TopicPartition) -> bool:
        """Whether its topic was measured without it; a topic not measured yet proves nothing."""
        there = self.there.get(partition.topic)
        return there is not None and partition.partition not in there

    def next_revision(self) -> tuple["Group", int]:
        """Draw a revision that no other term can draw."""
        if self.term is None:
            raise ValueError("a controller without a term commands nothing")
        number = self.revisions + 1
        return replace(self, revisions=number), self.term * REVISIONS_PER_TERM + number


def place_all(group: Group, places: Mapping[TopicPartition, Place]) -> Group:
    """Return the group with these places changed."""
    return replace(group, places={**group.places, **places})


def forget(group: Group, partitions: Iterable[TopicPartition]) -> Group:
    """Drop partitions that left the group; what they owed, their namesakes will owe."""
    away = set(partitions)
    owed = frozenset().union(*(group.places[p].owed for p in away))
    places = {p: place for p, place in group.places.items() if p not in away}
    return replace(group, places=places, doubt=group.doubt | owed)


def lose(group: Group, slot: Slot) -> Group:
    """Take from a slot whatever its older epochs had, without their word: it is owed a fence."""
    changed: dict[TopicPartition, Place] = {}
    for partition, place in group.places.items():
        match place.at:
            case Held() | Starting() if place.slot == slot:
                lost = replace(place, at=Unassigned(), owed=place.owed | {slot})
            case Stopping() as at if slot in at.owners:
                rest = {s: e for s, e in at.owners.items() if s != slot}
                left = replace(at, owners=rest, twice=True) if rest else Unassigned()
                lost = replace(place, at=left, owed=place.owed | {slot})
            case _:
                lost = place
        if any(tail.slot == slot for tail in lost.tails):
            lost = _without_tail(replace(lost, owed=lost.owed | {slot}), slot)
        if lost is not place:
            changed[partition] = lost
    return place_all(group, changed)


def _without_tail(place: Place, slot: Slot) -> Place:
    """A tail's owner is gone: how far it landed is for the table to say."""
    match place.at:
        case Parked():
            at: Unassigned | Stopping = Unassigned()
        case Stopping():
            at = replace(place.at, twice=True)
        case Unassigned():
            at = place.at
        case _:
            raise ValueError("whoever read ahead must be stopped first")
    return replace(place, at=at, tails=frozenset(t for t in place.tails if t.slot != slot))


def readers_ahead(group: Group, slot: Slot) -> dict[Slot, list[TopicPartition]]:
    """Return who reads ahead of a write of `slot`, and what."""
    found: dict[Slot, list[TopicPartition]] = {}
    for partition, place in sorted(group.places.items()):
        if isinstance(place.at, Held | Starting) and any(t.slot == slot for t in place.tails):
            found.setdefault(place.at.slot, []).append(partition)
    return found


def let_go(group: Group, slot: Slot, landed: Mapping[TopicPartition, int]) -> Group:
    """Take a slot's partitions at its own word: a settled Goodbye owes nothing."""
    changed: dict[TopicPartition, Place] = {}
    for partition, place in group.places.items():
        match place.at:
            case Held() | Starting() if place.slot == slot:
                offset = landed.get(partition)
                at = Unassigned() if offset is None else Parked(offset)
                changed[partition] = replace(place, at=at)
            case Stopping() as at if slot in at.owners:
                changed[partition] = _answered(place, at, slot, landed.get(partition))
            case _:
                pass
    return place_all(group, changed)


def _answered(place: Place, at: Stopping, slot: Slot, offset: int | None) -> Place:
    """One owner of a stopping partition has let go."""
    rest = {s: e for s, e in at.owners.items() if s != slot}
    if rest:
        return replace(place, at=replace(at, owners=rest))
    if offset is None or at.twice:
        return replace(place, at=Unassigned())
    return replace(place, at=Parked(offset))


def stopped(group: Group, message: Stopped) -> Group:
    """Take the answer to a stop; what does not match the command that is out is dropped (†)."""
    slot, tail = message.slot, Tail(message.slot, message.epoch, message.revision)
    changed: dict[TopicPartition, Place] = {}
    for partition, offset in message.next.items():
        place = group.places.get(partition)
        if place is None or not isinstance(place.at, Stopping) or slot not in place.at.owners:
            continue
        if place.at.revision == message.revision:
            tails = place.tails | {tail} if partition in message.unsettled else place.tails
            changed[partition] = _answered(replace(place, tails=tails), place.at, slot, offset)
    return place_all(group, changed)


def landed(group: Group, message: Landed) -> tuple[Group, dict[Slot, dict[TopicPartition, int]]]:
    """Take the word that a last write has landed; one that nobody waits for is dropped.

    Returns:
        Who read ahead, and may land now: heir -> partition -> from where.
    """
    tail = Tail(message.slot, message.epoch, message.revision)
    changed: dict[TopicPartition, Place] = {}
    heirs: dict[Slot, dict[TopicPartition, int]] = {}
    for partition, offset in sorted(message.landed.items()):
        place = group.places.get(partition)
        if place is None or tail not in place.tails:
            continue
        changed[partition] = settled = replace(place, tails=place.tails - {tail})
        if isinstance(place.at, Held | Starting) and not settled.tails:
            heirs.setdefault(place.at.slot, {})[partition] = offset
    return place_all(group, changed), heirs


def started(
    group: Group, slot: Slot, revision: int, partitions: Iterable[TopicPartition]
) -> tuple[Group, frozenset[TopicPartition]]:
    """Take the answer to a start; return the partitions that it was the answer for."""
    changed = {
        partition: replace(place, at=Held(slot, place.at.epoch))
        for partition in partitions
        if (place := group.places.get(partition)) is not None
        and isinstance(place.at, Starting)
        and place.at.slot == slot
        and place.at.command.revision == revision
    }
    return place_all(group, changed), frozenset(changed)


def pay(group: Group, slot: Slot, topic: str | None = None) -> Group:
    """Strike a slot's debt: for one topic's table by a fence, for all by its newcomer's claims."""
    changed = {
        partition: replace(place, owed=place.owed - {slot})
        for partition, place in group.places.items()
        if slot in place.owed and (topic is None or partition.topic == topic)
    }
    doubt = group.doubt - {slot} if topic is None else group.doubt
    return replace(place_all(group, changed), doubt=doubt)


def debt(group: Group, topic: str) -> frozenset[Slot]:
    """Return the slots that a partition never seen in this reign must be fenced from."""
    return frozenset(
        slot
        for slot in group.doubt
        if (member := group.member(slot)).epoch is not None
        or group.fenced.get((slot, topic), -1) < (member.dead or 0)
    )


def fences(group: Group, owed: Iterable[Slot]) -> tuple[Fence, ...]:
    """Return what a start must raise: above all that is over, never above a living epoch (†).

    So a newcomer that is not ready yet is neither waited for nor hurt.
    """
    raised = []
    for slot in sorted(owed):
        member = group.member(slot)
        last = member.dead if member.epoch is None else member.epoch - 1
        if last is not None and last >= 0:  # else nobody lived before
            raised.append(Fence(slot=slot, number=last))
    return tuple(raised)
