"""What people's standing orders and the settings allow, at one moment of the wall clock.

Where orders contradict each other or the settings, a closed consumer (cordoned or drained) comes
before a pin to it, and one slot at least stays open. An adopted value of a setting holds while the
settings give what it replaces. What is not followed is named, and why.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

from binwright.group.config import GroupConfig, Pin
from binwright.packing.rules import NO_RULES, Rules
from binwright.protocol.daily_windows import DailyWindow
from binwright.protocol.model import Slot
from binwright.protocol.orders import (
    AdoptOrder,
    CordonOrder,
    FreezeOrder,
    GroupOrder,
    PinOrder,
    ScaleOrder,
    SettingName,
    setting_text,
    signed,
    subject,
    value_fault,
)


@dataclass(frozen=True, slots=True)
class Controls:
    """The orders in force, and the rules that follow from them.

    Attributes:
        rules: That plans keep to.
        frozen: What freezes moves, as text; empty: nothing does.
        orders: In force, those of the settings too.
        ignored: Orders that are not followed, and why, a sentence each.
        packing: Name of the one that is adopted; None: the settings' own.
        replan_interval_s: As adopted; None: the settings' own.
    """

    rules: Rules = NO_RULES
    frozen: str = ""
    orders: tuple[GroupOrder, ...] = ()
    ignored: tuple[str, ...] = ()
    packing: str | None = None
    replan_interval_s: float | None = None

    def of_slot(self, slot: Slot) -> str:
        """Return the order that closes a slot, as text; empty: none does."""
        cordons = (o for o in self.orders if isinstance(o, CordonOrder) and o.slot == slot)
        return next(map(signed, cordons), "")

    @property
    def scale(self) -> str:
        """Return the order for a number of consumers, as text; empty: there is none."""
        return next((signed(o) for o in self.orders if isinstance(o, ScaleOrder)), "")


NO_CONTROLS = Controls()


def controls(
    standing: Iterable[GroupOrder],
    pins: Iterable[PinOrder],
    frozen_hours: Iterable[DailyWindow],
    max_slots: int,
    wall_ms: int,
) -> Controls:
    """Return what the orders and settings allow now.

    Args:
        standing: Orders in force, by people.
        pins: Of the settings; an order about the same comes before them.
        frozen_hours: Of the settings.
        max_slots: Slots are below this.
        wall_ms: The wall clock, ms since 1970.
    """
    by_subject = {subject(order): order for order in (*pins, *standing)}
    orders = tuple(order for _, order in sorted(by_subject.items()))
    frozen = _frozen(orders, frozen_hours, wall_ms)
    if not orders and not frozen:
        return NO_CONTROLS
    ignored = [f"{signed(o)}; {_beyond(max_slots)}" for o in orders if _slot(o) >= max_slots]
    within = [order for order in orders if _slot(order) < max_slots]
    closed = [order for order in within if isinstance(order, CordonOrder)]
    drained, cordoned, unfollowed = _closed_slots(closed, max_slots)
    pinned: dict[tuple[str, int | None], Slot] = {}
    for order in within:
        if isinstance(order, PinOrder) and order.slot is not None:
            if order.slot in drained | cordoned:
                ignored.append(f"{signed(order)}; that consumer is closed")
            else:
                pinned[order.topic, order.partition] = order.slot
    wanted = next((o for o in orders if isinstance(o, ScaleOrder)), None)
    consumers = None if wanted is None else wanted.consumers
    if wanted is not None and consumers is not None and consumers > max_slots - len(drained):
        ignored.append(f"{signed(wanted)}; there are {max_slots - len(drained)} slots for it")
    rules = Rules(pinned, cordoned, drained, consumers, bool(frozen))
    return Controls(rules, frozen, orders, (*ignored, *unfollowed))


def with_adopted(in_force: Controls, given: Mapping[SettingName, str | None]) -> Controls:
    """Return the controls with the values of settings that people have adopted.

    Args:
        in_force: The orders in force.
        given: The values that the settings give; None: an object gives it, and no order changes it.
    """
    values: dict[SettingName, str] = {}
    ignored: list[str] = []
    for order in in_force.orders:
        if not isinstance(order, AdoptOrder) or order.value is None:
            continue
        if fault := _unadoptable(order, order.value, given[order.setting]):
            ignored.append(f"{signed(order)}; {fault}")
        else:
            values[order.setting] = order.value
    if not values and not ignored:
        return in_force
    interval = values.get("replan_interval_s")
    return replace(
        in_force,
        ignored=(*in_force.ignored, *ignored),
        packing=values.get("packing"),
        replan_interval_s=None if interval is None else float(interval),
    )


@lru_cache(maxsize=64)  # each tick asks for them again
def pin_orders(pins: tuple[Pin, ...]) -> tuple[PinOrder, ...]:
    """Return the pins of the settings as orders, one for each partition that is named."""
    return tuple(
        PinOrder(topic=pin.topic, partition=number, slot=Slot(pin.slot), by="controller.pins")
        for pin in pins
        for number in ((None,) if pin.partitions is None else pin.partitions)
    )


def adoptable(config: GroupConfig) -> dict[SettingName, str | None]:
    """Return the values of the settings that an order may change; None: it may not here."""
    values: dict[SettingName, str | None] = {
        "packing": config.settings.packing,
        "replan_interval_s": setting_text(config.settings.replan_interval_s),
    }
    return {name: None if name in config.given else value for name, value in values.items()}


def _unadoptable(order: AdoptOrder, value: str, configured: str | None) -> str:
    if configured is None:
        return "the group's object gives it, and is to be changed instead"
    if configured != order.replaces:
        return f"the settings give {configured} by now"
    return value_fault(order.setting, value)


def _frozen(orders: Iterable[GroupOrder], frozen_hours: Iterable[DailyWindow], wall_ms: int) -> str:
    for order in orders:
        if isinstance(order, FreezeOrder):
            return signed(order)
    for window in frozen_hours:
        if window.includes(wall_ms):
            return f"moves are frozen {window} UTC (controller.frozen_hours)"
    return ""


def _slot(order: GroupOrder) -> int:
    """Return the slot that an order names; -1: none."""
    slot = order.slot if isinstance(order, PinOrder | CordonOrder) else None
    return -1 if slot is None else slot


def _beyond(max_slots: int) -> str:
    return f"there is no such consumer: controller.max_slots is {max_slots}"


def _closed_slots(
    orders: Iterable[CordonOrder], max_slots: int
) -> tuple[frozenset[Slot], frozenset[Slot], list[str]]:
    """Return the drained slots, the cordoned ones, and the orders that would close the last slot.

    Drains come before cordons.
    """
    drained: set[Slot] = set()
    cordoned: set[Slot] = set()
    unfollowed: list[str] = []
    for order in sorted(orders, key=lambda order: (order.state != "drained", order.slot)):
        if len(drained) + len(cordoned) + 1 >= max_slots:
            unfollowed.append(f"{signed(order)}; it is the last open one (controller.max_slots)")
        elif order.state == "drained":
            drained.add(order.slot)
        else:
            cordoned.add(order.slot)
    return frozenset(drained), frozenset(cordoned), unfollowed
