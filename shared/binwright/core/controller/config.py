"""The settings of one group's controller."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from binwright.core.model import BytesPerSecond, Slot
from binwright.core.packing.capacity import Capacity, SlotCapacities
from binwright.core.selection import Selection

Mode = Literal["observe", "approve", "act"]
"""observe: plans are only published. approve: each waits for approval. act: carried out."""


@dataclass(frozen=True, slots=True)
class ControllerConfig:
    """What one group's controller decides by; times in seconds, limits in bytes/s."""

    limit: BytesPerSecond
    capacity: BytesPerSecond
    look_again_s: float = 60.0
    consumer_timeout_s: float = 10.0
    start_timeout_s: float = 300.0
    plan_timeout_s: float = 120.0
    repeat_s: float = 10.0
    stale_s: float = 90.0
    max_slots: int = 100
    min_slots: int = 1
    mode: Mode = "act"
    limits: Mapping[Slot, BytesPerSecond] = field(
        default_factory=dict
    )  # where they differ from `limit`
    topics: Selection | None = None  # None: every measured topic

    def limit_of(self, slot: Slot) -> BytesPerSecond:
        """Return what a slot's consumer sustains, bytes/s."""
        return self.limits.get(slot, self.limit)

    def includes(self, topic: str) -> bool:
        """Whether the group reads this topic."""
        return self.topics is None or self.topics.includes(topic)

    @property
    def largest_limit(self) -> BytesPerSecond:
        """Return the most that any consumer sustains, bytes/s."""
        return max(self.limit, *self.limits.values()) if self.limits else self.limit

    @property
    def capacities(self) -> Capacity:
        """Return what consumers are packed to, bytes/s: the same share of each one's limit."""
        if not self.limits:
            return self.capacity
        share = self.capacity / self.limit
        return SlotCapacities(
            self.capacity, {s: BytesPerSecond(share * limit) for s, limit in self.limits.items()}
        )
