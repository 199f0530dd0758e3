"""From a packing's answer to a plan: what changes, whether it is worth it, and why."""

from collections.abc import Mapping
from dataclasses import dataclass

from binwright.core.model import Assignment, BytesPerSecond, Rates, Slot, TopicPartition
from binwright.core.score import moved, rscore

WORTH = 0.5
"""Share of consumers a plan must save per share of bytes it disturbs, unless it is forced."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """The difference of two assignments; mappings and tuples are sorted."""

    moves: Mapping[TopicPartition, tuple[Slot, Slot]]  # -> (from, to)
    first_starts: Mapping[TopicPartition, Slot]  # nobody reads these yet -> to
    departures: Mapping[TopicPartition, Slot]  # nobody shall read these any more -> from
    created: tuple[Slot, ...]  # hold nothing before
    retired: tuple[Slot, ...]  # hold nothing afterwards

    def __bool__(self) -> bool:
        """Tell whether anything changes."""
        return bool(self.moves or self.first_starts or self.departures)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan(Changes):
    """Changes that go ahead."""

    target: Assignment
    rscore: float  # bytes/s moved, in units of capacity (eq. 11)
    reasons: tuple[str, ...]  # what forces the plan or what it earns, then what it costs


@dataclass(frozen=True, slots=True)
class Rejected:
    """Why things stay as they are, in words and numbers."""

    reason: str


def diff(current: Assignment, target: Assignment) -> Changes:
    """Return what leads from `current` to `target`."""
    before, after = set(current.values()), set(target.values())
    return Changes(
        moves={p: (current[p], target[p]) for p in moved(current, target)},
        first_starts={p: target[p] for p in sorted(target.keys() - current.keys())},
        departures={p: current[p] for p in sorted(current.keys() - target.keys())},
        created=tuple(sorted(after - before)),
        retired=tuple(sorted(before - after)),
    )


def weigh(
    rates: Rates,
    capacity: BytesPerSecond,
    current: Assignment,
    target: Assignment,
    forced_by: tuple[str, ...],
) -> Plan | Rejected:
    """Decide whether to go from `current` to `target`.

    A forced plan goes through. Any other must earn its moves: the share of consumers it saves is
    at least half the share of bytes it disturbs. Partitions that nobody reads are force enough.

    Args:
        rates: Bytes/s, each finite and >= 0; holds every partition of `target`.
        capacity: What one consumer is packed to, bytes/s, > 0.
        current: Who reads what now.
        target: Who should, as a packing says.
        forced_by: What leaves no choice (an overload, a death), in words for people.

    Returns:
        The plan with its reasons, or why there is none.
    """
    changes = diff(current, target)
    if not changes:
        return Rejected("nothing would change")
    forces = forced_by or _unread(changes)
    weight = _Weight.of(rates, current, target, changes)
    if not forces and changes.moves and not weight.earned:
        return Rejected(f"{weight.told()}; {weight.allowance()}")
    return Plan(
        moves=changes.moves,
        first_starts=changes.first_starts,
        departures=changes.departures,
        created=changes.created,
        retired=changes.retired,
        target=target,
        rscore=rscore(rates, capacity, current, target),
        reasons=(*forces, weight.told()),
    )


def _unread(changes: Changes) -> tuple[str, ...]:
    starts = len(changes.first_starts)
    return (f"{_count(starts, 'partition')} without a reader",) if starts else ()


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Weight:
    """The two sides of the scales."""

    before: int  # consumers
    after: int
    moves: int
    partitions: int  # in the target
    disturbed: float  # share of all bytes that changes hands, 0 to 1

    @classmethod
    def of(
        cls, rates: Rates, current: Assignment, target: Assignment, changes: Changes
    ) -> "_Weight":
        total = sum(rates[p] for p in sorted(target))
        return cls(
            before=len(set(current.values())),
            after=len(set(target.values())),
            moves=len(changes.moves),
            partitions=len(target),
            disturbed=sum(rates[p] for p in changes.moves) / total if total else 0.0,
        )

    @property
    def saved(self) -> float:
        """The share of consumers that are not needed any more; below 0 if it takes more."""
        return (self.before - self.after) / self.before

    @property
    def earned(self) -> bool:
        # Even moving what carries no bytes pauses somebody: never for nothing.
        return self.saved > 0 and self.saved >= WORTH * self.disturbed

    def told(self) -> str:
        consumers = _count(self.before, "consumer")
        change = consumers if self.before == self.after else f"{consumers} -> {self.after}"
        return (
            f"{change}; moves {self.moves} of {_count(self.partitions, 'partition')}, "
            f"{self.disturbed:.1%} of the bytes"
        )

    def allowance(self) -> str:
        """Tell what would have been worth it."""
        if self.saved <= 0:
            return "saves no consumer"
        return f"saving {self.saved:.1%} of the consumers pays for {self.saved / WORTH:.1%} at most"
