"""The one budget of a consumer's memory: a share for all that may take some at the same time."""

from dataclasses import dataclass

PROCESS_BYTES = 250_000_000
"""What a consumer takes that writes tables and reads nothing; measured: 215 MB, 85 of them code."""
MOST_VALUE_BYTES = 256_000_000
"""More is of no use: a value of that size stops the event loop for a second at a time."""
COPIES = 4
"""Of rows while they are encoded: as columns, as decoded columns, as a page, compressed."""
VALUE_UNITS, UNITS = 5, 16
LEAST_SHARE = 8  # of a process with too little memory for anything


@dataclass(frozen=True, slots=True)
class MemoryShares:
    """How much a consumer has of each kind at a time, bytes."""

    values: int  # that are being decoded, so also of one value
    buffered: int  # rows that are not staged
    part: int  # rows of a split partition that are read for another consumer
    large: int  # a batch, inflated; a larger one is decoded behind a mark
    encoded: int  # rows that are being encoded; those of one file may be more

    @property
    def needed(self) -> int:
        """Return what all take together, at the most."""
        files = self.buffered + self.part  # of these rows, while they are stored
        # A large batch is there as it is inflated, and as the last record beyond what is buffered.
        read = self.buffered + self.part + 2 * self.large
        return PROCESS_BYTES + self.values + read + files + COPIES * self.encoded


def memory_shares(memory: int, values: int | None = None) -> MemoryShares:
    """Divide the memory of a process, bytes: what the process itself takes is no part of it.

    Args:
        memory: What the process may have.
        values: What the settings give to values; the others have less for it.
    """
    left = max(memory - PROCESS_BYTES, memory // LEAST_SHARE)
    if values is None:
        unit = left // UNITS
        values = min(VALUE_UNITS * unit, MOST_VALUE_BYTES)
    else:
        unit = max(left - values, left // LEAST_SHARE) // (UNITS - VALUE_UNITS)
    return MemoryShares(values, buffered=2 * unit, part=unit // 2, large=unit, encoded=unit)
