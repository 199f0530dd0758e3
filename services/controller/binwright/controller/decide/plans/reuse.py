"""Reuses idle consumers before new ones are started.

A packing chooses slots for new consumers without knowing which ones run. Without this step a
process that has just restarted would be retired while another slot is started.
"""

from binwright.controller.decide.group import Group
from binwright.protocol.model import Assignment, Slot, TopicPartition


def reuse_idle_consumers(group: Group, target: Assignment) -> dict[TopicPartition, Slot]:
    """Return `target` with slots that would start replaced by idle ones of the same limit.

    Ready ones come first. An idle slot lives, owns no partition, and is not draining.
    """
    wanted, owning = frozenset(target.values()), frozenset(group.assignment().values())
    living = group.living()
    idle = sorted(
        (slot for slot in living - owning - wanted if not group.member(slot).leaving),
        key=lambda slot: (not group.member(slot).ready, slot),
    )
    replacements: dict[Slot, Slot] = {}
    for new in sorted(wanted - owning - living):
        limit = group.config.limits.for_slot(new)
        if same_limit := [slot for slot in idle if group.config.limits.for_slot(slot) == limit]:
            replacements[new] = same_limit[0]
            idle.remove(same_limit[0])
    return {partition: replacements.get(slot, slot) for partition, slot in target.items()}
