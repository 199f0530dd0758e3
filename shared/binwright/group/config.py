"""What a group is decided by: the settings of its controller, and what stands beside them."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from binwright.packing.inputs import Capacity, SlotCapacities
from binwright.protocol.daily_windows import DailyWindow
from binwright.protocol.model import BytesPerSecond, PerSlot, Slot
from binwright.protocol.names import TopicName
from binwright.protocol.section import Positive, Seconds, Section
from binwright.protocol.selection import Selection

Mode = Literal["observe", "approve", "act"]
"""observe: plans are only published. approve: each waits for approval. act: carried out."""
START_BYTES_PER_S = 2_400_000.0
"""The limit until consumers have measured theirs: the paper's, far below what ours sustain."""


def _window(text: str) -> str:
    return str(DailyWindow.parse(text))


class Pin(Section):
    """Partitions that one consumer alone reads."""

    topic: TopicName
    """Of the partitions."""
    partitions: (
        Annotated[tuple[Annotated[int, Field(ge=0, le=2**31 - 1)], ...], Field(min_length=1)] | None
    ) = None
    """Their numbers; unset: all of the topic without a pin of their own."""
    slot: Annotated[int, Field(ge=0)]
    """The consumer's number."""


class ControllerSettings(Section):
    """Limits of consumers, the packing, and the controller's time-outs."""

    limit_bytes_per_s: Positive | Literal["auto"] = "auto"
    """Load that a consumer sustains; a load above it triggers a plan. auto: as it measures it."""
    capacity_bytes_per_s: Positive | None = None
    """Load that a plan gives a consumer; unset: limit x 25/30 (5 s to rebalance, every 30 s)."""
    slot_limits: dict[Annotated[int, Field(ge=0)], Positive] = {}  # noqa: RUF012 - pydantic copies it
    """Limits of single slots, slot to bytes/s; their capacity is the same share of it."""
    packing: str = "sticky"
    """The packing: sticky, sticky:PRICE, exact, or one of the paper's (docs/design/packing.md)."""
    max_slots: Annotated[int, Field(ge=1, le=10_000)] = 100
    """Maximum number of consumers."""
    min_slots: Annotated[int, Field(ge=1, le=10_000)] = 1
    """Minimum number of consumers, as far as there are partitions for them."""
    fleet: Literal["process", "kubernetes", "fixed"] = "process"
    """Where consumers run: child processes, Deployments, or slots started elsewhere."""
    mode: Mode = "act"
    """Plans are only shown, wait for approval, or are carried out."""
    process_logs: Path | None = None
    """Directory for `consumer-N.log` of the process fleet, made if it is missing; unset: the
    controller's own output.
    """
    processes_end_with_controller: bool = False
    """The process fleet ends its consumers before the controller ends; for one container of all."""
    catch_up_s: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 300.0
    """Time in which a backlog is to be read: what that takes counts as load. 0: backlogs do not."""
    split: bool = False
    """Whether several consumers stage a partition that gets more than the limit (mode act)."""
    zone_price: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.0
    """What a byte that crosses zones in `replan_interval_s` costs, in bytes that move. 0: nothing;
    up to 1, only what moves anyway is placed by zones (docs/design/packing.md).
    """
    replan_interval_s: Seconds = 60.0
    """Interval at which a smaller plan is computed without a trigger."""
    consumer_timeout_s: Seconds = 10.0
    """A consumer that has sent no report for this long is declared dead."""
    start_timeout_s: Seconds = 300.0
    """A consumer that reports but is not ready by then is replaced; the next has twice the time."""
    plan_timeout_s: Seconds = 120.0
    """A plan that is not complete by then is replaced by a new one."""
    command_retry_s: Seconds = 10.0
    """A command without an acknowledgement is sent again after this time."""

    pins: Annotated[tuple[Pin, ...], Field(max_length=1000)] = ()
    """Partitions that one consumer alone reads; an order about the same comes before them."""
    frozen_hours: Annotated[
        tuple[Annotated[str, AfterValidator(_window)], ...], Field(max_length=100)
    ] = ()
    """Windows of each day, UTC, as 22:00-06:00, in which nothing moves but what has no reader."""
    moves_per_hour: Annotated[int, Field(ge=0)] | None = None
    """Moves that plans may have in an hour; what has no reader moves anyway. Unset: any number."""
    moves_at_a_time: Annotated[int, Field(ge=1)] | None = None
    """Partitions that move at a time; likewise."""
    moving_bytes_per_s: Positive | None = None
    """Rate of the partitions that move at a time; one moves in any case. Likewise."""

    @property
    def limit(self) -> float:
        """Return what a consumer sustains, bytes/s; if that is measured, the value before."""
        return START_BYTES_PER_S if self.limit_bytes_per_s == "auto" else self.limit_bytes_per_s

    @property
    def capacity(self) -> float:
        """Return the load that a plan gives a consumer, bytes/s; of a measured limit at first."""
        return self.capacity_bytes_per_s or self.limit * 25 / 30

    @property
    def limits(self) -> PerSlot:
        """Return what the consumer of each slot sustains, bytes/s; at first, if it is measured."""
        named = {Slot(slot): BytesPerSecond(limit) for slot, limit in self.slot_limits.items()}
        return PerSlot(BytesPerSecond(self.limit), named)

    @property
    def start_limits(self) -> PerSlot | None:
        """Return `limits` if they are where measured ones begin, else None."""
        return self.limits if self.limit_bytes_per_s == "auto" else None

    @cached_property
    def frozen_windows(self) -> tuple[DailyWindow, ...]:
        """The frozen hours, parsed."""
        return tuple(map(DailyWindow.parse, self.frozen_hours))

    @model_validator(mode="after")
    def _capacity_within_limit(self) -> Self:
        if self.capacity_bytes_per_s is not None and self.limit_bytes_per_s == "auto":
            raise ValueError(
                "capacity_bytes_per_s is given and limit_bytes_per_s is auto: give both, or none "
                "(what is measured sets both)"
            )
        if self.capacity > self.limit:
            raise ValueError(
                f"capacity_bytes_per_s ({self.capacity:g}) must not exceed "
                f"limit_bytes_per_s ({self.limit:g})"
            )
        if self.zone_price and not self.packing.startswith("sticky"):
            raise ValueError(f"zone_price needs the packing sticky, not {self.packing}")
        if self.split and self.mode != "act":
            raise ValueError(f"split needs the mode act, not {self.mode}")
        if self.min_slots > self.max_slots:
            raise ValueError(
                f"min_slots ({self.min_slots}) must not exceed max_slots ({self.max_slots})"
            )
        if beyond := sorted(slot for slot in self.slot_limits if slot >= self.max_slots):
            raise ValueError(f"slot_limits: no slots {beyond}, max_slots is {self.max_slots}")
        if beyond := sorted({pin.slot for pin in self.pins if pin.slot >= self.max_slots}):
            raise ValueError(f"pins: no slots {beyond}, max_slots is {self.max_slots}")
        return self


@dataclass(frozen=True, slots=True)
class GroupConfig:
    """What one group's controller decides by; times in seconds, limits in bytes/s."""

    settings: ControllerSettings
    limits: PerSlot  # what each slot's consumer sustains: as measured by now, or by the settings
    capacity: BytesPerSecond  # of a slot with the default limit
    start_limits: PerSlot | None  # where measured limits begin; None: limits are given
    stale_s: float  # age of measurements from which no plan is made by them
    on_time_s: float  # age of staged rows up to which they land in time
    topics: Selection | None = None  # None: every measured topic
    tables_of: Callable[[str], Iterable[str]] | None = None
    """Names of a topic's tables, by the settings; None: each topic has one of its name."""
    given: frozenset[str] = frozenset()  # settings of the group's object: no order changes them

    @classmethod
    def of(cls, settings: ControllerSettings, *, stale_s: float, on_time_s: float) -> Self:
        """Return the configuration with the limits of the settings."""
        capacity = BytesPerSecond(settings.capacity)
        return cls(settings, settings.limits, capacity, settings.start_limits, stale_s, on_time_s)

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

    def with_settings(self, **changes: Any) -> Self:
        """Return the configuration with some settings changed; the limits stay.

        They are not checked: with fewer slots, pins and orders beyond them are ignored, and named.
        """
        now = {name: getattr(self.settings, name) for name in ControllerSettings.model_fields}
        if unknown := sorted(changes.keys() - now.keys()):
            raise TypeError(f"no settings of a controller: {', '.join(unknown)}")
        return replace(self, settings=ControllerSettings.model_construct(**now | changes))

    def with_limits(self, limits: PerSlot) -> "GroupConfig":
        """Return the configuration with other limits, of which capacities are the same share."""
        share = self.capacity / self.limits.default
        return replace(self, limits=limits, capacity=BytesPerSecond(share * limits.default))
