"""When a consumer is overloaded by what is measured: found beforehand, as rates are known."""

from collections.abc import Mapping, Sequence

import numpy as np

from binwright.lab.simulation.flow.arrivals import Floats
from binwright.lab.simulation.scenario import TICK_S, Scenario
from binwright.protocol.model import Slot

CLOSE = 1 - 1e-9
"""A load above this share of the limit may be an overload: sums differ in their last digits."""
CHUNK = 512  # seconds that are looked at in one go


def first_overload(
    scenario: Scenario,
    owned: Mapping[Slot, Sequence[int]],
    limits: Mapping[Slot, float],
    now: float,
    last: float,
) -> float:
    """Return the first tick after `now` at which a consumer may be overloaded, at most `last`.

    Args:
        scenario: Gives the rates that are measured.
        owned: The indices of the partitions that each consumer reads.
        limits: Of the same consumers, bytes/s.
        now: Of a tick; ticks are `TICK_S` apart.
        last: Of a tick.
    """
    if not owned:
        return last
    reads = np.zeros((len(scenario.load.partitions), len(owned)))
    for column, indices in enumerate(owned.values()):
        reads[list(indices), column] = 1.0
    most = np.array([limits[slot] for slot in owned]) * CLOSE
    begin = now
    while begin < last:
        count = min(CHUNK, round((last - begin) / TICK_S))
        ticks: Floats = begin + TICK_S * np.arange(1, count + 1, dtype=np.float64)
        over = (scenario.measured(ticks) @ reads > most).any(axis=1)
        if over.any():
            return float(ticks[int(np.argmax(over))])
        begin = float(ticks[-1])
    return last
