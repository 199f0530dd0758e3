"""What leaves no choice but a new plan, and whether enough is known to make one."""

from binwright.core.group import Group


def forces(group: Group) -> tuple[str, ...]:
    """Tell what leaves no choice but a new plan, in words."""
    found = []
    for slot, load in sorted(group.loads().items()):
        # One partition above the limit by itself has nowhere better to go.
        limit = group.rules.limit_of(slot)
        if load > limit and len(group.partitions.of(slot)) > 1:
            found.append(f"consumer {slot} carries {load:,.0f} B/s, limit {limit:,.0f}")
    wanted = min(group.rules.min_slots, len(group.partitions))
    if 0 < (reading := len(group.loads())) < wanted:  # of none the next line tells
        found.append(f"{reading} of at least {wanted} consumers read")
    if unread := len(group.unread()):
        found.append(f"{unread} without a reader")
    if gone := len(group.all_gone()):
        found.append(f"{gone} gone")
    return tuple(found)


def informed(group: Group, since: float, now: float) -> bool:
    """Whether the measurements are fresh and tell of every topic that somebody holds.

    A topic of which nothing is said for long does not hold up the others.
    """
    fresh = group.measured_at is not None and now - group.measured_at <= group.rules.stale_s
    told = all(topic in group.rates.names for topic in group.partitions.topics)
    return fresh and (told or now - since > group.rules.stale_s)
