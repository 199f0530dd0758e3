"""Evaluates a packing's result: what changes, whether that is worth its moves, and why."""

from collections.abc import Mapping
from dataclasses import dataclass

from binwright.packing.score import moved_partitions, rscore
from binwright.protocol.model import Assignment, BytesPerSecond, Rates, Slot, TopicPartition

MIN_SAVING = 0.5
"""Share of consumers that a plan must save per share of bytes that it moves, unless triggered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """The difference of two assignments; mappings and tuples are sorted."""

    moves: Mapping[TopicPartition, tuple[Slot, Slot]]  # -> (from, to)
    first_starts: Mapping[TopicPartition, Slot]  # without a reader -> to
    departures: Mapping[TopicPartition, Slot]  # not in the target -> from
    created: tuple[Slot, ...]  # own nothing before
    retired: tuple[Slot, ...]  # own nothing afterwards

    def __bool__(self) -> bool:
        """Return whether anything changes."""
        return bool(self.moves or self.first_starts or self.departures)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan(Changes):
    """Changes to carry out."""

    target: Assignment
    rscore: float  # bytes/s moved, in units of capacity (eq. 11)
    reasons: tuple[str, ...]  # the triggers if any, then savings and costs


@dataclass(frozen=True, slots=True)
class Rejected:
    """Why the assignment stays as it is, as text with numbers."""

    reason: str


def diff(current: Assignment, target: Assignment) -> Changes:
    """Return the changes that lead from `current` to `target`."""
    before, after = set(current.values()), set(target.values())
    return Changes(
        moves={p: (current[p], target[p]) for p in moved_partitions(current, target)},
        first_starts={p: target[p] for p in sorted(target.keys() - current.keys())},
        departures={p: current[p] for p in sorted(current.keys() - target.keys())},
        created=tuple(sorted(after - before)),
        retired=tuple(sorted(before - after)),
    )


def evaluate(
    rates: Rates,
    capacity: BytesPerSecond,
    current: Assignment,
    target: Assignment,
    triggered_by: tuple[str, ...],
) -> Plan | Rejected:
    """Decide whether to go from `current` to `target`.

    A triggered plan is always accepted; partitions without a reader trigger one, too. Any other
    with moves must save consumers: at least half the share of bytes that it moves.

    Args:
        rates: Bytes/s, each finite and >= 0; holds every partition of `target`.
        capacity: What one consumer is packed to, bytes/s, > 0.
        current: The owners now.
        target: The owners according to a packing.
        triggered_by: What makes a plan necessary (an overload, a death), as text.

    Returns:
        The plan with its reasons, or the reason for its rejection.
    """
    changes = diff(current, target)
    if not changes:
        return Rejected("nothing would change")
    triggers = triggered_by or _unread_trigger(changes)
    balance = _Balance.of(rates, current, target, changes)
    if not triggers and changes.moves and not balance.worthwhile:
        return Rejected(f"{balance.summary()}; {balance.allowance()}")
    return Plan(
        moves=changes.moves,
        first_starts=changes.first_starts,
        departures=changes.departures,
        created=changes.created,
        retired=changes.retired,
        target=target,
        rscore=rscore(rates, capacity, current, target),
        reasons=(*triggers, balance.summary()),
    )


def _unread_trigger(changes: Changes) -> tuple[str, ...]:
    starts = len(changes.first_starts)
    return (f"{_count(starts, 'partition')} without a reader",) if starts else ()


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Balance:
    """What a plan saves and what it costs."""

    before: int  # consumers
    after: int
    moves: int
    partitions: int  # in the target
    moved_share: float  # share of all bytes/s that moves, 0 to 1

    @classmethod
    def of(
        cls, rates: Rates, current: Assignment, target: Assignment, changes: Changes
    ) -> "_Balance":
        total = sum(rates[p] for p in sorted(target))
        return cls(
            before=len(set(current.values())),
            after=len(set(target.values())),
            moves=len(changes.moves),
            partitions=len(target),
            moved_share=sum(rates[p] for p in changes.moves) / total if total else 0.0,
        )

    @property
    def saved(self) -> float:
        """The share of consumers that are not needed any more; below 0 if more are needed."""
        return (self.before - self.after) / self.before

    @property
    def worthwhile(self) -> bool:
        # Moving a partition without load still pauses its reader.
        return self.saved > 0 and self.saved >= MIN_SAVING * self.moved_share

    def summary(self) -> str:
        consumers = _count(self.before, "consumer")
        change = consumers if self.before == self.after else f"{consumers} -> {self.after}"
        return (
            f"{change}; moves {self.moves} of {_count(self.partitions, 'partition')}, "
            f"{self.moved_share:.1%} of the bytes"
        )

    def allowance(self) -> str:
        """Return which moves would have been accepted, as text."""
        if self.saved <= 0:
            return "saves no consumer"
        payable = self.saved / MIN_SAVING
        return f"saving {self.saved:.1%} of the consumers pays for {payable:.1%} at most"
