"""What every answer has: the group at one moment, and sentences."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from statistics import median
from types import MappingProxyType
from typing import Any, Literal

from binwright.cli.terminal import count
from binwright.look.group_view import GroupView
from binwright.look.plan_history import PastPlan
from binwright.look.status import ConsumerStatus, Status
from binwright.packing.score import lower_bound
from binwright.protocol.group_orders import (
    AdoptOrder,
    CordonOrder,
    FreezeOrder,
    PinOrder,
    ScaleOrder,
    signed,
)
from binwright.protocol.model import BytesPerSecond, PerSlot, Slot, TopicPartition, newest
from binwright.runtime.settings import ControllerSettings, MonitorSettings
from binwright.runtime.settings.programs import LATE_S, STALE_WINDOWS

Kind = Literal["is", "why", "otherwise", "held", "change"]
"""What a line says: how it is, why, what it would cost to do otherwise, what holds that back, and
what would change it.
"""
MOST_NAMED = 10
_CONTROLLER, _MONITOR = ControllerSettings(), MonitorSettings()


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
class Rules:
    """What of the settings decides; their defaults for a group whose settings are not known.

    Attributes:
        packing: Its name.
        zone_price: What bytes that cross zones cost it.
        share: Of its limit that a plan gives a consumer.
        min_slots: Fewest consumers.
        max_slots: Most consumers.
        freshness_s: Age of rows when they are to land; None: not known.
        late_s: See `Settings.late_s`.
        stale_s: See `Settings.stale_s`.
    """

    packing: str = _CONTROLLER.packing
    zone_price: float = _CONTROLLER.zone_price
    share: float = _CONTROLLER.capacity / _CONTROLLER.limit
    min_slots: int = _CONTROLLER.min_slots
    max_slots: int = _CONTROLLER.max_slots
    freshness_s: float | None = None
    late_s: float = LATE_S
    stale_s: float = STALE_WINDOWS * _MONITOR.window_s


class Group:
    """A group at one moment, as explanations need it."""

    def __init__(
        self,
        view: GroupView,
        status: Status,
        rules: Rules,
        now_ms: int,
        stable: Mapping[TopicPartition, int] = MappingProxyType({}),
    ) -> None:
        """Take the view, its status and the rules, all of the same moment (wall clock).

        Args:
            view: Of the group.
            status: Derived from it.
            rules: By which it is led.
            now_ms: Wall clock.
            stable: Partition -> where its first open transaction begins, or its end: consumers that
                read committed records get no further. Partitions of which it is not known lack.
        """
        self.stable = stable
        self.view, self.status, self.now_ms = view, status, now_ms
        orders = view.orders.in_force(now_ms)
        self.adopted = [order for order in orders if isinstance(order, AdoptOrder)]
        self.rules = _with_adopted(rules, self.adopted)
        self.live = [each for each in status.consumers if each.state != "silent"]
        self.readers = {p: each for each in self.live for p in each.partitions}
        self.rates = {p: BytesPerSecond(view.rates.get(p, 0.0)) for p in self.readers}
        self.zones = view.zones(rules.zone_price)

    @property
    def limits(self) -> PerSlot | None:
        """What consumers sustain; None: no controller ever led."""
        return self.status.limits

    def limit(self, slot: Slot) -> float:
        """Return what a consumer sustains, bytes/s."""
        return 0.0 if self.limits is None else self.limits.for_slot(slot)

    def room(self, consumer: ConsumerStatus) -> float:
        """Return how much more a plan would give a consumer, bytes/s."""
        return max(0.0, self.limit(consumer.slot) * self.rules.share - consumer.load)

    @property
    def capacities(self) -> PerSlot:
        """What a plan gives consumers, bytes/s."""
        limits = self.limits or PerSlot(BytesPerSecond(1.0))
        share = self.rules.share
        named = {slot: BytesPerSecond(limit * share) for slot, limit in limits.named.items()}
        return PerSlot(BytesPerSecond(limits.default * share), named)

    @property
    def reading(self) -> int:
        """How many consumers read partitions."""
        return sum(bool(each.partitions) for each in self.live)

    def fewest(self, rates: Iterable[float]) -> int:
        """Return a number of consumers below which these rates cannot be read."""
        largest = max(self.capacities.default, *self.capacities.named.values(), 1.0)
        return lower_bound(sorted(rate / largest for rate in rates))

    def since(self, at_ms: int) -> str:
        """Return how long ago a moment is."""
        return f"{duration((self.now_ms - at_ms) / 1000)} ago"


def _with_adopted(rules: Rules, orders: Iterable[AdoptOrder]) -> Rules:
    """Return the rules with the packing that people have adopted in place of this one."""
    for order in orders:
        if order.setting == "packing" and order.value and order.replaces == rules.packing:
            return replace(rules, packing=order.value)
    return rules


def duration(seconds: float) -> str:
    """Return a time in words: `40 s`, `3 min`, `2 h`, `5 days`."""
    for unit, size, most in (("s", 1, 120), ("min", 60, 7200), ("h", 3600, 172_800)):
        if seconds < most:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds / 86_400:.0f} days"


def clock(at_ms: int) -> str:
    """Return a moment as UTC."""
    return datetime.fromtimestamp(at_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def plan_name(group: Group, past: PastPlan) -> str:
    """Return a plan's number and age."""
    return f"plan {past.number}, {group.since(past.at_ms)}"


def pause(group: Group) -> str:
    """Return for how long a move leaves a partition unread, by the moves that were seen."""
    pauses = [move.pause_s for move in group.view.moves]
    if not pauses:
        return "unknown length (no move was seen)"
    return f"about {median(pauses):.1f} s (median of {count(len(pauses), 'move')})"


def held(group: Group) -> list[Line]:
    """Return what holds plans back."""
    status, rules = group.status, group.rules
    found = [*status.held]
    orders = group.view.orders.in_force(group.now_ms)
    found += [signed(order) for order in orders if isinstance(order, FreezeOrder | ScaleOrder)]
    if status.state in {"empty", "silent"}:
        found.append("no consumer reports")
    if (waiting := status.proposal) is not None:
        number, why = waiting.plan, "; ".join(waiting.reasons)
        if waiting.waits:
            found.append(f"plan {number} waits for `binwright approve {number}`: {why}")
        else:
            found.append(f"the group only observes: plan {number} is shown and not made: {why}")
    if status.moves:
        phases = sorted({move.phase for move in status.moves})
        moves = count(len(status.moves), "move")
        found.append(f"{moves} of the last plan under way ({', '.join(phases)})")
    topics = {topic for table in status.tables for topic in table.topics}
    measured = newest(*map(group.view.measured_ms.get, topics))
    if measured is None:
        found.append("nothing was measured: does a monitor run?")
    elif group.now_ms - measured > 1000 * rules.stale_s:
        found.append(f"the last measurement was {group.since(measured)}: does a monitor run?")
    if group.reading >= rules.max_slots:
        found.append(f"controller.max_slots is {rules.max_slots}")
    if 1 < rules.min_slots >= group.reading:
        found.append(f"controller.min_slots is {rules.min_slots}")
    return [Line("held", text) for text in found] or [Line("held", "nothing holds a plan back")]


def pins_of(group: Group, partition: TopicPartition) -> list[Line]:
    """Return the order that pins a partition, if there is one: its own before its topic's."""
    orders = group.view.orders.in_force(group.now_ms)
    found = [
        order
        for order in orders
        if isinstance(order, PinOrder)
        and order.topic == partition.topic
        and order.partition in {None, partition.partition}
    ]
    found.sort(key=lambda order: order.partition is None)
    return [Line("held", signed(order)) for order in found[:1]]


def cordon_of(group: Group, slot: Slot) -> list[Line]:
    """Return the order that closes a consumer, if there is one."""
    orders = group.view.orders.in_force(group.now_ms)
    found = (order for order in orders if isinstance(order, CordonOrder) and order.slot == slot)
    return [Line("held", signed(order)) for order in found]


def some(names: Iterable[str]) -> str:
    """Return some names, and how many more there are."""
    every: Sequence[str] = list(names)
    rest = f" and {len(every) - MOST_NAMED} more" if len(every) > MOST_NAMED else ""
    return ", ".join(every[:MOST_NAMED]) + rest
