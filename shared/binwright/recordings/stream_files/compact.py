"""A long stream in memory: rates as numbers side by side, rows made when they are asked for."""

from array import array
from collections.abc import Iterable, Sequence
from typing import overload

from binwright.protocol.model import TopicPartition
from binwright.recordings.stream_files.json_rows import PerCent, Row

_Partitions = tuple[TopicPartition, ...]


class CompactStream(Sequence[Row]):
    """A stream of which each rate takes 8 bytes, and 8 more where partitions change their order.

    Rows are made anew at each access: keep one instead of asking for it twice.
    """

    def __init__(self, rows: Iterable[Row] = ()) -> None:
        # Rows of the same partitions in the same order share one tuple of them.
        self._shared: dict[_Partitions, _Partitions] = {}
        self._rows: list[tuple[_Partitions, array[float]]] = []
        for row in rows:
            self.append(row)

    def append(self, row: Row) -> None:
        """Add a row at the end."""
        partitions = tuple(row)
        self._rows.append((self._shared.setdefault(partitions, partitions), _numbers(row)))

    @property
    def partitions(self) -> list[TopicPartition]:
        """Return the partitions of all rows, sorted."""
        return sorted({one for partitions in self._shared for one in partitions})

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self._rows)

    @overload
    def __getitem__(self, index: int) -> Row: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Row]: ...
    def __getitem__(self, index: int | slice) -> Row | Sequence[Row]:
        """Return a row, or several."""
        if isinstance(index, slice):
            return [self[number] for number in range(*index.indices(len(self)))]
        partitions, rates = self._rows[index]
        return dict(zip(partitions, map(PerCent, rates), strict=True))


def _numbers(row: Row) -> "array[float]":
    """Return the rates; whole numbers stay whole, so that they are written as they were read."""
    try:
        return array("q", row.values())
    except (TypeError, OverflowError):
        return array("d", row.values())
