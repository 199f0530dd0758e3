"""Events per second: the paper's workloads, a stand-in for the one not at hand, and files."""

import csv
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from math import ceil, cos, isfinite, pi
from pathlib import Path

import numpy as np

from binwright.lab.simulation.records.arrivals import RecordLoad
from binwright.protocol.errors import StreamError

PARTITIONS = 5
SKEWED_PARTITIONS = 9
HOT = 0.25
"""The share of each of the two hot partitions of a skewed workload; the others share the rest."""


KNOTS = ((0, 0), (125, 200), (212.5, 150), (300, 275), (387.5, 150), (475, 350), (600, 0))
"""Second and events/s of the paper's first workload; half a cosine lies between two of them."""


def first() -> RecordLoad:
    """Return the paper's first workload, exactly: 109,053 events in ten minutes."""
    seconds = range(round(KNOTS[-1][0]))
    return even("w1", [ceil(between(KNOTS, second + 0.5)) for second in seconds])


def skewed(workload: RecordLoad) -> RecordLoad:
    """Return a workload over nine partitions: two of them have a quarter of the events each."""
    rest = SKEWED_PARTITIONS - 2
    shares = (HOT, HOT, *((1 - 2 * HOT) / rest for _ in range(rest)))
    return replace(workload, name=f"{workload.name}-skew", shares=shares, random=False)


def even(name: str, events: Sequence[int], partitions: int = PARTITIONS) -> RecordLoad:
    """Return a workload whose events go to any partition alike."""
    return RecordLoad(name=name, events=tuple(events), shares=(1 / partitions,) * partitions)


def between(knots: Sequence[tuple[float, float]], at: float) -> float:
    """Return the value at a place between the knots, on half a cosine between two of them."""
    for (left, low), (right, high) in pairwise(knots):
        if at <= right:
            return low + (high - low) * (1 - cos(pi * (at - left) / (right - left))) / 2
    raise ValueError(f"{at} is behind the last knot")


DAY = (
    *((0, 0.38), (2, 0.22), (5.5, 0.148), (8.75, 0.71), (11.5, 0.67), (14, 0.74)),
    *((16.5, 0.62), (19.25, 1.0), (22, 0.76), (24, 0.38)),
)
"""Hour of the day, and pickups as a share of the evening's peak.

By published averages they are lowest from 5 to 6 a.m. (4,271 an hour, against 28,916 at 7 p.m.),
rise until 9 a.m., are fewer at the change of shifts in the late afternoon, most between 7 and
8 p.m., and decrease from 9 p.m. on. The levels between are chosen, see `second`.
"""
DAYS = (1.0, 0.94, 1.0, 1.085, 1.03)
"""Of each day, from 5.30 a.m. to 5.30 a.m.; the first and the last are cut."""
SPEED = 40
"""Seconds of the city in one second of the workload."""
SECONDS = 7_207
EVENTS = 1_312_212
PEAK = 368
SMOOTHING_S = 10
SEED = 2013


def second() -> RecordLoad:
    """Return the stand-in: it begins at midnight and lasts three days and eight hours of the city.

    The levels of `DAY` and `DAYS`, and by how much seconds differ from their neighbours, are chosen
    so that the optimal and the linear autoscaler scale about as often as on the true workload.
    """
    hours = (np.arange(SECONDS) + 0.5) * SPEED / 3600
    days = [DAYS[int((hour + 18.5) // 24)] for hour in hours]
    shape = np.array([between(DAY, hour % 24) for hour in hours]) * days
    normal = np.random.default_rng(SEED).standard_normal(SECONDS + SMOOTHING_S - 1)
    noise = np.convolve(normal, np.ones(SMOOTHING_S) / SMOOTHING_S, "valid")
    low, high = 0.0, 2.0 * PEAK
    events = shape
    for _ in range(60):
        scale = (low + high) / 2
        mean = scale * shape
        events = np.rint(mean + np.sqrt(mean) * noise).clip(0, PEAK)
        low, high = (scale, high) if events.sum() < EVENTS else (low, scale)
    # Seconds hold whole events, so the search ends beside the sum.
    missing = EVENTS - int(events.sum())
    events[: abs(missing)] += np.sign(missing)
    return replace(even("w2", [int(one) for one in events]), is_stand_in=True)


def read(file: Path, partitions: int = PARTITIONS) -> RecordLoad:
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
    valid = [number for number in numbers if number is not None]
    if not any(valid) or len(valid) < len(rows):
        bad = next((text for text, n in zip(rows, numbers, strict=True) if n is None), None)
        what = "has no events" if bad is None else f"{bad!r} is not a number >= 0"
        raise StreamError(f"{file}: {what}; expected events per second, a second a line")
    return even(file.name, [round(number) for number in valid], partitions)


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if isfinite(number) and number >= 0 else None
