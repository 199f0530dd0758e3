"""The interface of scaling policies: an observation of a group in, a decision out."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import floor, inf, isfinite
from typing import NamedTuple, Protocol

from binwright.packing.score import ROUNDING
from binwright.protocol.errors import PackingError
from binwright.protocol.model import Assignment, TopicPartition


class PartitionLoad(NamedTuple):
    """The load of one partition, in records or in bytes: the unit of a replica's rate."""

    rate: float  # arriving per second, finite and >= 0
    lag: float = 0.0  # arrived and not committed, finite and >= 0


Loads = Mapping[TopicPartition, PartitionLoad]


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """What is known of a group when a policy decides.

    Raises:
        PackingError: There is no replica or no partition, or a rate or lag is out of range.
    """

    time_s: float  # monotonic
    loads: Loads
    replicas: int  # that were ordered last, > 0, whether or not they run already
    assignment: Assignment = field(default_factory=dict)  # slot i: the i-th oldest replica
    scaled_s: float | None = None  # when the number last changed; None: never
    utilisation: Sequence[float] = ()  # CPU of each ready replica, as a share of its request

    def __post_init__(self) -> None:
        """Check the ranges."""
        if self.replicas < 1 or not self.loads:
            raise PackingError("a policy needs at least one replica and one partition")
        every = self.loads.items()
        bad = [p for p, (rate, lag) in every if not (0 <= rate < inf and 0 <= lag < inf)]
        if bad:
            faults = ", ".join(f"{p}: {tuple(self.loads[p])}" for p in sorted(bad))
            raise PackingError(f"rates and lags must be finite and >= 0, got {faults}")

    def cooling(self, period_s: float) -> bool:
        """Return whether the number of replicas changed within the last `period_s`."""
        return self.scaled_s is not None and self.time_s - self.scaled_s <= period_s


@dataclass(frozen=True, slots=True)
class Decision:
    """How many replicas there are to be, and who reads what."""

    replicas: int  # > 0
    reason: str  # a sentence for people
    assignment: Assignment | None = None  # None: unchanged, or left to the group's own assignor
    hot: tuple[TopicPartition, ...] = ()  # faster than a replica: more replicas do not help


class Policy(Protocol):
    """Scales a group; the same observations give the same decisions."""

    def decide(self, observation: Observation) -> "tuple[Decision, Policy]":
        """Return the decision, and the policy that decides next: it remembers what it must."""


@dataclass(frozen=True, slots=True)
class Fixed:
    """Keeps a number of replicas: for a group that is sized for its peak."""

    replicas: int

    def decide(self, observation: Observation) -> tuple[Decision, "Fixed"]:
        """Return the same number always."""
        del observation
        return Decision(self.replicas, f"{self.replicas} replicas are fixed"), self


def total(loads: Iterable[PartitionLoad]) -> PartitionLoad:
    """Return the sum of loads."""
    every = list(loads)
    return PartitionLoad(sum(load.rate for load in every), sum(load.lag for load in every))


class Bin(NamedTuple):
    """What one replica may be given."""

    rate: float  # per second, > 0
    lag: float  # > 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaCapacity:
    """What one replica serves, and how late a record may be.

    Raises:
        PackingError: A value is out of range.
    """

    rate: float  # served per second, the paper's mu: finite and > 0
    sla_s: float  # the paper's w: from a record's arrival to the end of its work, finite and > 0
    burst_s: float = 0.0  # between two arrivals of records in a batch; 0: they come one by one

    def __post_init__(self) -> None:
        """Check the ranges."""
        if not all(isfinite(one) and one > 0 for one in (self.rate, self.sla_s)):
            raise PackingError(f"rate and sla_s must be finite and > 0: {self.rate}, {self.sla_s}")
        if not (isfinite(self.burst_s) and self.burst_s >= 0):
            raise PackingError(f"burst_s must be finite and >= 0, got {self.burst_s}")

    def bin(self, share: float) -> Bin:
        """Return what a replica takes at this share of its rate: whole records of lag, at least 1.

        A lag that fits is worked off within `sla_s` (equation 4 of the paper).
        """
        return Bin(self.rate * share, max(1, floor(self.rate * self.sla_s * share + ROUNDING)))

    def sustained(self, pause_s: float = 0.0) -> float:
        """Return the rate at which the last record that waits after a pause is still in time.

        What gathers while nobody reads must be worked off within the SLA, so a replica that has
        0.5 s for bursts of 1 s sustains half of its rate, and that is less after a pause in which
        several bursts arrive.

        Args:
            pause_s: How long nobody reads, >= 0.
        """
        gathered_s = pause_s
        if self.burst_s:
            gathered_s = self.burst_s * (floor(pause_s / self.burst_s + ROUNDING) + 1)
        return self.rate * min(1.0, self.sla_s / gathered_s) if gathered_s else self.rate
