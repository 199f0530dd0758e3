"""What a controller has its fleet run, and what that reports."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from binwright.protocol.model import Slot
from binwright.protocol.ports.fleet import Disruption


@dataclass(frozen=True, slots=True)
class FleetState:
    """The slots that are to run, and those whose processes are about to end."""

    desired: frozenset[Slot] = frozenset()  # what the fleet was last told to run
    asked_at: Mapping[Slot, float] = field(default_factory=dict)  # since when those are to run
    retired: frozenset[Slot] = frozenset()  # drained ones that were told to end
    renewable: frozenset[Slot] = frozenset()  # disrupted ones that the fleet may restart
    disruptions: Mapping[Slot, Disruption] = field(default_factory=dict)  # as last reported

    def ending(self) -> frozenset[Slot]:
        """Return the slots whose processes the platform ends before long."""
        return frozenset(s for s, why in self.disruptions.items() if why.kind == "node")

    def rolling(self) -> frozenset[Slot]:
        """Return the slots whose processes run by an older template."""
        return frozenset(s for s, why in self.disruptions.items() if why.kind == "roll")
