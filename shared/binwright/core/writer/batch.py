"""What one commit lands: parts of staged files."""

from collections.abc import Mapping
from dataclasses import dataclass, field

Ranges = Mapping[int, tuple[int, int]]
"""Partition -> (first offset, next offset): all records from `first` up to, not with, `next`."""


@dataclass(frozen=True, slots=True)
class FileSlice:
    """What a batch takes of one staged file."""

    file: str  # its name in the table's staging directory
    ranges: Ranges
    whole: bool  # the file holds nothing else: no row of it needs to be filtered
    bytes: int  # of the file


@dataclass(frozen=True, slots=True)
class Batch:
    """What one commit lands; without slices it is only a stamp."""

    slices: tuple[FileSlice, ...] = ()
    ends: Mapping[int, int] = field(default_factory=dict)  # partition -> committed afterwards
    rows: int = 0  # about: a slice counts the rows of its whole file
    bytes: int = 0

    @property
    def files(self) -> tuple[str, ...]:
        """Return the names of the staged files."""
        return tuple(part.file for part in self.slices)
