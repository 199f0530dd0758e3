"""How a partition is handed out in parts, and announced as if one consumer had read it."""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, replace

from binwright.consumer.decide import split as decide
from binwright.consumer.decide.split import PATIENCE_S, REST_S, Part, Piece, Split
from binwright.protocol.landing import OffsetRange
from binwright.protocol.model import Slot

OWN, HELPER, OTHER = Slot(0), Slot(1), Slot(2)
FRESH = Split((OWN, HELPER), 100, 100, speed=10.0, numbers=0)


def piece(part: Part, end: int | None = None, at: float = 1.0) -> Piece:
    """Return a piece from a part's beginning to `end`, or to that of the part."""
    last = part.range.next if end is None else end
    return Piece(part.slot, OffsetRange(part.range.first, last), 0, (), at)


def handed_out(end: int = 1_000) -> tuple[Split, Part, Part]:
    split, (own, other) = decide.hand_out(FRESH, end, 0.0)
    return split, own, other


def test_a_reader_is_behind_when_it_needs_more_than_three_seconds() -> None:
    assert decide.is_behind(0, 31, 10.0)
    assert not decide.is_behind(0, 30, 10.0)
    assert not decide.is_behind(0, 4, 0.0), "it does not get on at all"


def test_each_consumer_gets_what_it_stages_in_two_seconds() -> None:
    split, own, other = handed_out()
    assert (own.slot, own.range) == (OWN, (100, 120))
    assert (other.slot, other.range) == (HELPER, (120, 140))
    assert own.number != other.number
    assert decide.hand_out(split, 1_000, 0.0) == (split, ())


def test_what_is_left_is_shared_and_little_waits() -> None:
    _, (own, other) = decide.hand_out(FRESH, 120, 0.0)
    assert (own.range, other.range) == ((100, 110), (110, 115))
    assert decide.hand_out(FRESH, 108, 0.0) == (FRESH, ())
    assert decide.has_ended(FRESH, 108)
    assert not decide.has_ended(FRESH, 111)


def test_nothing_new_is_handed_out_without_helpers() -> None:
    split, own, other = handed_out()
    split = decide.with_slots(split, (OWN,), 1.0)
    assert split.returned == (other.range,)
    split = decide.take_piece(split, own.number, piece(own))
    split, (again,) = decide.hand_out(split, 1_000, 1.0)
    assert (again.slot, again.range) == (OWN, other.range)
    split = decide.take_piece(split, again.number, piece(again))
    while (found := decide.next_piece(split)) is not None:
        assert not decide.has_ended(split, 1_000)
        split = decide.announced(split, found)
    assert decide.hand_out(split, 1_000, 1.0) == (split, ())
    assert decide.has_ended(split, 1_000)


def test_pieces_are_announced_in_the_order_of_offsets() -> None:
    split, own, other = handed_out()
    split = decide.take_piece(split, other.number, piece(other))
    assert decide.next_piece(split) is None
    split = decide.take_piece(split, own.number, piece(own, end=110))
    split = decide.announced(split, piece(own, end=110))
    assert split.next == 110
    assert decide.next_piece(split) is None


def test_a_fast_consumer_gets_more() -> None:
    split, _, other = handed_out()
    split = decide.take_piece(split, other.number, piece(other, at=0.5))  # 40/s
    split, (more,) = decide.hand_out(split, 1_000, 0.5)
    assert more.range == (140, 190)


def test_so_many_parts_wait_for_an_earlier_one_and_no_more() -> None:
    split, _, other = handed_out()
    for now in range(2, 14, 2):
        split = decide.take_piece(split, other.number, piece(other, at=now))
        split, (other,) = decide.hand_out(split, 1_000, now)
    split = decide.take_piece(split, other.number, piece(other, at=14.0))
    assert decide.hand_out(split, 1_000, 14.0) == (split, ())


def test_a_helper_that_is_overdue_loses_its_part_to_the_owner_and_rests() -> None:
    split, own, other = handed_out()
    split = decide.take_piece(split, own.number, piece(own))
    assert decide.return_overdue(split, PATIENCE_S - 0.1) == split
    split = decide.return_overdue(split, PATIENCE_S)
    assert split.returned == (other.range,)
    late = decide.take_piece(split, other.number, piece(other))
    assert late == split, "the answer to it comes too late"
    split, (own,) = decide.hand_out(split, 1_000, PATIENCE_S)
    assert (own.slot, own.range) == (OWN, other.range)
    assert decide.take_piece(split, other.number, piece(other)) == split
    split = decide.take_piece(split, own.number, piece(own, at=PATIENCE_S + 1.0))
    split, (own, again) = decide.hand_out(split, 1_000, PATIENCE_S + REST_S)
    assert (own.slot, again.slot) == (OWN, HELPER)


def test_a_part_that_gets_on_is_not_overdue() -> None:
    split, _, other = handed_out()
    split = decide.take_piece(split, other.number, piece(other, end=130, at=9.0))
    split = decide.return_overdue(split, PATIENCE_S)
    assert [part.range for part in split.parts] == [(130, 140)]


def test_a_piece_without_offsets_gives_back_what_is_left() -> None:
    split, _, other = handed_out()
    split = decide.take_piece(split, other.number, piece(other, end=130))
    left = other._replace(range=OffsetRange(130, 140))
    split = decide.take_piece(split, other.number, piece(left, end=130))
    assert split.returned == ((130, 140),)


def test_a_piece_beyond_its_part_gives_it_back() -> None:
    split, _, other = handed_out()
    split = decide.take_piece(split, other.number, piece(other, end=141))
    assert split.returned == (other.range,)
    assert not split.pieces


def test_a_piece_of_another_consumer_or_place_changes_nothing() -> None:
    split, _, other = handed_out()
    foreign = replace(piece(other), slot=OTHER)
    assert decide.take_piece(split, other.number, foreign) == split
    later = replace(piece(other), range=OffsetRange(121, 140))
    assert decide.take_piece(split, other.number, later) == split


def test_what_the_owner_cannot_stage_ends_the_split_there() -> None:
    split, own, _ = handed_out()
    split = decide.take_piece(split, own.number, piece(own, end=100))
    assert split.failed_before == 120
    assert decide.hand_out(split, 1_000, 1.0) == (split, ())


# --- every order of steps -------------------------------------------------------------------------


@dataclass(frozen=True)
class World:
    """A partition of five offsets, what its consumers work at, and what was announced."""

    split: Split
    now: float = 0.0
    works: tuple[Part, ...] = ()  # under way at consumers, also those that count no more
    announced: tuple[OffsetRange, ...] = ()
    faults: int = 2


def steps(world: World) -> Iterator[World]:
    """Yield what may come next."""
    split, parts = decide.hand_out(world.split, 5, world.now)
    if parts:
        yield replace(world, split=split, works=(*world.works, *parts))
    for work in world.works:
        left = tuple(each for each in world.works if each is not work)
        for end in range(work.range.first + 1, work.range.next + 1):
            rest = work._replace(range=OffsetRange(end, work.range.next))
            took = decide.take_piece(world.split, work.number, piece(work, end, world.now + 1.0))
            on = (*left, rest) if end < work.range.next else left
            yield replace(world, split=took, works=tuple(sorted(on)))
            if world.faults:  # the answer is read twice
                twice = replace(world, split=took, faults=world.faults - 1)
                yield replace(twice, works=(*sorted(on), work))
        if world.faults and work.slot != OWN:
            refused = piece(work, work.range.first, world.now)
            took = decide.take_piece(world.split, work.number, refused)
            yield replace(world, split=took, works=left, faults=world.faults - 1)
            yield replace(world, works=left, faults=world.faults - 1)  # it dies
    if world.faults:
        late = world.now + PATIENCE_S
        split = decide.return_overdue(world.split, late)
        if split.failed_before is None:
            yield replace(world, split=split, now=late, faults=world.faults - 1)
        for slots in ((OWN,), (OWN, HELPER)):
            split = decide.with_slots(world.split, slots, world.now)
            yield replace(world, split=split, faults=world.faults - 1)
    if (found := decide.next_piece(world.split)) is not None:
        split = decide.announced(world.split, found)
        yield replace(world, split=split, announced=(*world.announced, found.range))


def check(world: World) -> None:
    """Each offset before `next` was announced once, in order; each behind it is in one place."""
    split, at = world.split, 0
    for first, end in world.announced:
        assert first == at
        at = end
    assert at == split.next
    places = [part.range for part in split.parts] + [*split.returned]
    places += [each.range for each in split.pieces.values()]
    offsets = sorted(offset for first, end in places for offset in range(first, end))
    assert offsets == list(range(split.next, split.frontier))


def key(world: World) -> object:
    split = world.split
    pieces = tuple(sorted((each.range, each.slot) for each in split.pieces.values()))
    resting = tuple(sorted(s for s, until in split.resting.items() if until > world.now))
    works = tuple((w.number, w.slot, w.range) for w in world.works)
    parts = tuple((p.number, p.slot, p.range, world.now - p.since) for p in split.parts)
    placed = split.next, split.frontier, parts, split.returned, pieces
    return placed, resting, split.slots, works, world.faults, tuple(world.announced)


def test_in_every_order_of_steps_each_offset_is_announced_once_and_in_order() -> None:
    """Answers that are late, doubled or lost, helpers that come, go and refuse: two of these."""
    first = World(Split((OWN, HELPER), 0, 0, speed=1.0, numbers=0))
    seen, waiting = {key(first)}, deque([first])
    ends = 0
    while waiting and len(seen) < 20_000:
        world = waiting.popleft()
        check(world)
        ends += world.split.next == 4  # too little for two is left
        for after in steps(world):
            if key(after) not in seen:
                seen.add(key(after))
                waiting.append(after)
    assert ends
