"""The partitions of a simulation: who reads each, what waits, and what moves have cost."""

from dataclasses import dataclass, field

from binwright.lab.simulation.fluid.arrivals import FluidLoad
from binwright.lab.simulation.fluid.measures import LagSeries, Latencies, LatencyPieces
from binwright.lab.simulation.fluid.readers import ByteBacklog, FluidReader
from binwright.protocol.model import Slot


@dataclass(slots=True)
class Unread:
    """A partition without a reader: what waits since it was read last.

    Attributes:
        backlog: What waits, as far as it was counted.
        since: When it was read last.
        counted_to: Up to when what waits was counted.
    """

    backlog: ByteBacklog
    since: float
    counted_to: float = field(init=False)

    def __post_init__(self) -> None:
        """Count from the last reading on."""
        self.counted_to = self.since


@dataclass(slots=True)
class Moves:
    """Changes of owners since counting began.

    A partition's first owner is no move, nor is the same one after a pause.
    """

    count: int = 0
    bytes_per_s: float = 0.0  # the sum of the moved partitions' write rates, each at its move
    paused_s: float = 0.0  # partition-seconds in which a partition that had a reader had none


class DataPath:
    """All partitions and their readers, on one clock that only grows."""

    def __init__(self, load: FluidLoad, begin: float) -> None:
        self.load, self.moves = load, Moves()
        self._latency = LatencyPieces()
        self.lag = LagSeries(0.0, load.ends_at)
        self._readers: dict[Slot, FluidReader] = {}
        self._unread = {i: Unread(ByteBacklog(), begin) for i in range(len(load.partitions))}
        self._owners: dict[int, Slot] = {}  # the last one of each partition
        self._counted_from = begin

    # --- consumers and partitions ----------------------------------------------------------------

    def add_consumer(self, slot: Slot, capacity: float, now: float) -> None:
        """Let a consumer of this capacity, bytes/s, be given partitions."""
        self._readers[slot] = FluidReader(capacity, now, self.load, self._latency, self.lag)

    def remove_consumer(self, slot: Slot, now: float) -> None:
        """Take a consumer away; what it still reads has no reader then."""
        reader = self._readers.get(slot)
        for index in tuple(reader.indices) if reader else ():
            self.stop_reading(index, slot, now)
        self._readers.pop(slot, None)

    def start_reading(self, index: int, slot: Slot, now: float) -> None:
        """Let a consumer read partition `index`, from where the last reader stopped."""
        reader, before = self._readers[slot], self._owners.get(index)
        if index in reader.indices:
            return
        if before is not None:
            self.stop_reading(index, before, now)
        reader.advance(now)
        unread = self._unread.pop(index)
        if before is not None:
            self.moves.paused_s += now - unread.since
            if before != slot:
                self.moves.count += 1
                self.moves.bytes_per_s += self.load.rows[self.load.row_at(now)][index]
        self._wait(index, unread, now)
        reader.begin(index, unread.backlog)
        self._owners[index] = slot

    def stop_reading(self, index: int, slot: Slot, now: float) -> None:
        """Let a consumer read partition `index` no more; another one's partition is left alone."""
        reader = self._readers.get(slot)
        if reader is None or index not in reader.indices:
            return
        reader.advance(now)
        self._unread[index] = Unread(reader.stop(index), now)

    def _wait(self, index: int, unread: Unread, now: float) -> None:
        """Append what was written while it had no reader, row by row: lag grows evenly in each."""
        load, at = self.load, unread.counted_to
        row = load.row_at(at)
        while at < now:
            end = min(now, load.edges[row + 1]) if row + 2 < len(load.edges) else now
            before = unread.backlog.size
            unread.backlog.write(at, end, load.rows[row][index])
            self.lag.add(at, end, before, unread.backlog.size)
            at, row = end, row + 1
        unread.counted_to = max(now, unread.counted_to)

    # --- what can be seen ------------------------------------------------------------------------

    def lags(self, now: float) -> list[float]:
        """Return what waits in each partition, bytes."""
        sizes = [0.0] * len(self.load.partitions)
        for reader in self._readers.values():
            if reader.at < now:
                reader.advance(now)
            for index, backlog in reader.backlogs.items():
                sizes[index] = backlog.size
        for index, unread in self._unread.items():
            self._wait(index, unread, now)
            sizes[index] = unread.backlog.size
        return sizes

    def read_by(self, slot: Slot, now: float) -> float:
        """Return the bytes that a consumer has read since it was added."""
        self._readers[slot].advance(now)
        return self._readers[slot].read

    # --- counting --------------------------------------------------------------------------------

    def begin_counting(self, now: float) -> None:
        """Forget what the warm-up has cost, and what still waits of it."""
        self.lags(now)
        self._latency.clear()
        self.lag.clear()
        for reader in self._readers.values():
            reader.backlogs.clear()
        for unread in self._unread.values():
            unread.backlog, unread.since = ByteBacklog(), now
        self.moves, self._counted_from = Moves(), now

    def finish(self, now: float) -> Latencies:
        """Return the latencies of all bytes written while counting.

        Bytes that still wait count with the time that they have waited so far.
        """
        self.lags(now)
        backlogs = [b for reader in self._readers.values() for b in reader.backlogs.values()]
        for backlog in (*backlogs, *(unread.backlog for unread in self._unread.values())):
            backlog.abandon(now, self._latency)
        load, begin = self.load, self._counted_from
        written = sum(
            sum(rates) * max(0.0, min(end, now) - max(start, begin))
            for rates, start, end in zip(load.rows, load.edges, load.edges[1:], strict=False)
        )
        return self._latency.distribution(written)
