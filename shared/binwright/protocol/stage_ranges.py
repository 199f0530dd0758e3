"""Messages of the consumers of a split partition to each other, in the landing topic."""

from dataclasses import dataclass
from typing import Literal

from binwright.protocol.fields import Epoch, Number, Partition, SlotNumber
from binwright.protocol.messages import OffsetRange, Staged


@dataclass(frozen=True, slots=True, kw_only=True)
class StageRange:
    """The owner of a split partition hands a helper a range of offsets to stage."""

    helper: SlotNumber  # whose turn it is
    slot: SlotNumber  # the owner's
    epoch: Epoch  # the owner's
    number: Number  # of this range, as the owner counts
    partition: Partition  # the split one
    topic_id: str | None  # Kafka's id of the topic; null: the brokers have none
    range: OffsetRange  # what is to be staged
    kind: Literal["stage-range/1"] = "stage-range/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class RangeStaged:
    """A helper has staged the next piece of a range; the owner announces its files."""

    helper: SlotNumber  # who staged it
    slot: SlotNumber  # the owner's
    epoch: Epoch  # the owner's
    number: Number  # of the range
    partition: Partition  # the split one
    piece: OffsetRange  # without offsets: the helper cannot stage what is left of the range
    rows: Number  # in each file
    files: tuple[Staged, ...]  # their announcements, one for each table of the topic
    kind: Literal["range-staged/1"] = "range-staged/1"


RangeMessage = StageRange | RangeStaged
"""Records of the landing topic that are no announcements."""
