"""The latency of records, consumer by consumer: eq. 16 to 27 of the paper.

Landau, Andrade, Barbosa, arXiv 2402.06085. At a measurement, a consumer's partitions form two
queues: the fixed queue of those that it had before, and the rebalanced queue of those that it has
since now. It reads the fixed queue at the rate at which that is written, or at its limit, and the
rebalanced one, once the hand-over is done, with what is left of its limit. Rates are per cent of
the capacity, and one unit of data, here called a byte, is what a rate of 1 writes in a second.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import isfinite

from binwright.lab.latency.samples import Line, Samples, SamplesBuilder
from binwright.protocol.errors import SettingsError
from binwright.protocol.model import Assignment, Rates, Slot


@dataclass(frozen=True, slots=True, kw_only=True)
class LatencyModel:
    """What the equations need besides rates and assignments; the paper's values by default."""

    limit: float = 133.0  # C', what a consumer really reads, per cent of the capacity, > 0
    interval_s: float = 30.0  # T, between measurements, > 0
    rebalance_s: float = 5.0  # until a partition's new owner reads it, >= 0

    def __post_init__(self) -> None:
        """Raise `SettingsError` for numbers that are no model."""
        numbers = (self.limit, self.interval_s, self.rebalance_s)
        if not (all(map(isfinite, numbers)) and min(numbers[:2]) > 0 <= self.rebalance_s):
            raise SettingsError(
                "the latency model needs a limit and an interval > 0 and a rebalance time >= 0, "
                f"got {numbers}"
            )

    def lines(self, fixed: float, rebalanced: float, last_s: float) -> Iterator[Line]:
        """Yield the latencies of one consumer's bytes during one interval.

        Where the fixed queue takes the whole limit, the equations leave no rate for the rebalanced
        one, and its bytes are never read. They are taken as read when the interval is over, at the
        limit: the least that they can have to wait.

        Args:
            fixed: The rate at which the fixed queue is written, >= 0 (eq. 18).
            rebalanced: The same of the rebalanced queue (eq. 24).
            last_s: The latency of this consumer's last byte of the intervals before, 0 at first.
        """
        read = self.limit if rebalanced == 0 else min(self.limit, fixed)
        if bytes_written := int(self.interval_s * fixed):
            yield Line(last_s, 1 / read - 1 / fixed, bytes_written)
        if bytes_written := int(self.interval_s * rebalanced):
            spare = self.limit - read
            if spare > 0:
                yield Line(self.rebalance_s, 1 / spare - 1 / rebalanced, bytes_written)
            else:
                unread = Line(self.interval_s, 1 / self.limit - 1 / rebalanced, bytes_written)
                yield unread


class GroupQueues:
    """Collects the latencies of a whole group, interval by interval."""

    def __init__(self, model: LatencyModel) -> None:
        self._model = model
        self._last_s: dict[Slot, float] = {}
        self._samples = SamplesBuilder()
        self.unread = 0
        """Bytes for which the equations leave no rate. See `LatencyModel.lines`."""

    def add(self, rates: Rates, before: Assignment, after: Assignment) -> None:
        """Add one interval.

        Args:
            rates: Per cent of the capacity, of all partitions of `after`.
            before: Who read each partition in the interval before.
            after: Who reads it now; another owner, or a first one, makes it a rebalanced partition.
        """
        fixed, rebalanced = dict[Slot, float](), dict[Slot, float]()
        for partition, slot in after.items():
            queue = fixed if before.get(partition) == slot else rebalanced
            queue[slot] = queue.get(slot, 0.0) + rates[partition]
        for slot in sorted(fixed.keys() | rebalanced.keys()):
            self._add_consumer(slot, fixed.get(slot, 0.0), rebalanced.get(slot, 0.0))

    def _add_consumer(self, slot: Slot, fixed: float, rebalanced: float) -> None:
        if fixed >= self._model.limit:
            self.unread += int(self._model.interval_s * rebalanced)
        for line in self._model.lines(fixed, rebalanced, self._last_s.get(slot, 0.0)):
            self._samples.add(line)
            self._last_s[slot] = line.last

    def samples(self) -> Samples:
        """Return all latencies so far."""
        return self._samples.build()
