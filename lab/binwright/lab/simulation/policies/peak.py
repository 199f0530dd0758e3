"""A group that is provisioned for its peak, and never changes."""

from collections.abc import Mapping

import numpy as np

from binwright.lab.simulation.policies.interface import Manner, Seen, Target
from binwright.lab.simulation.scenario import Scenario
from binwright.protocol.model import Slot

FOR_EVER_S = 1e9


class PeakProvisioned:
    """The fewest consumers of which none is ever overloaded, although no partition moves.

    Whoever provisions for the peak knows it, so the whole load is looked at. Partitions are spread
    by their own highest rates, the largest first, each to the consumer with the least so far. A
    partition that is faster than a consumer is alone, as nothing helps it.
    """

    def __init__(self, scenario: Scenario) -> None:
        load, limit = scenario.load, scenario.config.limits.default
        rates = np.minimum(load.rates, limit)
        peaks = dict(enumerate(rates.max(axis=0).tolist()))
        least = max(1, int(np.ceil(rates.sum(axis=1).max() / limit)))
        for consumers in range(least, len(peaks) + 1):
            self._target = _spread(peaks, consumers)
            if _highest(self._target, rates) <= limit:
                break
        self.manner = Manner(interval_s=FOR_EVER_S)

    def decide(self, seen: Seen) -> Target:
        """Return the same target always."""
        del seen
        return self._target


def _spread(sizes: Mapping[int, float], consumers: int) -> Target:
    loads = [(0.0, Slot(slot)) for slot in range(consumers)]
    owners: dict[int, Slot] = {}
    for index in sorted(sizes, key=lambda index: (-sizes[index], index)):
        least, slot = min(loads)
        owners[index] = slot
        loads[slot] = (least + sizes[index], slot)
    return Target(owners, frozenset(slot for _, slot in loads))


def _highest(target: Target, rates: np.ndarray) -> float:
    """Return the highest load of any consumer in any row, bytes/s."""
    found = 0.0
    for slot in target.slots:
        indices = [index for index, owner in target.owners.items() if owner == slot]
        found = max(found, float(rates[:, indices].sum(axis=1).max()))
    return found
