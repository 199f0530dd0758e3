"""Rules that people set for a placement: which consumer may read what."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from binwright.protocol.model import Slot, TopicPartition


@dataclass(frozen=True, slots=True)
class Rules:
    """What a placement must keep to; without any, a packing alone decides.

    Attributes:
        pins: Topic and number (None: those of the topic without a pin of their own) -> its only
            reader; none of these slots is closed.
        cordoned: Slots that get nothing more.
        drained: Slots that read nothing.
        consumers: How many read; None: as many as the load needs.
        frozen: Every partition that has a reader stays there.
    """

    pins: Mapping[tuple[str, int | None], Slot] = field(default_factory=dict)
    cordoned: frozenset[Slot] = frozenset()
    drained: frozenset[Slot] = frozenset()
    consumers: int | None = None
    frozen: bool = False

    def __bool__(self) -> bool:
        """Return whether there is any rule."""
        return self != NO_RULES

    def pin(self, partition: TopicPartition) -> Slot | None:
        """Return the slot that a partition is pinned to; None: it is not."""
        if not self.pins:
            return None
        of_topic = self.pins.get((partition.topic, None))
        return self.pins.get((partition.topic, partition.partition), of_topic)

    def only_reader(self, partition: TopicPartition, reader: Slot | None) -> Slot | None:
        """Return the only slot that may read a partition whose reader is `reader`; None: several.

        A freeze comes before a pin.
        """
        return reader if self.frozen and reader is not None else self.pin(partition)

    def allow(self, partition: TopicPartition, slot: Slot, reader: Slot | None) -> bool:
        """Whether a slot may read a partition whose reader is `reader` at present."""
        if (only := self.only_reader(partition, reader)) is not None:
            return slot == only
        return slot not in self.drained and (slot not in self.cordoned or slot == reader)

    def is_open(self, slot: Slot) -> bool:
        """Whether a slot may get more partitions."""
        return slot not in self.cordoned and slot not in self.drained


NO_RULES = Rules()
