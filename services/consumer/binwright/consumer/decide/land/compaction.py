"""When small files of a table are merged, how many of them at a time, and what that costs.

Pure. What a reader pays for small files is that it opens them: beyond the files that the same bytes
need it opens an *excess*. A table is compacted when that is large; at half of that already if
the bytes fill a file, for what is merged then is never merged again. It is done in portions,
between which other tables have their turns.

First row groups are copied, until files have `MOST_ROW_GROUPS`. Files that are small even then, of
row groups that are smaller still, and those that cannot be copied, are a portion of those that
Spark writes again, where copies are not `most_of` what is in excess.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from zlib import crc32

from binwright.tables.ports import Compaction, Portion, SmallFiles

MOST_ROW_GROUPS = 512
"""Of a file that a merge copies row groups into; decision 33."""
COPY_CPU_S, COPY_MB_CPU_S = 0.008, 0.002
"""What it takes Spark to copy the row groups of a file, where a hundred and more are listed and
copied at a time, and for each MB."""
REWRITE_CPU_S = 0.015
"""What an OPTIMIZE takes it for each small file, where they are as many."""
REWRITE_MB_CPU_S = {True: 0.4, False: 0.08}
"""And for each MB, of decoded and of raw rows."""
PORTION_CPU_S = 10.0
"""What an OPTIMIZE takes at most, on one core of the server: 120 MB of raw rows, 25 of decoded."""
EARLIEST = 0.6
"""Share of `compact_files` at which the first tables are compacted."""
FULL_SHARE = 0.5
"""Share of that at which a table is compacted whose small files fill a large one."""
REST_SHARE = 0.1
"""Share of it that is left when a compaction that has begun ends."""
RETRY_S, LONGEST_RETRY_S = 60.0, 3_600.0
MB = 1_000_000


@dataclass(frozen=True, slots=True)
class CompactionConfig:
    """When a table is compacted."""

    files: int = 0  # that a reader opens in excess, at most; 0: never
    small_bytes: int = 32_000_000  # a file below this is small
    target_bytes: int = 128_000_000  # of the files that are written


@dataclass(frozen=True, slots=True)
class Mergeable:
    """The small files of a table that can be merged with others."""

    files: int = 0
    bytes: int = 0
    excess: int = 0  # files that a reader does not open once they are merged

    def merged(self, done: Compaction, config: CompactionConfig) -> "Mergeable":
        """Return them after a merge of some, about."""
        fewer = done.removed - done.added
        if self.excess <= fewer:
            return Mergeable()
        small = done.added_bytes < done.added * config.small_bytes
        size = self.bytes - done.removed_bytes + small * done.added_bytes
        return Mergeable(self.files - fewer, max(size, 0), self.excess - fewer)

    def after(self, sizes: Iterable[int], config: CompactionConfig) -> "Mergeable":
        """Return them after a commit of files of these sizes, about: what can be merged follows."""
        small = [size for size in sizes if size < config.small_bytes]
        files = self.files + len(small)
        excess = self.excess + len(small) if self.files else max(len(small) - 1, 0)
        return Mergeable(files, self.bytes + sum(small), excess)


def mergeable(parts: Iterable[SmallFiles], config: CompactionConfig) -> Mergeable:
    """Return which of a table's small files can be merged."""
    bins = (each for part in parts for each in _bins(part.sizes, config))
    merged = [(files, size) for files, size in bins if files > 1]
    files = sum(number for number, _ in merged)
    return Mergeable(files, sum(size for _, size in merged), files - len(merged))


def is_due(small: Mergeable, table: str, config: CompactionConfig, *, begun: bool = False) -> bool:
    """Return whether a table is to be compacted now, or, once that has begun, further.

    Tables differ: those that began together would else be due together.
    """
    share = crc32(table.encode()) % 1_000 / 1_000
    most = config.files * (EARLIEST + share * (1 - EARLIEST))
    if begun:
        most *= REST_SHARE
    elif small.bytes >= config.target_bytes:
        most *= FULL_SHARE
    return config.files > 0 and small.excess >= max(most, 1)


def next_portion(
    parts: Collection[SmallFiles], config: CompactionConfig, *, decoded: bool = False
) -> Portion | None:
    """Return what is merged next; None: no two files can be merged.

    It is of the part with the largest excess, and there of the smallest files: these are the most
    files that a reader opens, for the fewest bytes that are written again.

    Args:
        parts: All parts of a table.
        config: When it is compacted.
        decoded: Whether its rows are decoded ones, but for bad records.
    """
    part = max(parts, key=lambda part: _excess(part.sizes, config), default=None)
    if part is None or not _excess(part.sizes, config):
        return None
    sizes = sorted(part.sizes)
    cpu_s, below = 0.0, config.small_bytes
    for number, size in enumerate(sizes):
        cpu_s += REWRITE_CPU_S + REWRITE_MB_CPU_S[decoded and not part.bad] * size / MB
        if cpu_s > PORTION_CPU_S and _excess(sizes[:number], config):
            # A portion is what is below a size, so files of the same size are in one.
            below = next((s for s in sizes[number:] if s > sizes[number - 1]), below)
            break
    return Portion(below, part.day, bad=part.bad, excess=_excess(part.sizes, config))


def most_of(copied: Compaction, portion: Portion) -> bool:
    """Return whether copies have left less than half of the excess of a portion's part.

    If they have not, Spark writes the portion again. So each turn halves the excess, or makes files
    of it that copies could not: they do not become ever more.
    """
    return 2 * (copied.removed - copied.added) >= max(portion.excess, 1)


def _excess(sizes: Sequence[int], config: CompactionConfig) -> int:
    return len(sizes) - len(_bins(sizes, config))


def _bins(sizes: Iterable[int], config: CompactionConfig) -> list[tuple[int, int]]:
    """Return the files that become one, as Delta's OPTIMIZE has it: how many, and their bytes."""
    bins: list[tuple[int, int]] = []
    files = size = 0
    for each in sorted(sizes):  # the smallest first
        if files and size + each > config.target_bytes:
            bins.append((files, size))
            files = size = 0
        files, size = files + 1, size + each
    return [*bins, (files, size)] if files else bins


def merge_cpu_s(sizes: Iterable[int], small_bytes: int, *, decoded: bool = False) -> float:
    """Return what it takes Spark to merge those of these files that are small, CPU seconds.

    Each is copied, as one row group, and its rows are written again if `MOST_ROW_GROUPS` of its
    kind are small.
    """
    small = [size for size in sizes if size < small_bytes]
    again = sum(size for size in small if size * MOST_ROW_GROUPS < small_bytes)
    copied = COPY_CPU_S * len(small) + COPY_MB_CPU_S * sum(small) / MB
    return copied + REWRITE_MB_CPU_S[decoded] * again / MB


def retry_after_s(failures: int) -> float:
    """Return when a compaction is tried again that has failed so often in a row, s."""
    return min(RETRY_S * 2.0 ** (min(failures, 10) - 1), LONGEST_RETRY_S)
