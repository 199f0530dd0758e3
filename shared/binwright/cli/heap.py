"""How much an embedded Spark may hold, and whether what it is to land fits."""

import re
from dataclasses import dataclass

from binwright.core.errors import SettingsError
from binwright.shell.settings import Settings

SHARE = 4
"""A batch may take one part in so many of the heap: Spark decodes it, sorts it, and writes it."""
_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
_HEAP = re.compile(r"([1-9]\d*)([kmgt]?)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class EmbeddedSpark:
    """What the embedded Spark is to be.

    Attributes:
        heap: Of the server, and of each executor of a cluster, in Java's notation.
        workers: Of a standalone cluster, each with one executor; 0: the server does all itself.
    """

    heap: str = "2g"
    workers: int = 0

    @property
    def heap_bytes(self) -> int:
        """Return the heap in bytes; raise `SettingsError` for what Java would not take."""
        found = _HEAP.fullmatch(self.heap)
        if found is None:
            raise SettingsError(f"--spark-memory: expected Java's notation (2g, 512m): {self.heap}")
        return int(found[1]) * _UNITS[found[2].lower()]

    def check(self, settings: Settings) -> None:
        """See that a whole batch fits.

        Raises:
            SettingsError: It does not; says what to change.
        """
        largest = self.heap_bytes // SHARE
        if settings.lake.batch_bytes > largest:
            raise SettingsError(
                f"lake.batch_bytes ({settings.lake.batch_bytes:,}) is more than a quarter of the "
                f"embedded Spark's heap ({self.heap}): give it more with --spark-memory, or set "
                f"lake.batch_bytes to {largest:,} at most"
            )
