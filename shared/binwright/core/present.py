"""An idle consumer takes what a new one would have taken.

A packing numbers new consumers by itself. A process that has just come back after a death would be
retired for one that is to be started yet.
"""

from binwright.core.group import Group
from binwright.core.model import Assignment, Slot, TopicPartition


def by_those_present(group: Group, target: Assignment) -> dict[TopicPartition, Slot]:
    """Return `target` with idle slots, ready ones first, for new ones that sustain as much."""
    wanted, holding = frozenset(target.values()), frozenset(group.assignment().values())
    there = group.living()
    idle = sorted(
        (slot for slot in there - holding - wanted if not group.member(slot).leaving),
        key=lambda slot: (not group.member(slot).ready, slot),
    )
    names: dict[Slot, Slot] = {}
    for new in sorted(wanted - holding - there):
        limit = group.rules.limit_of(new)
        if alike := [slot for slot in idle if group.rules.limit_of(slot) == limit]:
            names[new] = alike[0]
            idle.remove(alike[0])
    return {partition: names.get(slot, slot) for partition, slot in target.items()}
