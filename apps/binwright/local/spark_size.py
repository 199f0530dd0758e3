"""The heap of an embedded Spark, and whether a batch fits into it."""

import re
from dataclasses import dataclass

from binwright.protocol.errors import SettingsError
from binwright.runtime.settings.group import Settings

HEAP = "512m"
"""The least with which Spark starts. It lands 1 MB/s, or fifty tables; see docs/operations.md."""
SHARE = 2
"""A batch may take 1/SHARE of the heap: an append of it takes as much, beside what is there."""
_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
_HEAP = re.compile(r"([1-9]\d*)([kmgt]?)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class SparkSize:
    """Size of the embedded Spark.

    Attributes:
        heap: Of the server, and of each executor of a cluster, in Java's notation.
        workers: Of a standalone cluster, each with one executor; 0: the server runs all tasks.
    """

    heap: str = HEAP
    workers: int = 0

    @property
    def heap_bytes(self) -> int:
        """Return the heap in bytes; raise `SettingsError` if it is not in Java's notation."""
        heap = _HEAP.fullmatch(self.heap)
        if heap is None:
            raise SettingsError(f"--spark-memory: expected Java's notation (2g, 512m): {self.heap}")
        return int(heap[1]) * _UNITS[heap[2].lower()]

    def check(self, settings: Settings) -> None:
        """Check that a whole batch fits.

        Raises:
            SettingsError: It does not; says what to change.
        """
        largest = self.heap_bytes // SHARE
        if settings.lake.batch_bytes > largest:
            raise SettingsError(
                f"lake.batch_bytes ({settings.lake.batch_bytes:,}) is more than half of the "
                f"embedded Spark's heap ({self.heap}): give it more with --spark-memory, or set "
                f"lake.batch_bytes to {largest:,} at most"
            )
