"""The settings of one group's controller."""

from dataclasses import dataclass
from typing import Literal

from binwright.packing.capacity import Capacity, SlotCapacities
from binwright.protocol.model import BytesPerSecond, PerSlot
from binwright.protocol.selection import Selection

Mode = Literal["observe", "approve", "act"]
"""observe: plans are only published. approve: each waits for approval. act: carried out."""


@dataclass(frozen=True, slots=True)
class ControllerConfig:
    """What one group's controller decides by; times in seconds, limits in bytes/s."""

    limits: PerSlot  # what each slot's consumer sustains
    capacity: BytesPerSecond  # of a slot with the default limit
    look_again_s: float = 60.0
    consumer_timeout_s: float = 10.0
    start_timeout_s: float = 300.0
    plan_timeout_s: float = 120.0
    repeat_s: float = 10.0
    stale_s: float = 90.0
    max_slots: int = 100
    min_slots: int = 1
    mode: Mode = "act"
    topics: Selection | None = None  # None: every measured topic

    def includes(self, topic: str) -> bool:
        """Whether the group reads this topic."""
        return self.topics is None or self.topics.includes(topic)

    @property
    def capacities(self) -> Capacity:
        """Return what consumers are packed to, bytes/s: the same share of each one's limit."""
        if not self.limits.named:
            return self.capacity
        share = self.capacity / self.limits.default
        named = {s: BytesPerSecond(share * limit) for s, limit in self.limits.named.items()}
        return SlotCapacities(self.capacity, named)
