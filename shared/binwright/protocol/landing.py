"""What consumers write to tables' writers, and those of a split partition to each other.

The records of the landing topic.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple

from binwright.protocol.fields import Amount, Epoch, Number, Offset, Partition, SlotNumber
from binwright.protocol.names import FileName, TopicName
from binwright.protocol.wire import Decode, decoder, sole_decoder


class OffsetRange(NamedTuple):
    """Offsets from `first` up to, not including, `next`."""

    first: Offset  # the first in the range
    next: Offset  # the first behind it


@dataclass(frozen=True, slots=True, kw_only=True)
class Staged:
    """A staged file is complete and durable. It holds every record of these ranges, once (†)."""

    topic: TopicName  # whose records are in it
    table: TopicName | None = None  # that takes them; null: the table of the topic's name
    topic_id: str | None  # Kafka's id of the topic; null: the brokers have none
    file: FileName  # its name in the table's staging directory
    rows: Number  # in the file
    bytes: Number  # of the file
    ranges: Mapping[Partition, OffsetRange]  # the offsets in it
    slot: SlotNumber
    epoch: Epoch
    age_s: Amount = 0.0  # since the oldest row was fetched, when this was sent
    cut: tuple[Partition, ...] = ()  # whose log was cut: the range begins at the end it had then
    kind: Literal["staged/1"] = "staged/1"
    KEY: ClassVar = "{0.target}"

    @property
    def target(self) -> str:
        """Return the table that takes its rows."""
        return self.table or self.topic


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
    KEY: ClassVar = "stage-range/{0.helper}"


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
    KEY: ClassVar = "range-staged/{0.helper}"


RangeMessage = StageRange | RangeStaged
"""Records of the landing topic that are no announcements."""

decode_staged: Decode[Staged] = sole_decoder(Staged)
decode_range: Decode[RangeMessage] = decoder(RangeMessage)
