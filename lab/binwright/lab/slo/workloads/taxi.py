"""A stand-in for the paper's second workload: New York's taxi trips of January 2013, 40 times fast.

The file itself is not at hand. What is known of it is used: its length, number of events and peak,
and how often and at which cost an optimal and a linear autoscaler scale on it.
"""

from dataclasses import replace

import numpy as np

from binwright.lab.slo.workloads.workload import Workload, between, even

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


def second() -> Workload:
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
