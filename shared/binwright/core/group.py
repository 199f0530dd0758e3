"""What a controller knows of its group: every slot, who reads what, who writes which table.

All of it is folded from metadata partition 0, so any controller that reads it knows the same.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from math import fsum

from immutables import Map

from binwright.core.drift import Drift
from binwright.core.messages import Accepted, Proposed, TableReport
from binwright.core.model import Assignment, BytesPerSecond, Slot, TopicPartition
from binwright.core.monitors import Monitors
from binwright.core.ownership import Ownership, Partitions, Released
from binwright.core.rules import Rules
from binwright.core.topics import Topics

REVISIONS_PER_TERM = 1 << 20


@dataclass(frozen=True, slots=True)
class Member:
    """A slot, by what it published and what was published about it."""

    hello: int | None = None  # the epoch of its last process
    process: str = ""  # that process's name for itself
    sent_ms: int = 0  # its wall clock as it sent its Hello; 0: not told
    dead: int | None = None  # the last of its epochs that a Dead named
    goodbye: int | None = None  # the last of its epochs that left in good order
    ready: bool = False
    leaving: bool = False  # asked to end, and says so
    answered: int | None = None  # the term it last reported under
    heard_at: float = 0.0
    arrived_at: float = 0.0  # when its Hello was read
    failed_starts: int = (
        0  # how many of its epochs on end were declared dead before they were ready
    )
    declared_dead_at: float | None = None  # when we last wrote Dead, not read back yet
    ended: bool = False  # the fleet saw it end
    reading: Mapping[TopicPartition, int | None] = field(default_factory=dict)
    """The next offset to stage, as last reported or started."""
    writing: Mapping[str, TableReport] = field(default_factory=dict)  # as last reported

    @property
    def epoch(self) -> int | None:
        """Return the living process: the last Hello, unless it was declared dead or left."""
        return None if self.hello in (self.dead, self.goodbye) else self.hello

    @property
    def usable(self) -> bool:
        """Whether it may be given partitions and tables: alive, ready, and to stay."""
        return self.epoch is not None and self.ready and not self.leaving


@dataclass(frozen=True, slots=True)
class Offer:
    """A plan that is shown and not carried out, or not yet."""

    plan: Proposed
    number: int | None = None  # its record's offset; None: not read back yet
    approved: bool = False


@dataclass(frozen=True, slots=True)
class Group:
    """Everything one leadership knows."""

    rules: Rules
    controller: str  # the id in our Claim
    term: int | None = None
    members: Map[Slot, Member] = field(default_factory=Map)
    partitions: Partitions = field(default_factory=Partitions)  # and their readers
    writers: Ownership[str] = field(default_factory=Ownership)  # of tables, by their topics
    rates: Topics = field(default_factory=Topics)  # and which partitions there are
    monitors: Monitors = field(default_factory=Monitors)
    drift: Drift = field(default_factory=Drift)
    last_plan: Assignment = field(default_factory=dict)  # of the last plan that went ahead
    offer: Offer | None = None
    kept: Accepted | None = None  # the plan that was approved last; no targets: it is void
    measured_at: float | None = None
    ticked_at: float = 0.0
    revisions: int = 0

    def member(self, slot: Slot) -> Member:
        """Return what is known of a slot; of one never heard of, nothing."""
        return self.members.get(slot, Member())

    def usable(self) -> list[Slot]:
        """Return the slots that may be given partitions and tables, sorted."""
        return sorted(slot for slot, member in self.members.items() if member.usable)

    def living(self) -> frozenset[Slot]:
        """Return the slots that have a living process, as far as is known."""
        return frozenset(s for s, member in self.members.items() if member.epoch is not None)

    def holders(self) -> frozenset[Slot]:
        """Return the slots that have a partition or a table."""
        return self.partitions.slots | self.writers.slots

    def loads(self) -> dict[Slot, BytesPerSecond]:
        """Return bytes/s per consumer, as assigned now; the same sums whatever the order."""
        rate = self.rates.get
        return {
            slot: BytesPerSecond(fsum(rate(p, 0.0) for p in self.partitions.of(slot)))
            for slot in self.partitions.slots
        }

    def assignment(self) -> dict[TopicPartition, Slot]:
        """Return who has what, moves in flight counted where they are."""
        return {p: at.slot for p, at in self.partitions.items() if at.slot is not None}

    def unread(self) -> list[TopicPartition]:
        """Return what nobody reads and somebody should, sorted."""
        return sorted(p for p in self.partitions.free if not self.gone(p))

    def gone(self, partition: TopicPartition) -> bool:
        """Whether its topic was measured without it; a topic not measured yet proves nothing."""
        count = self.rates.count(partition.topic)
        return count is not None and partition.partition >= count

    def all_gone(self) -> list[TopicPartition]:
        """Return all partitions that are gone, sorted; costs by the topics while there is none."""
        highest = self.partitions.highest()
        topics = {name for name, number in highest if self.gone(TopicPartition(name, number))}
        if not topics:
            return []
        return sorted(p for p in self.partitions if p.topic in topics and self.gone(p))

    def next_revision(self) -> tuple["Group", int]:
        """Draw a revision that no other term can draw."""
        if self.term is None:
            raise ValueError("a controller without a term commands nothing")
        number = self.revisions + 1
        return replace(self, revisions=number), self.term * REVISIONS_PER_TERM + number


def discovered(group: Group, partitions: Iterable[TopicPartition]) -> Group:
    """Return the group with those of these that are new: nobody reads them yet."""
    new = {p: Released() for p in partitions if p not in group.partitions}
    return replace(group, partitions=group.partitions.changed(new))


def forget_gone(group: Group) -> Group:
    """Drop partitions that left their topic, once nobody reads them."""
    away = [p for p in group.all_gone() if group.partitions[p].slot is None]
    return replace(group, partitions=group.partitions.without(away)) if away else group
