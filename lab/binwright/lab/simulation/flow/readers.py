"""How a consumer reads its partitions: it shares its capacity as equally as they can use it."""

from collections.abc import Callable, Iterable

from binwright.lab.simulation.flow.arrivals import Arrivals
from binwright.lab.simulation.flow.backlog import EMPTY, Backlog
from binwright.lab.simulation.flow.lag import LagSeries
from binwright.lab.simulation.flow.latency import LatencyPieces


def fair_share(capacity: float, rates: Iterable[float], waiting: int) -> float:
    """Return the speed that no partition exceeds: max-min fair shares of the capacity.

    A partition with a backlog can use any speed; another one no more than what is written to it.
    So the share f satisfies: waiting x f + sum of min(rate, f) = capacity, bytes/s.

    Args:
        capacity: Bytes/s.
        rates: Of the partitions without a backlog, bytes/s.
        waiting: How many partitions have a backlog.

    Returns:
        Bytes/s; the whole capacity that is left if all rates fit and nothing waits.
    """
    left, count = capacity, waiting
    ordered = sorted(rates)
    count += len(ordered)
    for rate in ordered:
        if rate * count > left:
            return left / count
        left -= rate
        count -= 1
    return left / count if count else max(ordered, default=0.0)


class Reader:
    """A consumer's reading: what it reads, how fast, and what waits for it.

    Time is advanced by `advance` alone. While its partitions fit and nothing waits, all bytes are
    read as they are written; else the time is cut where a row ends or a backlog is used up.

    Attributes:
        capacity: What it sustains, bytes/s.
        read: Bytes read until `at`.
        at: Seconds.
        backlogs: Partition index -> what waits in it; only those where anything does.
    """

    __slots__ = (
        "_edges",
        "_lag",
        "_latency",
        "_row",
        "_rows",
        "_total",
        "at",
        "backlogs",
        "capacity",
        "indices",
        "read",
    )

    def __init__(
        self, capacity: float, now: float, load: Arrivals, latency: LatencyPieces, lag: LagSeries
    ) -> None:
        self.capacity, self.at, self.read = capacity, now, 0.0
        self.indices: list[int] = []
        self.backlogs: dict[int, Backlog] = {}
        self._rows, self._edges = load.rows, load.edges
        self._latency, self._lag = latency, lag
        self._row = load.row_at(now)  # that of `at`
        self._total: float | None = None  # written to the partitions in it, bytes/s

    def begin(self, index: int, backlog: Backlog) -> None:
        """Read this partition from now (`at`) on, with what waits in it."""
        self.indices.append(index)
        self._total = None
        if backlog.size > EMPTY:
            self.backlogs[index] = backlog

    def stop(self, index: int) -> Backlog:
        """Read it no more from now (`at`) on; return what waits in it."""
        self.indices.remove(index)
        self._total = None
        return self.backlogs.pop(index, None) or Backlog()

    def advance(self, to: float) -> None:
        """Read until `to`, seconds; an earlier time changes nothing."""
        at, edges, final = self.at, self._edges, len(self._rows) - 1
        while at < to:
            rates = self._rows[self._row]
            end = to if self._row == final else min(to, edges[self._row + 1])
            if self._total is None:
                self._total = sum([rates[index] for index in self.indices])
            if self.backlogs or self._total > self.capacity:
                at = self._share(rates, at, end)
            else:
                self.read += self._total * (end - at)
                at = end
            if self._row < final and at >= edges[self._row + 1]:
                self._row += 1
                self._total = None
            self.at = at

    def _share(self, rates: list[float], at: float, end: float) -> float:
        """Read at fair shares until `end` or until a backlog is used up; return when that is."""
        backlogs = self.backlogs
        free = [rates[index] for index in self.indices if index not in backlogs]
        share = fair_share(self.capacity, free, len(backlogs))
        until, before = end, 0.0
        for index, backlog in backlogs.items():
            before += backlog.size
            if share > rates[index]:
                until = min(until, at + backlog.size / (share - rates[index]))
        self._read_until(until, share, rates)
        used_up, after = list[int](), 0.0
        for index, backlog in backlogs.items():
            if backlog.size <= EMPTY:
                used_up.append(index)
            else:
                after += backlog.size
        for index in used_up:
            del backlogs[index]
        self._lag.add(at, until, before, after)
        return until if until > at else self._skip_shortest(rates, share, at)

    def _read_until(self, until: float, share: float, rates: list[float]) -> None:
        """Read from `at` on; what exceeds the share waits."""
        at, backlogs, latency, read = self.at, self.backlogs, self._latency, self.read
        passed = until - at
        most = share * passed
        for index in self.indices:
            rate, backlog = rates[index], backlogs.get(index)
            if backlog is None:
                if rate <= share:
                    read += rate * passed
                    continue
                backlog = backlogs[index] = Backlog()
            backlog.write(at, until, rate)
            amount = min(most, backlog.size)
            backlog.read(at, share, amount, latency)
            read += amount
        self.read = read

    def _skip_shortest(self, rates: list[float], share: float, at: float) -> float:
        """Drop the backlog that takes less time than the clock can tell apart."""
        shortest: Callable[[int], float] = lambda index: (  # noqa: E731
            self.backlogs[index].size / (share - rates[index])
            if share > rates[index]
            else float("inf")
        )
        if self.backlogs:
            del self.backlogs[min(self.backlogs, key=shortest)]
        return at
