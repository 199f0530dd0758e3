"""Zones: where consumers run, and where the partitions that they read have replicas."""

from collections.abc import Mapping

from binwright.group.group import Group
from binwright.packing.zones import NO_ZONES, Zones
from binwright.protocol.model import Slot, TopicPartition


def near_moves(
    known: Zones, moves: Mapping[TopicPartition, tuple[Slot, Slot]]
) -> list[TopicPartition]:
    """Return those of these moves (from, to) after which a partition no longer crosses, sorted."""
    return sorted(
        p for p, (old, new) in moves.items() if known.crosses(p, old) and not known.crosses(p, new)
    )


def zones(group: Group) -> Zones:
    """Return the zones of living consumers and of partitions, if they matter to the group."""
    return known_zones(group) if group.settings.zone_price else NO_ZONES


def known_zones(group: Group) -> Zones:
    """Return what is known about the zones of living consumers and of partitions."""
    return Zones(
        {
            slot: member.zone
            for slot, member in group.members.by_slot.items()
            if member.zone is not None and member.epoch is not None
        },
        {
            TopicPartition(topic, number): near
            for topic, of_topic in group.load.readable_in.items()
            for number, near in of_topic.items()
        },
        group.settings.zone_price,
    )
