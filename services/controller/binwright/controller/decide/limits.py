"""Adopts and publishes the limits that consumers have measured."""

from dataclasses import replace

from binwright.controller.decide.events import Action, Publish, Update
from binwright.group.group import Group
from binwright.group.limits import measured_limits
from binwright.protocol.log_events import Log, LogEvent
from binwright.protocol.metadata import LimitsMeasured

LIMITS_MEASURED = LogEvent.info(
    "limits.measured", "Consumers have measured what they sustain; plans go by it from now on."
)


def measure_limits(group: Group) -> Update:
    """Adopt and publish the limits that consumers have measured, where they have changed."""
    present, limits = group.config.limits, measured_limits(group)
    if limits is None:
        return group, ()
    named = tuple(sorted(limits.named.items()))
    message = LimitsMeasured(term=group.term or 0, limit=limits.default, slot_limits=named)
    facts = {"limit": round(limits.default), "was": round(present.default)}
    own = {f"slot_{slot}": round(limit) for slot, limit in named}
    actions: tuple[Action, ...] = (Log(LIMITS_MEASURED, {**facts, **own}), Publish(message))
    return replace(group, config=group.config.with_limits(limits)), actions
