"""What a consumer publishes to a table's writer, in the landing topic."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

from binwright.protocol.fields import Amount, Epoch, Number, Offset, Partition, SlotNumber


class OffsetRange(NamedTuple):
    """Offsets from `first` up to, not including, `next`."""

    first: Offset  # the first in the range
    next: Offset  # the first behind it


@dataclass(frozen=True, slots=True, kw_only=True)
class Staged:
    """A staged file is complete and durable. It holds every record of these ranges, once (†)."""

    topic: str  # whose records are in it
    topic_id: str | None  # Kafka's id of the topic; null: the brokers have none
    file: str  # its name in the table's staging directory
    rows: Number  # in the file
    bytes: Number  # of the file
    ranges: Mapping[Partition, OffsetRange]  # the offsets in it
    slot: SlotNumber
    epoch: Epoch
    age_s: Amount = 0.0  # since the oldest row was fetched, when this was sent
    cut: tuple[Partition, ...] = ()  # whose log was cut: the range begins at the end it had then
    kind: Literal["staged/1"] = "staged/1"
