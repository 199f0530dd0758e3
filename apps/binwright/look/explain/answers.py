"""What every answer has: the group at one moment, and sentences."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from math import fsum
from statistics import median
from types import MappingProxyType
from typing import Any, Literal

from binwright.cli.terminal import count
from binwright.look.group_view import GroupView
from binwright.look.plan_history import PastPlan
from binwright.look.status import ConsumerStatus, Status
from binwright.packing.inputs import slot_capacities
from binwright.packing.score import lower_bound
from binwright.protocol.model import PerSlot, Slot, TopicPartition, newest
from binwright.protocol.orders import (
    AdoptOrder,
    CordonOrder,
    FreezeOrder,
    PinOrder,
    ScaleOrder,
    signed,
)
from binwright.protocol.texts import first_of
from binwright.runtime.settings.group import LATE_S, Settings

Kind = Literal["is", "why", "otherwise", "held", "change"]
"""What a line says: how it is, why, what it would cost to do otherwise, what holds that back, and
what would change it.
"""
MOST_NAMED = 10


@dataclass(frozen=True, slots=True)
class Line:
    """One sentence of an answer."""

    kind: Kind
    text: str


@dataclass(frozen=True, slots=True)
class Explanation:
    """An answer."""

    about: str
    lines: tuple[Line, ...]

    def to_json(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        lines = [{"kind": line.kind, "text": line.text} for line in self.lines]
        return {"about": self.about, "lines": lines}


@dataclass(frozen=True, slots=True)
class FreshnessFacts:
    """When the rows of a group's tables are late.

    Attributes:
        target_s: Age of rows when they are to land; None: not known.
        late_s: See `Settings.late_s`.
    """

    target_s: float | None = None
    late_s: float = LATE_S

    @classmethod
    def of(cls, settings: Settings) -> "FreshnessFacts":
        """Return what the settings of the group itself say."""
        return cls(settings.lake.freshness_s, settings.late_s)


class GroupFacts:
    """A group at one moment, as explanations need it.

    Loads, limits, needs and plans are those of `binwright.group`: what its controller decides by.
    """

    def __init__(
        self,
        view: GroupView,
        status: Status,
        now_ms: int,
        freshness: FreshnessFacts = FreshnessFacts(),
        stable: Mapping[TopicPartition, int] = MappingProxyType({}),
    ) -> None:
        """Take the view and its status, of the same moment (wall clock).

        Args:
            view: Of the group.
            status: Derived from it.
            now_ms: Wall clock.
            freshness: Of its tables.
            stable: Partition -> where its first open transaction begins, or its end: consumers that
                read committed records get no further. Partitions of which it is not known lack.
        """
        self.view, self.status, self.now_ms = view, status, now_ms
        self.freshness, self.stable = freshness, stable
        self.state = view.at(now_ms)
        self.config = self.state.config
        orders = view.orders.in_force(now_ms)
        self.adopted = [order for order in orders if isinstance(order, AdoptOrder)]
        self.live = [each for each in status.consumers if each.state != "silent"]
        self.readers = {p: each for each in self.live for p in each.partitions}
        self.needs = self.state.needs(self.readers)
        self.zones = view.zones(self.config.settings.zone_price)
        self._capacities = slot_capacities(self.state.capacities)

    @property
    def limits(self) -> PerSlot | None:
        """What consumers sustain; None: no controller ever led."""
        return self.status.limits

    def limit(self, slot: Slot) -> float:
        """Return what a consumer sustains, bytes/s."""
        return 0.0 if self.limits is None else self.limits.for_slot(slot)

    @property
    def capacity(self) -> float:
        """What a plan gives a consumer, bytes/s."""
        return self.config.capacity

    def room(self, consumer: ConsumerStatus) -> float:
        """Return how much more a plan would give a consumer, bytes/s."""
        if self.limits is None:
            return 0.0
        own = fsum(map(self.state.need, self.state.members.partitions.owned_by(consumer.slot)))
        return max(0.0, self._capacities.for_slot(consumer.slot) - own)

    @property
    def reading(self) -> int:
        """How many consumers read partitions."""
        return sum(bool(each.partitions) for each in self.live)

    def fewest(self) -> int:
        """Return a number of consumers below which what is needed cannot be read."""
        capacities = slot_capacities(self.config.capacities)
        largest = max(capacities.default, *capacities.named.values(), 1.0)
        return lower_bound(sorted(need / largest for need in self.needs.values()))

    def since(self, at_ms: int) -> str:
        """Return how long ago a moment is."""
        return f"{duration((self.now_ms - at_ms) / 1000)} ago"


def duration(seconds: float) -> str:
    """Return a time in words: `40 s`, `3 min`, `2 h`, `5 days`."""
    for unit, size, most in (("s", 1, 120), ("min", 60, 7200), ("h", 3600, 172_800)):
        if seconds < most:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds / 86_400:.0f} days"


def clock(at_ms: int) -> str:
    """Return a moment as UTC."""
    return datetime.fromtimestamp(at_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def plan_name(group: GroupFacts, past: PastPlan) -> str:
    """Return a plan's number and age."""
    return f"plan {past.number}, {group.since(past.at_ms)}"


def pause(group: GroupFacts) -> str:
    """Return for how long a move leaves a partition unread, by the moves that were seen."""
    pauses = [move.pause_s for move in group.view.moves]
    if not pauses:
        return "unknown length (no move was seen)"
    return f"about {median(pauses):.1f} s (median of {count(len(pauses), 'move')})"


def held(group: GroupFacts) -> list[Line]:
    """Return what holds plans back."""
    status, config = group.status, group.config
    reasons = [*status.held]
    orders = group.view.orders.in_force(group.now_ms)
    reasons += [signed(order) for order in orders if isinstance(order, FreezeOrder | ScaleOrder)]
    if status.state in {"empty", "silent"}:
        reasons.append("no consumer reports")
    if (waiting := status.proposal) is not None:
        number, why = waiting.plan, "; ".join(waiting.reasons)
        if waiting.waits:
            reasons.append(f"plan {number} waits for `binwright approve {number}`: {why}")
        else:
            reasons.append(f"the group only observes: plan {number} is shown and not made: {why}")
    if status.moves:
        phases = sorted({move.phase for move in status.moves})
        moves = count(len(status.moves), "move")
        reasons.append(f"{moves} of the last plan under way ({', '.join(phases)})")
    topics = {topic for table in status.tables for topic in table.topics}
    measured = newest(*map(group.view.measured_ms.get, topics))
    if measured is None:
        reasons.append("nothing was measured: does a monitor run?")
    elif group.now_ms - measured > 1000 * config.stale_s:
        reasons.append(f"the last measurement was {group.since(measured)}: does a monitor run?")
    if group.reading >= config.settings.max_slots:
        reasons.append(f"controller.max_slots is {config.settings.max_slots}")
    if 1 < config.settings.min_slots >= group.reading:
        reasons.append(f"controller.min_slots is {config.settings.min_slots}")
    return [Line("held", text) for text in reasons] or [Line("held", "nothing holds a plan back")]


def pins_of(group: GroupFacts, partition: TopicPartition) -> list[Line]:
    """Return the order that pins a partition, if there is one: its own before its topic's."""
    orders = group.view.orders.in_force(group.now_ms)
    pins = [
        order
        for order in orders
        if isinstance(order, PinOrder)
        and order.topic == partition.topic
        and order.partition in {None, partition.partition}
    ]
    pins.sort(key=lambda order: order.partition is None)
    return [Line("held", signed(order)) for order in pins[:1]]


def cordon_of(group: GroupFacts, slot: Slot) -> list[Line]:
    """Return the order that closes a consumer, if there is one."""
    orders = group.view.orders.in_force(group.now_ms)
    cordons = (order for order in orders if isinstance(order, CordonOrder) and order.slot == slot)
    return [Line("held", signed(order)) for order in cordons]


def some(names: Iterable[str]) -> str:
    """Return some names, and how many more there are."""
    return first_of(list(names), MOST_NAMED)
