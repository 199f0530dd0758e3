"""What waits in one partition: bytes in the order in which they were written."""

from collections import deque

from binwright.lab.simulation.flow.latency import LatencyPieces

EMPTY = 0.01
"""Bytes; a backlog below this is a rounding error: times of a week are exact to 1e-10 s."""


class Backlog:
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
