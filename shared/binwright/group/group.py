"""What is known of a group: its slots, and the owners of partitions and tables.

Controllers rebuild it from metadata partition 0, the orders topic and measurements, so all know the
same. What is about to end processes, the fleet reports.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from math import fsum
from typing import Literal

from immutables import Map

from binwright.group.controls import NO_CONTROLS, Controls
from binwright.group.ownership import Ownership, PartitionOwnership, Released
from binwright.group.rates import MeasuredRates, RateVolatility
from binwright.packing.inputs import Capacity, SlotCapacities, slot_capacities
from binwright.packing.placement import room
from binwright.protocol.daily_windows import DailyWindow
from binwright.protocol.metadata import (
    Accepted,
    LimitsMeasured,
    MeasuredCapacity,
    Proposed,
    TableReport,
)
from binwright.protocol.model import Assignment, BytesPerSecond, PerSlot, Slot, TopicPartition
from binwright.protocol.monitors import Monitors
from binwright.protocol.orders import Approved, PinOrder, SettingName, StandingOrders, setting_text
from binwright.protocol.ports.fleet import Disruption
from binwright.protocol.selection import Selection

Mode = Literal["observe", "approve", "act"]
"""observe: plans are only published. approve: each waits for approval. act: carried out."""
REVISIONS_PER_TERM = 1 << 20


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


@dataclass(frozen=True, slots=True)
class Member:
    """A slot and its last process, from the records that either published or that name it."""

    hello: int | None = None  # the epoch of its last process
    process: str = ""  # that process's name for itself
    sent_ms: int = 0  # its wall clock when it sent its Hello, ms; 0: unknown
    dead: int | None = None  # the last of its epochs that a Dead named
    goodbye: int | None = None  # the last of its epochs that shut down orderly
    ready: bool = False
    leaving: bool = False  # its last report says that it was asked to end
    zone: str | None = None  # where it runs, by its last report
    replied_term: int | None = None  # the term of its last report
    seen_at: float = 0.0
    arrived_at: float = 0.0  # when its Hello was read
    failed_starts: int = 0  # epochs in a row that were declared dead before they were ready
    declared_dead_at: float | None = None  # when we last published its Dead; None: none is pending
    process_ended: bool = False  # the fleet reported its end
    capacity: MeasuredCapacity | None = None  # as last reported, by an earlier process too
    reading: Mapping[TopicPartition, int | None] = field(default_factory=dict)
    """The next offset to stage, as last reported or started."""
    splits: Mapping[TopicPartition, tuple[Slot, ...]] = field(default_factory=dict)
    """Split partitions that it owns or helps to stage -> the owner and the helpers, as reported."""
    writing: Mapping[str, TableReport] = field(default_factory=dict)  # as last reported

    def tables_of(self, topic: str) -> tuple[TableReport, ...]:
        """Return what it last reported of a topic's tables."""
        return tuple(t for name, t in self.writing.items() if topic in t.topics_of(name))

    @property
    def epoch(self) -> int | None:
        """Return the living process: the last Hello, unless that is declared dead or has left."""
        return None if self.hello in (self.dead, self.goodbye) else self.hello

    @property
    def usable(self) -> bool:
        """Whether it may be given partitions and tables: alive, ready, and not asked to end."""
        return self.ready and not self.leaving and self.epoch is not None


@dataclass(frozen=True, slots=True)
class Proposal:
    """A published plan that is not carried out, or not yet."""

    plan: Proposed
    number: int | None = None  # its record's offset; None: not read back yet
    approved: bool = False


@dataclass(frozen=True, slots=True)
class SplitCommand:
    """What a consumer was told of split partitions."""

    partitions: Mapping[TopicPartition, tuple[Slot, ...]]
    epoch: int | None
    sent_at: float


@dataclass(frozen=True, slots=True)
class Group:
    """Everything that a controller knows in one leadership."""

    config: ControllerConfig
    controller: str  # the id in our Claim
    term: int | None = None
    members: Map[Slot, Member] = field(default_factory=Map)
    partitions: PartitionOwnership = field(default_factory=PartitionOwnership)  # with their readers
    writers: Ownership[str] = field(default_factory=Ownership)  # topic -> that of its tables
    rates: MeasuredRates = field(
        default_factory=MeasuredRates
    )  # with the number of each topic's partitions
    monitors: Monitors = field(default_factory=Monitors)
    catch_up: Map[TopicPartition, BytesPerSecond] = field(default_factory=Map)  # beside rates
    known_catch_up: Map[TopicPartition, BytesPerSecond] = field(default_factory=Map)
    """As last published."""
    on_time: Map[str, float] = field(default_factory=Map)
    """Topic -> since when rows of one of its tables or more land in time."""
    splits: Map[TopicPartition, tuple[Slot, ...]] = field(default_factory=Map)
    """Split partitions -> their helpers, who may not have arrived yet."""
    split_commands: Map[Slot, SplitCommand] = field(default_factory=Map)  # the last to each
    readable_in: Map[str, Mapping[int, frozenset[str]]] = field(default_factory=Map)
    """Topic -> partition -> the zones in which it can be read; empty while that costs nothing."""
    limits_measured: LimitsMeasured | None = None  # the last; only observers keep it
    volatility: RateVolatility = field(default_factory=RateVolatility)
    last_plan: Assignment = field(
        default_factory=dict
    )  # target of the last plan that was carried out
    proposal: Proposal | None = None
    early_approval: Approved | None = None  # of a plan that was not read yet
    approved_plan: Accepted | None = None  # the last one; without targets: it is void
    measured_at: float | None = None
    ticked_at: float = 0.0
    wall_ms: int = 0  # the wall clock at the last tick
    orders: StandingOrders = field(default_factory=StandingOrders)
    controls: Controls = NO_CONTROLS  # as of the last tick, or order
    moved: tuple[tuple[int, int], ...] = ()  # in the last hour: minute since 1970, moves planned
    over_budget: tuple[str, ...] = ()  # what of the last plan waits for the budget
    held: tuple[str, ...] = ()  # what orders and settings hold back, as last published
    retired_slots: frozenset[Slot] = frozenset()  # drained ones that were told to end
    desired: frozenset[Slot] = frozenset()  # what the fleet was last told to run
    disruptions: Mapping[Slot, Disruption] = field(default_factory=dict)  # as last reported
    renewable: frozenset[Slot] = frozenset()  # disrupted ones that the fleet may restart
    revisions: int = 0

    @property
    def replan_interval_s(self) -> float:
        """Return the interval at which a smaller plan is computed without a trigger, s."""
        adopted = self.controls.replan_interval_s
        return self.config.replan_interval_s if adopted is None else adopted

    def member(self, slot: Slot) -> Member:
        """Return what is known of a slot; an empty `Member` if no record named it."""
        return self.members.get(slot, Member())

    def with_member(self, slot: Slot, member: Member) -> "Group":
        """Return the group with a changed member."""
        return replace(self, members=self.members.set(slot, member))

    def usable(self) -> list[Slot]:
        """Return the slots that may be given partitions and tables, sorted."""
        return sorted([slot for slot, member in self.members.items() if member.usable])

    def ending(self) -> frozenset[Slot]:
        """Return the slots whose processes the platform ends before long."""
        return frozenset(s for s, why in self.disruptions.items() if why.kind == "node")

    def departs(self, slot: Slot) -> bool:
        """Whether a consumer is asked to end, or the platform ends it before long."""
        why = self.disruptions.get(slot)
        return self.member(slot).leaving or (why is not None and why.kind == "node")

    def is_open(self, slot: Slot) -> bool:
        """Whether a slot may be given more: neither an order nor a disruption closes it."""
        return slot not in self.disruptions and self.controls.rules.is_open(slot)

    def living(self) -> frozenset[Slot]:
        """Return the slots that are known to have a living process."""
        return frozenset(s for s, member in self.members.items() if member.epoch is not None)

    def owning_slots(self) -> frozenset[Slot]:
        """Return the slots that own, start or stop a partition or a table, or help to stage one."""
        return self.partitions.slots | self.writers.slots | self.helping_slots()

    def helping_slots(self) -> frozenset[Slot]:
        """Return the slots that help to stage split partitions, or are to."""
        return frozenset(slot for helpers in self.splits.values() for slot in helpers)

    def helped_loads(self) -> dict[Slot, float]:
        """Return bytes/s of split partitions that helpers stage for their owners."""
        shares: dict[Slot, list[float]] = {}
        for partition, helpers in self.splits.items():
            for slot in helpers:
                shares.setdefault(slot, []).append(self.need(partition))
        return {slot: fsum(each) for slot, each in shares.items()}

    @property
    def capacities(self) -> Capacity:
        """Return what is left of consumers' capacities beside what they help to stage, bytes/s."""
        if not (helped := self.helped_loads()):
            return self.config.capacities
        every = slot_capacities(self.config.capacities)
        left = {slot: room(every.for_slot(slot), load) for slot, load in helped.items()}
        return SlotCapacities(every.default, {**every.named, **left})

    def loads(self) -> dict[Slot, BytesPerSecond]:
        """Return bytes/s per consumer, as assigned now; the sums do not depend on the order."""
        helped = self.helped_loads()
        return {
            slot: BytesPerSecond(
                fsum((*map(self.need, self.partitions.owned_by(slot)), helped.get(slot, 0.0)))
            )
            for slot in self.partitions.slots | helped.keys()
        }

    def need(self, partition: TopicPartition) -> BytesPerSecond:
        """Return what a partition needs of its owner, bytes/s: a share if others help to stage."""
        need = self.whole_need(partition)
        if not self.splits:
            return need
        return BytesPerSecond(need / (1 + len(self.splits.get(partition, ()))))

    def whole_need(self, partition: TopicPartition) -> BytesPerSecond:
        """Return what a partition needs: its rate, 0 if not known, and what catches up, bytes/s."""
        rate = self.rates.get(partition, BytesPerSecond(0.0))
        if not self.catch_up:
            return rate
        return BytesPerSecond(rate + self.catch_up.get(partition, 0.0))

    def needs(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, BytesPerSecond]:
        """Return what these partitions need, bytes/s."""
        return {p: self.need(p) for p in partitions}

    def assignment(self) -> dict[TopicPartition, Slot]:
        """Return the owners; a moving partition belongs to the slot that stops or starts it."""
        return {p: at.slot for p, at in self.partitions.items() if at.slot is not None}

    def unread(self) -> list[TopicPartition]:
        """Return the partitions without a reader that exist, sorted."""
        return sorted(p for p in self.partitions.released if not self.gone(p))

    def gone(self, partition: TopicPartition) -> bool:
        """Whether its topic was measured without it; False while the topic was not measured."""
        count = self.rates.count(partition.topic)
        return count is not None and partition.partition >= count

    def gone_partitions(self) -> list[TopicPartition]:
        """Return all partitions that are gone, sorted; O(topics) while there is none."""
        highest = self.partitions.highest()
        topics = {name for name, number in highest if self.gone(TopicPartition(name, number))}
        if not topics:
            return []
        return sorted(p for p in self.partitions if p.topic in topics and self.gone(p))

    def next_revision(self) -> tuple["Group", int]:
        """Return the group and its next revision, unique across terms.

        Raises:
            ValueError: This controller has no term, so it must not send commands.
        """
        if self.term is None:
            raise ValueError("a controller without a term sends no command")
        number = self.revisions + 1
        return replace(self, revisions=number), self.term * REVISIONS_PER_TERM + number


def add_partitions(group: Group, partitions: Iterable[TopicPartition]) -> Group:
    """Return the group with the new ones of these partitions added, without a reader."""
    new = {p: Released() for p in partitions if p not in group.partitions}
    return replace(group, partitions=group.partitions.changed(new))


def forget_gone(group: Group) -> Group:
    """Drop the partitions that no longer exist, once they have no reader."""
    unread = [p for p in group.gone_partitions() if group.partitions[p].slot is None]
    return replace(group, partitions=group.partitions.without(unread)) if unread else group
