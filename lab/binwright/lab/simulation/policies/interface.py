"""What a policy sees of a group, and what it answers."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from binwright.protocol.model import Slot


@dataclass(frozen=True, slots=True)
class Seen:
    """A group when a policy decides; partitions by their index in the load."""

    now: float  # seconds
    rates: Sequence[float]  # measured, bytes/s
    lags: Callable[[], Sequence[float]]  # written and not read, bytes
    busy: Callable[[], Sequence[float]]  # of each consumer: read bytes/s over what it sustains
    owners: Mapping[int, Slot]
    slots: Sequence[Slot]  # of the consumers that run, sorted
    changed_at: float | None  # when the number of consumers changed last


@dataclass(frozen=True, slots=True)
class Target:
    """The consumers that are to run, and who reads what."""

    owners: Mapping[int, Slot]  # of all partitions
    slots: frozenset[Slot]  # also those that read nothing


@dataclass(frozen=True, slots=True, kw_only=True)
class Manner:
    """When a policy decides, and how its decisions are carried out."""

    interval_s: float  # from a decision (or the end of its change) to the next
    at_overload: bool = False  # decide at once when a consumer's measured load exceeds its limit
    stops_group: bool = False  # a change stops all partitions, as a rebalance does
    pause_s: float = 0.0  # how long partitions have no reader then: all of them, or moved ones


class Policy(Protocol):
    """Scales a group; it may remember what it has seen."""

    @property
    def manner(self) -> Manner:
        """Return when it decides and how that is carried out."""

    def decide(self, seen: Seen) -> Target | None:
        """Return what is to change; None: nothing."""
