"""Decodes many values in portions, of which each takes bounded memory."""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Condition, Lock
from typing import Any

from binwright.protocol.errors import StagingUnavailable
from binwright.tables.ports import ValueDecoder

MOST_BYTES = 128 << 20  # of one value; see the setting `consumer.value_memory_bytes`
PORTIONS = 6  # that may be decoded at a time
_DENSITY = 16  # values take about as many times their bytes: portions are tried as large as that
WAIT_S = 120.0  # for memory that other threads have taken


class DecodingMemory:
    """Memory that is shared by all values of a process that are being decoded, in its threads.

    Attributes:
        most_bytes: Of all together, and so of one value.
        portion_bytes: Of a portion of several values.
    """

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self.most_bytes, self.portion_bytes = most_bytes, most_bytes // PORTIONS
        self._free, self._changed, self._turn = most_bytes, Condition(), Lock()

    @property
    def waiting(self) -> bool:
        """Return whether someone waits for memory."""
        return self._turn.locked()

    @contextmanager
    def taken(self, need: int) -> Iterator[None]:
        """Have so many bytes; wait until others have given them back, in turn.

        Raises:
            StagingUnavailable: They have not, for two minutes.
        """
        if not self._turn.acquire(timeout=WAIT_S):  # else those who need little would go first
            raise StagingUnavailable("other values are being decoded for too long")
        try:
            with self._changed:
                if not self._changed.wait_for(lambda: self._free >= need, WAIT_S):
                    raise StagingUnavailable(f"{need} bytes of memory have not become free")
                self._free -= need
        finally:
            self._turn.release()
        try:
            yield
        finally:
            with self._changed:
                self._free += need
                self._changed.notify_all()

    def portions(
        self, decoder: ValueDecoder, values: Any, keys: Any
    ) -> Iterator[tuple[int, int, int]]:
        """Yield portions of records, in order: where each begins, how many, and what they need.

        Args:
            decoder: Knows what they need. A single value that needs too much, it refuses.
            values: An Arrow array, as it is decoded.
            keys: Another, likewise.
        """
        count = -(-values.nbytes * _DENSITY // self.portion_bytes)
        left = _parts(0, len(values), count)
        while left:
            begin, length = left.pop()
            need = decoder.memory(values.slice(begin, length), keys.slice(begin, length))
            if need <= self.portion_bytes or length == 1:
                yield begin, length, min(need, self.most_bytes)
            else:
                left += _parts(begin, length, -(-need * 5 // (4 * self.portion_bytes)))


def _parts(begin: int, length: int, count: int) -> list[tuple[int, int]]:
    """Return about so many parts of a range, the last one first."""
    step = max(1, length // max(count, 1))
    end = begin + length
    return [(at, min(step, end - at)) for at in range(begin, end, step)][::-1]
