"""Plans in metadata partition 0: those that are carried out, and those that a person approves."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from binwright.protocol.fields import Amount, Number, Offset, Partition, Rate, SlotNumber, Term
from binwright.protocol.model import Slot, TopicPartition


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """A plan goes ahead. For people and for the next controller: no consumer acts on it."""

    term: Term
    reasons: tuple[str, ...]  # what triggers the plan or what it saves, then what it costs
    consumers: Number  # how many have partitions afterwards
    moves: Mapping[Partition, SlotNumber]  # to the new owner; first starts are not moves
    rscore: Amount  # bytes/s moved, in units of capacity (eq. 11 of the paper)
    rates: Mapping[Partition, Rate]  # bytes/s that the plan was made for
    targets: Mapping[Partition, SlotNumber]  # the owner of each partition afterwards
    keeps: Offset | None = None  # number of the approved plan that it restores; null: none
    kind: Literal["planned/1"] = "planned/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposed:
    """A plan is shown and not carried out; the record's offset is its number."""

    term: Term
    reasons: tuple[str, ...]  # what triggers the plan or what it saves, then what it costs
    consumers: Number  # how many would have partitions
    rscore: Amount  # bytes/s moved, in units of capacity (eq. 11 of the paper)
    owners: Mapping[Partition, SlotNumber]  # the owner of each partition when it was made
    targets: Mapping[Partition, SlotNumber]  # the owner that each partition would have
    waits: bool  # for an approval (mode approve); else it is only shown (mode observe)
    kind: Literal["proposed/1"] = "proposed/1"

    @property
    def moves(self) -> dict[TopicPartition, tuple[Slot, Slot]]:
        """Return what would change hands -> from, to; first starts are not moves."""
        return {
            p: (self.owners[p], owner)
            for p, owner in self.targets.items()
            if self.owners.get(p, owner) != owner
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Approved:
    """A person approves exactly this plan."""

    plan: Offset  # its number
    by: str  # a name for people; it proves nothing
    kind: Literal["approved/1"] = "approved/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepted:
    """An approved plan goes ahead, and is restored after failures until another is accepted."""

    term: Term
    plan: Offset  # its number
    targets: Mapping[Partition, SlotNumber]  # the owner of each partition
    kind: Literal["accepted/1"] = "accepted/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Withdrawn:
    """A proposed plan is out of date."""

    term: Term
    plan: Offset  # its number
    reason: str  # what has changed
    kind: Literal["withdrawn/1"] = "withdrawn/1"
