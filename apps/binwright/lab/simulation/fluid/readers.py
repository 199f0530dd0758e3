"""How a consumer reads its partitions: what waits in each, and how it shares its capacity."""

from collections import deque
from collections.abc import Callable, Iterable

from binwright.lab.simulation.fluid.arrivals import FluidLoad
from binwright.lab.simulation.fluid.measures import LagSeries, LatencyPieces

EMPTY = 0.01
"""Bytes; a backlog below this is a rounding error: times of a week are exact to 1e-10 s."""


class ByteBacklog:
    """Bytes of one partition that are written and not read.

    Attributes:
        size: Bytes.
    """

    __slots__ = ("_pieces", "size")

    def __init__(self) -> None:
        # Of each piece: when its first byte was written, its last one, and the rate between them.
        self._pieces: deque[list[float]] = deque()
        self.size = 0.0

    def write(self, begin: float, end: float, rate: float) -> None:
        """Append bytes written from `begin` to `end`, seconds, at `rate` bytes/s."""
        if rate <= 0.0 or end <= begin:
            return
        pieces = self._pieces
        if pieces and (last := pieces[-1])[1] == begin and last[2] == rate:
            last[1] = end
        else:
            pieces.append([begin, end, rate])
        self.size += (end - begin) * rate

    def read(self, begin: float, speed: float, amount: float, into: LatencyPieces) -> None:
        """Remove `amount` bytes, read from time `begin` on at `speed` bytes/s.

        A byte written at u and read at t waited t - u. Within a piece both times run evenly, so
        the latency runs evenly from that of its first byte to that of its last one.
        """
        now, left, pieces = begin, amount, self._pieces
        while left > EMPTY and pieces:
            piece = pieces[0]
            first, last, rate = piece
            whole = (last - first) * rate
            taken = min(left, whole)
            written = last if taken >= whole - EMPTY else first + taken / rate
            after = now + taken / speed
            into.add(now - first, after - written, taken)
            now, left = after, left - taken
            if written == last:
                pieces.popleft()
            else:
                piece[0] = written
        self.size = max(0.0, self.size - amount) if pieces else 0.0

    def abandon(self, now: float, into: LatencyPieces) -> None:
        """Count what waits at the end, with the time that it has waited so far."""
        for first, last, rate in self._pieces:
            into.add(now - first, now - last, (last - first) * rate)


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


class FluidReader:
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
        self, capacity: float, now: float, load: FluidLoad, latency: LatencyPieces, lag: LagSeries
    ) -> None:
        self.capacity, self.at, self.read = capacity, now, 0.0
        self.indices: list[int] = []
        self.backlogs: dict[int, ByteBacklog] = {}
        self._rows, self._edges = load.rows, load.edges
        self._latency, self._lag = latency, lag
        self._row = load.row_at(now)  # that of `at`
        self._total: float | None = None  # written to the partitions in it, bytes/s

    def begin(self, index: int, backlog: ByteBacklog) -> None:
        """Read this partition from now (`at`) on, with what waits in it."""
        self.indices.append(index)
        self._total = None
        if backlog.size > EMPTY:
            self.backlogs[index] = backlog

    def stop(self, index: int) -> ByteBacklog:
        """Read it no more from now (`at`) on; return what waits in it."""
        self.indices.remove(index)
        self._total = None
        return self.backlogs.pop(index, None) or ByteBacklog()

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
                backlog = backlogs[index] = ByteBacklog()
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
