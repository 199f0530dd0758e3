"""What a reader writes down: when it got which offsets. The same for all that are compared.

A reader is a process; it has a file of its own, named by its process id. Times are those of
`time.monotonic`, which all processes of one Linux machine share.
"""

import struct
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_ROW = struct.Struct("<iqqd")


@dataclass(frozen=True, slots=True)
class Mark:
    """Offsets `first` to `last` of a partition, returned by one poll."""

    partition: int
    first: int
    last: int
    at: float  # s, monotonic
    reader: int  # process id


class Marks:
    """A reader's file; every poll is on disk before the next."""

    def __init__(self, directory: Path, reader: int) -> None:
        self._file = (directory / f"{reader}.marks").open("ab", buffering=0)

    def add(self, polled: dict[int, tuple[int, int]]) -> None:
        """Note what one poll returned: partition -> first and last offset."""
        now = time.monotonic()
        rows = (_ROW.pack(p, first, last, now) for p, (first, last) in polled.items())
        self._file.write(b"".join(rows))


def read_marks(directory: Path) -> list[Mark]:
    """Return all readers' marks, in order of time."""
    return sorted(_each(directory), key=lambda mark: (mark.at, mark.partition))


def has_read(directory: Path, reader: int) -> bool:
    """Whether this reader got anything yet."""
    path = directory / f"{reader}.marks"
    return path.exists() and path.stat().st_size > 0


def _each(directory: Path) -> Iterator[Mark]:
    for path in sorted(directory.glob("*.marks")):
        held = path.read_bytes()
        whole = len(held) // _ROW.size * _ROW.size  # a process that was killed may leave a part
        for partition, first, last, at in _ROW.iter_unpack(held[:whole]):
            yield Mark(partition, first, last, at, int(path.stem))
