"""A workload from a file: events per second."""

import csv
from math import isfinite
from pathlib import Path

from binwright.lab.slo.workloads.workload import PARTITIONS, Workload, even
from binwright.protocol.errors import StreamError


def read(file: Path, partitions: int = PARTITIONS) -> Workload:
    """Read events per second: a number a line, or the last column of a CSV, with or without a head.

    Raises:
        StreamError: The file cannot be read, or it has something else than numbers >= 0.
    """
    try:
        with file.open(newline="", encoding="utf-8") as stream:
            rows = [row[-1].strip() for row in csv.reader(stream) if row]
    except (OSError, UnicodeDecodeError, csv.Error) as exc:
        raise StreamError(f"{file}: {exc}") from exc
    if rows and _number(rows[0]) is None:
        del rows[0]  # the head
    numbers = [_number(text) for text in rows]
    found = [number for number in numbers if number is not None]
    if not any(found) or len(found) < len(rows):
        bad = next((text for text, n in zip(rows, numbers, strict=True) if n is None), None)
        what = "has no events" if bad is None else f"{bad!r} is not a number >= 0"
        raise StreamError(f"{file}: {what}; expected events per second, a second a line")
    return even(file.name, [round(number) for number in found], partitions)


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if isfinite(number) and number >= 0 else None
