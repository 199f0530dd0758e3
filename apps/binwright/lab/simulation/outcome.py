"""What a policy has cost a load, and what it has done for it."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from binwright.lab.simulation.fluid.data_path import Moves
from binwright.lab.simulation.fluid.measures import Latencies
from binwright.protocol.model import Slot

MINUTE_S = 60.0


@dataclass(frozen=True, slots=True)
class CountSteps:
    """A number that changes in steps: `values[i]` holds from `times[i]` to the next one."""

    times: tuple[float, ...]  # seconds, ascending
    values: tuple[int, ...]
    end: float  # seconds

    def at(self, times: list[float]) -> list[int]:
        """Return the number at each of these ascending times; before the first it is 0."""
        numbers, step = [], -1
        for time in times:
            while step + 1 < len(self.times) and self.times[step + 1] <= time:
                step += 1
            numbers.append(self.values[step] if step >= 0 else 0)
        return numbers

    @property
    def seconds(self) -> float:
        """Return the integral: consumer-seconds."""
        ends = (*self.times[1:], self.end)
        return sum(
            (end - begin) * value
            for begin, end, value in zip(self.times, ends, self.values, strict=True)
        )


class ConsumerCounts:
    """Counts consumers from when they are asked for until they have ended, and those ready."""

    def __init__(self) -> None:
        self._running: set[Slot] = set()
        self._ready: set[Slot] = set()
        self._steps: list[tuple[float, int, int]] = [(float("-inf"), 0, 0)]

    def started(self, slot: Slot, now: float) -> None:
        """Count a consumer that is asked for."""
        self._running.add(slot)
        self._note(now)

    def ready(self, slot: Slot, now: float) -> None:
        """Count a consumer that may be given partitions."""
        self._ready.add(slot)
        self._note(now)

    def ended(self, slot: Slot, now: float) -> None:
        """Count a consumer no more."""
        self._running.discard(slot)
        self._ready.discard(slot)
        self._note(now)

    def _note(self, now: float) -> None:
        step = (now, len(self._running), len(self._ready))
        if self._steps[-1][0] == now:
            self._steps[-1] = step
        else:
            self._steps.append(step)

    def running(self, begin: float, end: float) -> CountSteps:
        """Return how many ran, from `begin` to `end`."""
        return self._cut(1, begin, end)

    def were_ready(self, begin: float, end: float) -> CountSteps:
        """Return how many were ready, from `begin` to `end`."""
        return self._cut(2, begin, end)

    def _cut(self, column: int, begin: float, end: float) -> CountSteps:
        before = [step for step in self._steps if step[0] <= begin][-1]
        after = [step for step in self._steps if begin < step[0] < end]
        times, values = [begin], [int(before[column])]
        for step in after:
            if step[column] != values[-1]:
                times.append(step[0])
                values.append(int(step[column]))
        return CountSteps(tuple(times), tuple(values), end)


HOUR_S = 3_600.0


@dataclass(frozen=True, slots=True)
class GroupChange:
    """A plan or decision that went ahead."""

    at: float  # seconds
    consumers: int  # afterwards
    moves: int
    reasons: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """One policy over the whole load, without the warm-up.

    Attributes:
        policy: Its name.
        running: Consumers that are paid for: from the request to the end.
        ready: Consumers that may be given partitions.
        lag: Bytes written and not read, at each whole second; None: not simulated.
        latencies: None: not simulated.
        moves: None: not simulated.
        changes: In order.
        note: What a reader of the figures must know.
    """

    policy: str
    running: CountSteps
    ready: CountSteps
    lag: NDArray[np.float64] | None = None
    latencies: Latencies | None = None
    moves: Moves | None = None
    changes: Sequence[GroupChange] = ()
    note: str = ""

    def score(self, sla_s: float, price: float | None = None) -> "Score":
        """Return the figures of this outcome.

        Args:
            sla_s: Within which a record is to be read, seconds.
            price: Of one consumer for an hour, in any currency.
        """
        seconds = self.running.seconds
        spread, moves = self.latencies, self.moves
        return Score(
            policy=self.policy,
            consumers_mean=seconds / (self.running.end - self.running.times[0]),
            consumers_max=max(self.running.values),
            replica_minutes=seconds / MINUTE_S,
            changes=len(self.changes) if moves else None,
            moves=moves.count if moves else None,
            moved_bytes_per_s=moves.bytes_per_s if moves else None,
            paused_s=moves.paused_s if moves else None,
            lag_max_bytes=float(self.lag.max()) if self.lag is not None else None,
            p50_s=spread.percentile(0.5) if spread else None,
            p90_s=spread.percentile(0.9) if spread else None,
            p99_s=spread.percentile(0.99) if spread else None,
            within_sla=spread.share_within(sla_s) if spread else None,
            cost=None if price is None else seconds / HOUR_S * price,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """The figures of one policy; None: not simulated."""

    policy: str
    consumers_mean: float
    consumers_max: int
    replica_minutes: float  # minutes of all consumers that ran, from the request to the end
    changes: int | None  # plans or decisions that went ahead
    moves: int | None  # partitions that changed their owner
    moved_bytes_per_s: float | None  # the sum of their write rates, each at its move
    paused_s: float | None  # partition-seconds in which changes left partitions unread
    lag_max_bytes: float | None  # the highest of all whole seconds
    p50_s: float | None  # latency, seconds: half of the bytes waited no longer
    p90_s: float | None
    p99_s: float | None
    within_sla: float | None  # share of the bytes, 0 to 1
    cost: float | None  # by the price of a consumer for an hour; None: no price


def equal_seconds(first: Sequence[int], second: Sequence[int]) -> float:
    """Return the share of samples, 0 to 1, in which two series have the same value."""
    pairs = list(zip(first, second, strict=True))
    return sum(one == other for one, other in pairs) / len(pairs) if pairs else 1.0
