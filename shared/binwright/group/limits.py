"""What consumers sustain, by what each has measured of itself: the limits that plans are made by.

A lightly used consumer measures less than it could read (see the consumer's `decide.capacity`), so
what it measures may raise a limit, and lowers none.
"""

from binwright.group.config import GroupConfig
from binwright.group.group import Group
from binwright.protocol.metadata import LimitsMeasured, MeasuredCapacity
from binwright.protocol.model import BytesPerSecond, PerSlot
from binwright.protocol.quantiles import weighted_quantile

SHARE = 0.75
"""Of what a consumer could read: the rest is for backlogs, and for its neighbors' bursts."""
LOADED = 0.3
"""A consumer that has used this share of its time measures what it could read, not less."""
CHANGE = 0.1
"""A limit that differs by less stays as it is."""
ODD = 0.5
"""A consumer that differs by more from the others has a limit of its own, until it is half as far
from them."""


def measured_limits(group: Group) -> PerSlot | None:
    """Return the limits by what living consumers have measured; None: the present ones hold."""
    start, present = group.config.start_limits, group.config.limits
    return None if start is None else _measured(group, start, present)


def adopt_limits(config: GroupConfig, message: LimitsMeasured) -> GroupConfig:
    """Take over what an earlier leader measured."""
    if (start := config.start_limits) is None:
        return config
    limits = PerSlot(message.limit, {**dict(message.slot_limits), **start.named})
    return config.with_limits(limits)


def _measured(group: Group, start: PerSlot, present: PerSlot) -> PerSlot | None:
    capacities = {
        slot: member.capacity
        for slot, member in group.members.by_slot.items()
        if member.epoch is not None and member.capacity is not None
    }
    measured = {s: _limit(c, start.default) for s, c in capacities.items() if s not in start.named}
    if not measured:
        return None
    # The more of its time a consumer used, the better it knows what it could read.
    weighted = ((limit, capacities[slot].used) for slot, limit in measured.items())
    default = BytesPerSecond(weighted_quantile(weighted, 0.5))
    own = {
        slot: limit
        for slot, limit in measured.items()
        if _is_odd(limit / default, capacities[slot].used, named=slot in present.named)
    }
    limits = PerSlot(default, {**own, **start.named})
    slots = measured.keys() | present.named.keys()
    same = all(_same(limits.for_slot(slot), present.for_slot(slot)) for slot in slots)
    return None if same and _same(default, present.default) else limits


def _limit(measured: MeasuredCapacity, start: BytesPerSecond) -> BytesPerSecond:
    limit = BytesPerSecond(SHARE * measured.bytes_per_s)
    return limit if measured.used >= LOADED else max(limit, start)


def _is_odd(ratio: float, used: float, *, named: bool) -> bool:
    """Whether a consumer's limit is so many times the others' that it has its own."""
    most = 1 + (ODD / 2 if named else ODD)
    return ratio > most or (ratio < 1 / most and used >= LOADED)


def _same(limit: float, present: float) -> bool:
    return abs(limit - present) < CHANGE * present
