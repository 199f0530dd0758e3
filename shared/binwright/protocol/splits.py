"""Split partitions: which consumers stage one together, as controllers and consumers tell it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

from binwright.protocol.fields import Epoch, Number, Partition, SlotNumber, Term


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitReading:
    """All split partitions that this consumer owns or helps to stage; others are split no more."""

    term: Term
    epoch: Epoch  # of the process that it is for
    partitions: Mapping[Partition, tuple[SlotNumber, ...]]  # -> its owner, then its helpers
    kind: Literal["split-reading/1"] = "split-reading/1"


class StagedShare(NamedTuple):
    """What one consumer has staged of a split partition."""

    slot: SlotNumber  # the consumer's
    rows: Number  # since the partition was split
