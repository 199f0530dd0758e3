"""One partition that several consumers stage: parts are handed out, and announced in order.

Pure. The partition's owner alone announces. It divides the offsets behind its position into parts,
which the consumers of the partition stage at the same time, itself among them. What they have
staged is announced in the order of offsets, each offset once (†), so that writers of tables, and a
next owner, see what one reader would have left. A part whose helper is late or gone is staged by
the owner, under another number: what comes of the first one later counts no more (†).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from binwright.protocol.landing import OffsetRange, Staged
from binwright.protocol.model import Slot

PART_S = 2.0
"""A part is what its consumer stages in this time, as far as that is there."""
LEAST_S = 0.5
"""A part that would take the owner less waits for more records."""
PATIENCE_S = 10.0
"""A consumer that has staged nothing of its part for so long does not get on with it."""
REST_S = 10.0
"""For so long a helper that did not get on is given no part."""
MOST_AHEAD = 4
"""Parts for each consumer that may be staged, or under way, and are not announced."""
BEHIND_S = 3.0
"""A partition is handed out in parts while its owner needs longer than this for what is left."""
NEW_SPEED = 0.5
"""The weight of the last part in a consumer's speed."""


class Part(NamedTuple):
    """What is left of a range that a consumer stages."""

    number: int  # never used twice by a process
    slot: Slot
    range: OffsetRange
    since: float  # when it was handed out, or got on; seconds, monotonic


@dataclass(frozen=True, slots=True)
class Piece:
    """Files with all that is in a range, one for each table of the topic."""

    slot: Slot  # who staged it
    range: OffsetRange
    rows: int  # in each file
    files: tuple[Staged, ...]
    at: float  # when the owner learnt of it; seconds, monotonic


@dataclass(frozen=True, slots=True)
class Split:
    """A partition while it is handed out in parts; all of it between `next` and `frontier` is.

    Each of these offsets is in one part, in one piece, or returned.
    """

    slots: tuple[Slot, ...]  # the owner, then its helpers
    next: int  # what is before it is announced
    frontier: int  # what is behind it is not handed out
    speed: float  # of the owner before; and of who has staged no part yet, offsets/s
    numbers: int  # of the last part
    parts: tuple[Part, ...] = ()
    returned: tuple[OffsetRange, ...] = ()  # the owner stages them, by offset
    pieces: Mapping[int, Piece] = field(default_factory=dict)  # first offset -> not announced yet
    speeds: Mapping[Slot, float] = field(default_factory=dict)  # offsets/s
    resting: Mapping[Slot, float] = field(default_factory=dict)  # until when; seconds, monotonic
    failed_before: int | None = None  # the owner could not stage something before this offset

    def speed_of(self, slot: Slot) -> float:
        """Return how fast a consumer stages this partition, offsets/s, above 0."""
        return max(self.speeds.get(slot, self.speed), 1.0)

    @property
    def least(self) -> int:
        """Return how many offsets a part has at least."""
        return max(1, round(self.speed * LEAST_S))

    @property
    def owner(self) -> Slot:
        """Return the consumer that owns the partition."""
        return self.slots[0]


def is_behind(position: int, end: int, speed: float) -> bool:
    """Whether a reader gets on, and needs long for what is left.

    Args:
        position: The offset that it reads next.
        end: The end of the log.
        speed: Offsets/s that it has read lately.
    """
    return 0 < BEHIND_S * speed < end - position


# --- handing out --------------------------------------------------------------------------------


def hand_out(split: Split, end: int, now: float) -> tuple[Split, tuple[Part, ...]]:
    """Give a part to each consumer that has none; the owner's may be one that was returned.

    Args:
        split: The partition.
        end: The end of its log.
        now: Seconds, monotonic.
    """
    new: list[Part] = []
    for slot in split.slots:
        busy = any(part.slot == slot for part in split.parts)
        if busy or split.failed_before is not None or now < split.resting.get(slot, now):
            continue
        if slot == split.owner and split.returned:
            wanted, left = split.returned[0], split.returned[1:]
            split = replace(split, returned=left)
        else:
            first, size = split.frontier, _size(split, slot, end)
            if not size:
                continue
            wanted = OffsetRange(first, first + size)
            split = replace(split, frontier=wanted.next)
        part = Part(split.numbers + 1, slot, wanted, now)
        split = replace(split, numbers=part.number, parts=(*split.parts, part))
        new.append(part)
    return split, tuple(new)


def _size(split: Split, slot: Slot, end: int) -> int:
    """Return how many offsets the consumer is to stage; 0: none for now."""
    ahead = len(split.parts) + len(split.pieces) + len(split.returned)
    if len(split.slots) == 1 or ahead >= MOST_AHEAD * len(split.slots):
        return 0
    share = _share(split, end)
    return min(share, max(split.least, round(split.speed_of(slot) * PART_S))) if share else 0


def _share(split: Split, end: int) -> int:
    """Return an equal share of what is left, so that it serves all consumers; 0: it is too little.

    A negative number of offsets is left where a log was cut.
    """
    share = (end - split.frontier) // len(split.slots)
    return share if share >= split.least else 0


def has_ended(split: Split, end: int) -> bool:
    """Whether all that was handed out is announced, and what is left is little for the owner."""
    alone = len(split.slots) == 1
    return split.next == split.frontier and (alone or not _share(split, end))


# --- what comes of it ---------------------------------------------------------------------------


def take_piece(split: Split, number: int, piece: Piece) -> Split:
    """Keep the next piece of a part; what is of no part any more changes nothing (†).

    A piece without offsets says that its consumer cannot stage the part.
    """
    part = next((each for each in split.parts if each.number == number), None)
    first, end = piece.range
    if part is None or piece.slot != part.slot or first != part.range.first:
        return split
    if end <= first or end > part.range.next:
        return _give_back(split, part, piece.at)
    others = tuple(each for each in split.parts if each is not part)
    if end < part.range.next:
        left = part._replace(range=OffsetRange(end, part.range.next), since=piece.at)
        others = (*others, left)
    speed = (end - first) / max(piece.at - part.since, 1e-3)
    speed = NEW_SPEED * speed + (1 - NEW_SPEED) * split.speed_of(part.slot)
    return replace(
        split,
        parts=others,
        pieces={**split.pieces, first: piece},
        speeds={**split.speeds, part.slot: speed},
    )


def _give_back(split: Split, part: Part, now: float) -> Split:
    """Return a part to the owner; if it was the owner's, the split has failed there."""
    parts = tuple(each for each in split.parts if each is not part)
    if part.slot == split.owner:
        return replace(split, parts=parts, failed_before=part.range.next)
    returned = tuple(sorted((*split.returned, part.range)))
    resting = {**split.resting, part.slot: now + REST_S}
    return replace(split, parts=parts, returned=returned, resting=resting)


def return_overdue(split: Split, now: float) -> Split:
    """Return the parts whose consumers have not got on for a while."""
    for part in split.parts:
        if now - part.since >= PATIENCE_S:
            split = _give_back(split, part, now)
    return split


def with_slots(split: Split, slots: tuple[Slot, ...], now: float) -> Split:
    """Go on with other helpers; parts of those that are none any more are returned."""
    for part in split.parts:
        if part.slot not in slots:
            split = _give_back(split, part, now)
    return replace(split, slots=slots)


def next_piece(split: Split) -> Piece | None:
    """Return what is announced next: the piece that joins on (†); None: it is not there yet."""
    return split.pieces.get(split.next)


def announced(split: Split, piece: Piece) -> Split:
    """Advance past an announced piece."""
    pieces = {first: each for first, each in split.pieces.items() if each is not piece}
    return replace(split, next=piece.range.next, pieces=pieces)
