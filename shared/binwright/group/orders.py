"""People's orders in the group, and what follows from them at a time."""

from dataclasses import replace

from binwright.group.controls import controls, with_adopted
from binwright.group.group import Group
from binwright.protocol.orders import GroupOrder


def with_order(group: Group, order: GroupOrder) -> Group:
    """Return the group with an order, which holds at once."""
    return at_time(replace(group, orders=group.orders.apply(order)), group.wall_ms)


def at_time(group: Group, wall_ms: int) -> Group:
    """Return the group at this time, ms since 1970: some orders have ended, hours have begun."""
    config = group.config
    found = controls(
        group.orders.in_force(wall_ms),
        config.pins,
        config.frozen_hours,
        config.max_slots,
        wall_ms,
    )
    found = with_adopted(found, config.adoptable)
    # The same object if it is the same: it is compared often.
    found = group.controls if found == group.controls else found
    return replace(group, wall_ms=wall_ms, controls=found)
