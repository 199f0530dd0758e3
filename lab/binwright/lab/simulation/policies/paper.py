"""The paper's controller: its four states with MWF, as its authors ran it.

Landau, Andrade, Barbosa, arXiv 2402.06085. Sentinel compares each consumer's load with what it
sustains, and gives way to Reassign at an overload, and after 10 s in any case (their prototype's
limit for the state). Reassign runs MWF over rates clipped to what a consumer sustains; its result
is carried out whatever it moves. Group Management starts all consumers, then moves partitions by
stop, acknowledgement and start, then ends the empty ones. Their prototype keeps one spare consumer
running, which neither the paper nor its figures count: left out.
"""

from binwright.lab.simulation.policies.interface import Manner, Seen, Target
from binwright.lab.simulation.scenario import Scenario
from binwright.packing.catalogue import algorithm
from binwright.protocol.model import BytesPerSecond

SENTINEL_S = 10.0
"""The longest that the state Sentinel lasts."""
REBALANCE_S = 5.0
"""How long a moving partition is not read: t_reb of the paper's latency model."""


class PaperController:
    """Packs with MWF at each decision, and moves what differs."""

    def __init__(self, scenario: Scenario) -> None:
        self._scenario, self._pack = scenario, algorithm("mwf")
        given = scenario.timing.rebalance_s
        pause_s = REBALANCE_S if given is None else given
        self.manner = Manner(interval_s=SENTINEL_S, at_overload=True, pause_s=pause_s)

    def decide(self, seen: Seen) -> Target:
        """Return MWF's assignment."""
        config, load = self._scenario.config, self._scenario.load
        limit = config.limits.default
        rates = {
            p: BytesPerSecond(min(rate, limit))
            for p, rate in zip(load.partitions, seen.rates, strict=True)
        }
        current = {load.partitions[index]: slot for index, slot in seen.owners.items()}
        target = self._pack(rates, config.capacity, current)
        owners = {load.index[partition]: slot for partition, slot in target.items()}
        return Target(owners, frozenset(owners.values()))
