"""What is explored: everything kept, and one rule left out at a time."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from binwright.core.model import Slot

from .bounds import KINDS, Bounds
from .explore import Limits
from .steps import steps, take
from .universe import Step, Universe, words


@dataclass(frozen=True, slots=True)
class Case:
    """A bounded world, and how far it is explored."""

    bounds: Bounds
    limits: Limits
    owners: tuple[int, ...] = ()  # of the partitions, in order; slot 0 has the others
    after: tuple[str, ...] = ()  # steps that are taken before, by words that tell them

    def first(self) -> Universe:
        """Return the world as it is before anything goes wrong."""
        world = Universe(self.bounds)
        owners = dict.fromkeys(sorted(world.produced), Slot(0))
        owners |= dict(zip(owners, map(Slot, self.owners), strict=False))
        world.begin(owners)
        for said in self.after:
            world = take(world, told(world, said))
        return world


def told(world: Universe, said: str) -> Step:
    """Return the first step of which these words tell."""
    found = [step for step in steps(world) if said in words(step)]
    if not found:
        raise LookupError(f"{said!r} is none of {[words(step) for step in steps(world)]}")
    return found[0]


def kinds(text: str) -> frozenset[str]:
    return frozenset(kind.strip() for kind in text.split(",") if kind)


ONE = Bounds(faults=1)
TWO = Bounds(faults=2)
PAIR = Bounds(topics={"a": 2}, faults=1)


def broken(
    text: str,
    base: Bounds = ONE,
    *owners: int,
    after: tuple[str, ...] = (),
    live: int = 0,
    states: int = 20_000,
    **change: object,
) -> Case:
    bounds = replace(base, kinds=kinds(text), **change)  # type: ignore[arg-type]
    return Case(bounds, Limits(states=states, settle_every=live), owners, after)


WRITING = ("slot 0/2 writes a-0",)
ORPHAN = (*WRITING, "slot 0/2 crashes")
NEWCOMER = (
    *ORPHAN,
    "hears nothing of slot 0",
    "the fleet starts slot 0",
    "slot 0/8 is asked to end",
)
FROZEN = ("slot 0/2 writes a-0 0..1", "slot 0/2 freezes")
FENCED = ("hears nothing of slot 0", "plans {'a-0': 1", "slot 1/3 obeys Start", "slot 1/3 fences")
MOVING = (
    "slot 0/2 writes a-0 0..1",
    "plans {'a-0': 1",
    "slot 0/2 obeys Stop",
    "slot 1/3 obeys Start",
)
REPORTING = (
    "slot 0/2 writes a-0",
    "plans {'a-0': 1",
    "says Tell",
    "slot 0/2 obeys Stop",
    "slot 0/2 does Reply",
    "slot 0/2 is asked to leave",
)

ONE_LANDED_IS_GONE = (
    "slot 0/2 writes a-0 0..1",
    "plans {'a-0': 1, 'a-1': 0}",
    "slot 0/2 obeys Stop",
    "slot 1/3 obeys Start",
    "gives up its plan",
    "plans {'a-0': 1, 'a-1': 1}",
    "controller 1 (Manage) is paused",
    "table",
    "slot 0/2 takes",
    "slot 0/2 writes a-1",
    "slot 0/2 obeys Stop",
    "table",
    "slot 0/2 takes",
    "partition 0 is compacted",
)
"""Two partitions are read ahead, of one slot's two last writes; of its two Landed one is kept."""

BROKEN: Mapping[str, Case] = {
    "no_term_check": broken("controller pause"),
    "start_resets": broken("again"),
    "report_overtakes": broken("leave", lazy=True, after=REPORTING),
    "bye_in_flight": broken("goodbye"),
    "bye_before_ready": broken("crash,goodbye,controller crash", faults=3, after=NEWCOMER, moves=0),
    "report_hides_unsettled": broken("controller crash"),
    "stopped_hides_unsettled": broken(""),
    "lands_what_is_read_ahead": broken("", rows=2, sizes=True),
    "read_then_fence": broken("crash", moves=0, after=ORPHAN),
    "lost_fence_is_fine": broken("freeze", moves=0, rows=2, sizes=True, after=FROZEN),
    "lost_claim_is_fine": broken("freeze", moves=0, rows=2, sizes=True, after=FROZEN),
    "conflict_is_landed": broken("freeze", moves=0, hints=True, after=(*FROZEN, *FENCED)),
    "skip_is_landed": broken(
        "freeze",
        moves=0,
        hints=True,
        after=("slot 0/2 freezes", *FENCED, "table"),
    ),
    "retry_new_version": broken("unclear"),
    "stamp_names_read_ahead": broken("crash", PAIR, 0, 1, after=MOVING),
    "hint_names_read_ahead": broken("crash", hints=True, after=MOVING),
    "hint_truth": broken("crash", hints=True, moves=0),
    "stamp_over_hint": broken(
        "crash",
        PAIR,
        hints=True,
        sizes=True,
        after=(
            "slot 0/2 writes a-1",
            "plans {'a-0': 1",
            "slot 0/2 obeys Stop",
            "slot 1/3 obeys Start",
        ),
    ),
    "old_epoch_reports": broken(
        "freeze,controller crash",
        TWO,
        after=("slot 0/2 freezes", "controller 1 (Sentinel) crashes"),
    ),
    "old_answers": broken(
        "freeze",
        moves=3,
        after=(
            "plans {'a-0': 1",
            "slot 0/2 freezes",
            "hears nothing of slot 0",
            "slot 1/3 obeys Start",
            "slot 1/3 fences",
            "table",
            "slot 1/3 takes",
            "slot 1/3 fences",
            "the fleet starts slot 0",
            "claims",
            "table",
            "takes the outcome",
            "plans {'a-0': 0",
            "slot 1/3 obeys Stop",
            "obeys Start",
        ),
    ),
    "voided_not_told": broken(
        "suspect,controller crash",
        TWO,
        lazy=True,
        live=1,
        after=(
            "hears nothing of slot 0",
            "says Publish(message=Dead",
            "controller 1 (Sentinel) crashes",
            "another controller claims",
        ),
    ),
    "goodbye_said_again": broken(
        "doubled,goodbye,astray",
        faults=3,
        lazy=True,
        after=(
            "slot 0/2 is asked to end",
            "slot 0/2 does, and will again",
            "slot 0/2 is lost sight of",
            "controller 1 (Sentinel) reads",
            "the fleet starts slot 0",
        ),
    ),
    "unready_pays": broken("crash,controller crash", TWO, moves=0, after=ORPHAN),
    "fence_above_all": broken("crash", live=1, moves=0),
    "fences_only_the_dead": broken("crash", moves=0, after=ORPHAN),
    "owes_only_the_last": broken(
        "crash",
        TWO,
        moves=0,
        after=(*ORPHAN, "hears nothing of slot 0", "plans {'a-0': 1", "slot 1/3 crashes"),
    ),
    "owes_nothing": broken("crash", moves=0),
    "fences_with_offset": broken("crash", moves=0),
    "pays_every_death": broken(
        "crash,overdue",
        PAIR,
        0,
        1,
        faults=3,
        after=(
            "slot 0/2 crashes",
            "hears nothing of slot 0",
            "plans {'a-1': 1, 'a-0': 1}",
            "slot 1/3 obeys Start",
            "slot 1/3 fences",
            "the fleet starts slot 0",
            "claims",
            "under binwright/g/0 9",
            "slot 0/9 takes",
            "gives up its plan",
            "plans {'a-0': 1, 'a-1': 0}",
            "slot 1/3 obeys Stop",
            "slot 0/9 obeys Start",
            "slot 0/9 writes a-1",
            "slot 0/9 crashes",
            "hears nothing of slot 0",
        ),
    ),
    "never_ahead": broken(""),
    "resolves_with_a_tail": broken("crash"),
    "dead_writer_heir_lands": broken("crash"),
    "asks_only_the_fleet": broken("crash,controller crash", TWO, moves=0, after=ORPHAN),
    "lost_landed_not_missed": broken(
        "controller pause,compacted,overdue",
        PAIR,
        faults=3,
        moves=2,
        rows=2,
        sizes=True,
        after=ONE_LANDED_IS_GONE,
        live=1,
    ),
    "reads_from_claim": broken(
        "freeze,controller crash",
        TWO,
        moves=0,
        after=(
            "slot 0/2 freezes",
            "controller 1 (Sentinel) crashes",
            "another controller claims",
            "slot 1/3 obeys StateQuery",
            "slot 1/3 obeys Leave",
        ),
    ),
    "awaits_lost_landed": broken("controller crash", live=1, rows=2, sizes=True, after=MOVING),
}
"""A rule left out each: here the explorer must find a fault."""

UNSEEN: Mapping[str, Case] = {
    "back_to_its_writer": broken("crash", live=1),
    "fences_of_an_earlier_start": broken("crash,controller crash", TWO),
    "old_epoch_answers": broken("freeze"),
    "old_revision_stopped": broken("again,doubled", TWO),
    "old_revision_started": broken("again,doubled", TWO),
    "old_revision_landed": broken("again,doubled", TWO, moves=2),
    "ignores_deposed_dead": broken("controller pause,suspect,rival", TWO),
    "held_twice_believed": broken("freeze,controller crash", TWO),
    "moves_on_with_a_tail": broken("", moves=2, live=1),
    "repeats_it_all": broken("again", PAIR),
}
"""Rules that nothing found so far needs: another keeps what they guard."""


def kept(
    text: str,
    states: int = 15_000,
    settle: int = 50,
    after: tuple[str, ...] = (),
    **change: object,
) -> Case:
    bounds = Bounds(kinds=kinds(text), **change)  # type: ignore[arg-type]
    return Case(bounds, Limits(states=states, settle_every=settle), after=after)


EVERY = ",".join(sorted(KINDS - {"compacted"}))
ONCE = (
    "crash,unclear,suspect,rival,controller crash,leave,goodbye,again,lost,doubled,astray,"
    "spark,broker,controller pause,overdue"
)
"""Every fault whose space is small enough to be exhausted with one of it."""

HOLDS: Mapping[str, Case] = {
    "fault-free": kept("", topics={"a": 2}, moves=2, settle=1),
    **{f"one {kind}": kept(kind, faults=1) for kind in ONCE.split(",")},
    "one freeze": kept("freeze", faults=1, moves=0),
    "2 x 2 x 2": kept(EVERY, 40_000, topics={"a": 2}, faults=1),
    "2 x 2 x 2, two faults": kept(EVERY, 40_000, topics={"a": 2}, faults=2),
    "two crashes": kept("crash", faults=2, moves=0),
    "two take-overs": kept("rival,controller crash,controller pause", faults=2, moves=0),
    "a lost query": kept("lost,controller crash", faults=2, moves=0),
    "two tables": kept("crash,freeze,unclear,goodbye", topics={"a": 1, "b": 1}, faults=1),
    "many rows": kept("crash,unclear,spark", topics={"a": 2}, rows=3, sizes=True, faults=1),
    "hints": kept("crash,unclear,goodbye", topics={"a": 2}, hints=True, faults=1),
    "spark and broker": kept("spark,broker,crash", topics={"a": 2}, faults=2),
    "word by word": kept("crash,controller crash,doubled,lost", lazy=True, faults=1),
    "compacted history": kept("crash,controller crash,goodbye,astray", faults=2, compacted=True),
    "compacted Landed": kept(
        "controller pause,compacted,overdue",
        topics={"a": 2},
        faults=3,
        moves=2,
        rows=2,
        sizes=True,
        after=ONE_LANDED_IS_GONE,
        settle=1,
    ),
    "compacted unread": kept("controller pause,compacted,crash", faults=2),
}
