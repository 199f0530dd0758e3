"""The consumers of a group: their processes, and which partitions and tables each owns."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from immutables import Map

from binwright.group.ownership import Owned, Ownership, PartitionOwnership, Starting, State
from binwright.protocol.metadata import LimitsMeasured, MeasuredCapacity, TableReport
from binwright.protocol.model import Slot, TopicPartition


@dataclass(frozen=True, slots=True)
class Member:
    """A slot and its last process, from the records that either published or that name it."""

    hello: int | None = None  # the epoch of its last process
    process: str = ""  # that process's name for itself
    sent_ms: int = 0  # its wall clock when it sent its Hello, ms; 0: unknown
    dead: int | None = None  # the last of its epochs that a Dead named
    goodbye: int | None = None  # the last of its epochs that shut down orderly
    ready: bool = False
    leaving: bool = False  # its last report says that it was asked to end
    zone: str | None = None  # where it runs, by its last report
    replied_term: int | None = None  # the term of its last report
    seen_at: float = 0.0
    arrived_at: float = 0.0  # when its Hello was read
    ready_at: float = 0.0  # when its first report was read by which it is ready
    failed_starts: int = 0  # epochs in a row that were declared dead before they were ready
    declared_dead_at: float | None = None  # when we last published its Dead; None: none is pending
    process_ended: bool = False  # the fleet reported its end
    capacity: MeasuredCapacity | None = None  # as last reported, by an earlier process too
    reading: Mapping[TopicPartition, int | None] = field(default_factory=dict)
    """The next offset to stage, as last reported or started."""
    splits: Mapping[TopicPartition, tuple[Slot, ...]] = field(default_factory=dict)
    """Split partitions that it owns or helps to stage -> the owner and the helpers, as reported."""
    writing: Mapping[str, TableReport] = field(default_factory=dict)  # as last reported

    def tables_of(self, topic: str) -> tuple[TableReport, ...]:
        """Return what it last reported of a topic's tables."""
        return tuple(t for name, t in self.writing.items() if topic in t.topics_of(name))

    @property
    def epoch(self) -> int | None:
        """Return the living process: the last Hello, unless that is declared dead or has left."""
        return None if self.hello in (self.dead, self.goodbye) else self.hello

    @property
    def usable(self) -> bool:
        """Whether it may be given partitions and tables: alive, ready, and not asked to end."""
        return self.ready and not self.leaving and self.epoch is not None


@dataclass(frozen=True, slots=True)
class SplitCommand:
    """What a consumer was told of split partitions."""

    partitions: Mapping[TopicPartition, tuple[Slot, ...]]
    epoch: int | None
    sent_at: float


@dataclass(frozen=True, slots=True)
class Members:
    """The slots that a record named, and the owners of partitions and tables."""

    by_slot: Map[Slot, Member] = field(default_factory=Map)
    partitions: PartitionOwnership = field(default_factory=PartitionOwnership)  # with their readers
    writers: Ownership[str] = field(default_factory=Ownership)  # topic -> that of its tables
    splits: Map[TopicPartition, tuple[Slot, ...]] = field(default_factory=Map)
    """Split partitions -> their helpers, who may not have arrived yet."""
    split_commands: Map[Slot, SplitCommand] = field(default_factory=Map)  # the last to each
    limits_measured: LimitsMeasured | None = None  # the last; only observers keep it

    def get(self, slot: Slot) -> Member:
        """Return what is known of a slot; an empty `Member` if no record named it."""
        return self.by_slot.get(slot, Member())

    def with_member(self, slot: Slot, member: Member) -> "Members":
        """Return the members with a changed one."""
        return replace(self, by_slot=self.by_slot.set(slot, member))

    def with_owners(
        self,
        partitions: Mapping[TopicPartition, State] | None = None,
        writers: Mapping[str, State] | None = None,
    ) -> "Members":
        """Return the members with these states of partitions, and of topics' tables."""
        return replace(
            self,
            partitions=self.partitions.changed(partitions or {}),
            writers=self.writers.changed(writers or {}),
        )

    def usable(self) -> list[Slot]:
        """Return the slots that may be given partitions and tables, sorted."""
        return sorted([slot for slot, member in self.by_slot.items() if member.usable])

    def living(self) -> frozenset[Slot]:
        """Return the slots that are known to have a living process."""
        return frozenset(s for s, member in self.by_slot.items() if member.epoch is not None)

    def owning(self) -> frozenset[Slot]:
        """Return the slots that own, start or stop a partition or a table, or help to stage one."""
        return self.partitions.slots | self.writers.slots | self.helping()

    def helping(self) -> frozenset[Slot]:
        """Return the slots that help to stage split partitions, or are to."""
        return frozenset(slot for helpers in self.splits.values() for slot in helpers)

    def reads(self, slot: Slot) -> bool:
        """Whether a slot owns or starts a partition; not while it only stops some."""
        states = (self.partitions[p] for p in self.partitions.owned_by(slot))
        return any(isinstance(at, Owned | Starting) for at in states)

    def assignment(self) -> dict[TopicPartition, Slot]:
        """Return the owners; a moving partition belongs to the slot that stops or starts it."""
        return {p: at.slot for p, at in self.partitions.items() if at.slot is not None}
