"""What a group is decided by."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Literal

from binwright.packing.inputs import Capacity, SlotCapacities
from binwright.protocol.daily_windows import DailyWindow
from binwright.protocol.model import BytesPerSecond, PerSlot
from binwright.protocol.orders import PinOrder, SettingName, setting_text
from binwright.protocol.selection import Selection

Mode = Literal["observe", "approve", "act"]
"""observe: plans are only published. approve: each waits for approval. act: carried out."""


@dataclass(frozen=True, slots=True)
class ControllerConfig:
    """What one group's controller decides by; times in seconds, limits in bytes/s."""

    limits: PerSlot  # what each slot's consumer sustains
    capacity: BytesPerSecond  # of a slot with the default limit
    replan_interval_s: float = 60.0
    consumer_timeout_s: float = 10.0
    start_timeout_s: float = 300.0
    plan_timeout_s: float = 120.0
    command_retry_s: float = 10.0
    stale_s: float = 90.0
    zone_price: float = 0.0  # of bytes that cross zones, in bytes that move; 0: nothing
    catch_up_s: float = 0.0  # in which a backlog is to be read; 0: it adds no consumers
    on_time_s: float = 12.0  # age of staged rows up to which they land in time
    max_slots: int = 100
    min_slots: int = 1
    mode: Mode = "act"
    split: bool = False  # partitions above the limit are staged by several consumers
    start_limits: PerSlot | None = None  # where measured limits begin; None: limits are given
    topics: Selection | None = None  # None: every measured topic
    tables_of: Callable[[str], Iterable[str]] | None = None
    """Names of a topic's tables, by the settings; None: each topic has one of its name."""
    pins: tuple[PinOrder, ...] = ()  # an order about the same comes before them
    frozen_hours: tuple[DailyWindow, ...] = ()
    moves_per_hour: int | None = None  # of partitions, by plans; None: any number
    moves_at_a_time: int | None = None  # likewise
    moving_bytes_per_s: float | None = None  # rate of the partitions that move at a time
    packing: str = "sticky"  # its name
    given: frozenset[str] = frozenset()  # settings of the group's object: no order changes them

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

    @property
    def adoptable(self) -> dict[SettingName, str | None]:
        """Return the values of the settings that an order may change; None: it may not here."""
        values: dict[SettingName, str | None] = {
            "packing": self.packing,
            "replan_interval_s": setting_text(self.replan_interval_s),
        }
        return {name: None if name in self.given else value for name, value in values.items()}

    def with_limits(self, limits: PerSlot) -> "ControllerConfig":
        """Return the configuration with other limits, of which capacities are the same share."""
        share = self.capacity / self.limits.default
        return replace(self, limits=limits, capacity=BytesPerSecond(share * limits.default))
