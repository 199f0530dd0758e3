"""A group as its topics say it: its consumers, its load, what people want, its fleet.

Controllers rebuild it from metadata partition 0, the orders topic and measurements, so all know the
same. What is about to end processes, the fleet reports.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from math import fsum

from binwright.group.config import ControllerSettings, GroupConfig
from binwright.group.fleet import FleetState
from binwright.group.load import MeasuredLoad
from binwright.group.members import Members
from binwright.group.ownership import Released
from binwright.group.people import People
from binwright.packing.inputs import Capacity, SlotCapacities, slot_capacities
from binwright.packing.placement import room
from binwright.protocol.model import BytesPerSecond, Slot, TopicPartition

REVISIONS_PER_TERM = 1 << 20


@dataclass(frozen=True, slots=True)
class Group:
    """Everything that a controller knows in one leadership; what needs two of its values is here.

    `term` is None for those who do not lead, as before their claim is read back.
    """

    config: GroupConfig
    controller: str  # the id in our Claim
    term: int | None = None
    revisions: int = 0
    ticked_at: float = 0.0
    members: Members = field(default_factory=Members)
    load: MeasuredLoad = field(default_factory=MeasuredLoad)
    people: People = field(default_factory=People)
    fleet: FleetState = field(default_factory=FleetState)

    @property
    def settings(self) -> ControllerSettings:
        """The settings that it is decided by; `config` has what stands beside them."""
        return self.config.settings

    @property
    def replan_interval_s(self) -> float:
        """Return the interval at which a smaller plan is computed without a trigger, s."""
        adopted = self.people.controls.replan_interval_s
        return self.config.settings.replan_interval_s if adopted is None else adopted

    def departs(self, slot: Slot) -> bool:
        """Whether a consumer is asked to end, or the platform ends it before long."""
        why = self.fleet.disruptions.get(slot)
        return self.members.get(slot).leaving or (why is not None and why.kind == "node")

    def is_open(self, slot: Slot) -> bool:
        """Whether a slot may be given more: neither an order nor a disruption closes it."""
        return slot not in self.fleet.disruptions and self.people.controls.rules.is_open(slot)

    def helped_loads(self) -> dict[Slot, float]:
        """Return bytes/s of split partitions that helpers stage for their owners."""
        shares: dict[Slot, list[float]] = {}
        for partition, helpers in self.members.splits.items():
            for slot in helpers:
                shares.setdefault(slot, []).append(self.need(partition))
        return {slot: fsum(each) for slot, each in shares.items()}

    @property
    def capacities(self) -> Capacity:
        """Return what is left of consumers' capacities beside what they help to stage, bytes/s."""
        if not (helped := self.helped_loads()):
            return self.config.capacities
        every = slot_capacities(self.config.capacities)
        left = {slot: room(every.for_slot(slot), load) for slot, load in helped.items()}
        return SlotCapacities(every.default, {**every.named, **left})

    def loads(self) -> dict[Slot, BytesPerSecond]:
        """Return bytes/s per consumer, as assigned now; the sums do not depend on the order."""
        helped, partitions = self.helped_loads(), self.members.partitions
        return {
            slot: BytesPerSecond(
                fsum((*map(self.need, partitions.owned_by(slot)), helped.get(slot, 0.0)))
            )
            for slot in partitions.slots | helped.keys()
        }

    def need(self, partition: TopicPartition) -> BytesPerSecond:
        """Return what a partition needs of its owner, bytes/s: a share if others help to stage."""
        need = self.load.need(partition)
        if not self.members.splits:
            return need
        return BytesPerSecond(need / (1 + len(self.members.splits.get(partition, ()))))

    def needs(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, BytesPerSecond]:
        """Return what these partitions need, bytes/s."""
        return {p: self.need(p) for p in partitions}

    def existing(self) -> list[TopicPartition]:
        """Return the partitions that are not gone."""
        return [p for p in self.members.partitions if not self.load.is_gone(p)]

    def owners(self) -> dict[TopicPartition, Slot]:
        """Return the assignment of the partitions that are not gone."""
        assignment = self.members.assignment().items()
        return {p: slot for p, slot in assignment if not self.load.is_gone(p)}

    def unread(self) -> list[TopicPartition]:
        """Return the partitions without a reader that exist, sorted."""
        return sorted(p for p in self.members.partitions.released if not self.load.is_gone(p))

    def gone_partitions(self) -> list[TopicPartition]:
        """Return all partitions that are gone, sorted; O(topics) while there is none."""
        partitions, is_gone = self.members.partitions, self.load.is_gone
        topics = {name for name, n in partitions.highest() if is_gone(TopicPartition(name, n))}
        if not topics:
            return []
        return sorted(p for p in partitions if p.topic in topics and is_gone(p))

    def next_revision(self) -> tuple["Group", int]:
        """Return the group and its next revision, unique across terms.

        Raises:
            ValueError: This controller has no term, so it must not send commands.
        """
        if self.term is None:
            raise ValueError("a controller without a term sends no command")
        number = self.revisions + 1
        return replace(self, revisions=number), self.term * REVISIONS_PER_TERM + number


def add_partitions(group: Group, partitions: Iterable[TopicPartition]) -> Group:
    """Return the group with the new ones of these partitions added, without a reader."""
    new = {p: Released() for p in partitions if p not in group.members.partitions}
    return replace(group, members=group.members.with_owners(new))


def forget_gone(group: Group) -> Group:
    """Drop the partitions that no longer exist, once they have no reader."""
    members = group.members
    unread = [p for p in group.gone_partitions() if members.partitions[p].slot is None]
    if not unread:
        return group
    known = replace(members, partitions=members.partitions.without(unread))
    return replace(group, members=known)
