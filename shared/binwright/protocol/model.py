"""The types that every package shares: partitions, slots, rates."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, NewType, Self

from binwright.protocol.names import topic_name

PARTITION_DIGITS, HIGHEST_PARTITION = 10, 2**31 - 1

BytesPerSecond = NewType("BytesPerSecond", float)
"""Bytes written to a partition per second, as stored (compressed) on its leader."""

Slot = NewType("Slot", int)
"""A consumer's number i >= 0; it reads its commands from partition i + 1 of the metadata topic."""


@dataclass(frozen=True, slots=True)
class PerSlot:
    """Bytes/s for each slot, each finite and > 0: most have the same."""

    default: BytesPerSecond  # of every slot that is not in `named`
    named: Mapping[Slot, BytesPerSecond] = field(default_factory=dict)

    def for_slot(self, slot: Slot) -> BytesPerSecond:
        """Return what this slot has, bytes/s."""
        return self.named.get(slot, self.default)

    @property
    def largest(self) -> BytesPerSecond:
        """Return the most that any slot has, bytes/s."""
        return max(self.default, *self.named.values()) if self.named else self.default


class TopicPartition(NamedTuple):
    """One partition of a topic; sorts by topic, then number."""

    topic: str
    partition: int

    def __str__(self) -> str:
        """Write it as Kafka's own tools do: `orders-3`."""
        return f"{self.topic}-{self.partition}"

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read `orders-3` back; raise `ValueError` for anything else."""
        topic, dash, number = text.rpartition("-")
        if not (topic and dash and number.isascii() and number.isdigit()):
            raise ValueError(f"not a partition (expected TOPIC-NUMBER): {text!r}")
        if len(number) > PARTITION_DIGITS or int(number) > HIGHEST_PARTITION:
            raise ValueError(f"no partition has this number: {text!r}")
        return cls(topic_name(topic), int(number))


Assignment = Mapping[TopicPartition, Slot]
"""The slot that reads each partition."""

Rates = Mapping[TopicPartition, BytesPerSecond]
"""Partition -> bytes/s written to it."""


def newest(*times_ms: int | None) -> int | None:
    """Return the highest of these times; None if none is known."""
    return max((at for at in times_ms if at is not None), default=None)
