"""What makes a new plan necessary, and whether enough is measured to make one."""

from binwright.controller.decide.group import Group


def triggers(group: Group) -> tuple[str, ...]:
    """Return what makes a new plan necessary, as text for its reasons; empty: nothing does."""
    found = []
    for slot, load in sorted(group.loads().items()):
        # A single partition above the limit cannot be placed better.
        limit = group.config.limits.for_slot(slot)
        if load > limit and len(group.partitions.owned_by(slot)) > 1:
            found.append(f"consumer {slot} carries {load:,.0f} B/s, limit {limit:,.0f}")
    wanted = min(group.config.min_slots, len(group.partitions))
    if 0 < (reading := len(group.loads())) < wanted:  # with none, all are without a reader
        found.append(f"{reading} of at least {wanted} consumers read")
    if unread := len(group.unread()):
        found.append(f"{unread} without a reader")
    if gone := len(group.gone_partitions()):
        found.append(f"{gone} gone")
    return tuple(found)


def has_fresh_measurements(group: Group, since: float, now: float) -> bool:
    """Whether the measurements are fresh and cover every topic of the group.

    After `stale_s` in this state (`since`) a topic without a measurement is ignored: it does not
    block the others.
    """
    fresh = group.measured_at is not None and now - group.measured_at <= group.config.stale_s
    complete = all(topic in group.rates.names for topic in group.partitions.topics)
    return fresh and (complete or now - since > group.config.stale_s)
