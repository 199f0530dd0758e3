"""The interface of scaling policies: an observation of a group in, a decision out."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import NamedTuple, Protocol

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
