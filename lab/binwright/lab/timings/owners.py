"""Who reads what, as the records of metadata partition 0 have it."""

from dataclasses import dataclass, field

from binwright.protocol.messages import Dead, Goodbye, Hello, Inbound, Report, Started
from binwright.protocol.model import Slot, TopicPartition


@dataclass(slots=True)
class Owners:
    """The living process of each slot, and the slot that confirmed each partition."""

    epochs: dict[Slot, int] = field(default_factory=dict)  # of living processes
    by_partition: dict[TopicPartition, Slot] = field(default_factory=dict)
    _ended: set[int] = field(default_factory=set)  # epochs that a Dead or a Goodbye named

    def apply(self, offset: int, message: Inbound) -> None:
        """Apply a record; those of a process that was replaced change nothing."""
        match message:
            case Hello(slot=slot):
                self._end(slot)
                self.epochs[slot] = offset
            case Report(slot=slot, epoch=epoch) if self._is_unknown(slot, epoch):
                self.epochs[slot] = epoch
                self.by_partition |= dict.fromkeys(message.reading, slot)
            case Started(slot=slot, epoch=epoch) if self.epochs.get(slot) == epoch:
                self.by_partition |= dict.fromkeys(message.offsets, slot)
            case Goodbye(slot=slot, epoch=epoch) | Dead(slot=slot, epoch=epoch):
                self._ended.add(epoch)
                if self.epochs.get(slot) == epoch:
                    self._end(slot)
            case _:
                pass

    def _is_unknown(self, slot: Slot, epoch: int) -> bool:
        """Whether it is a living process whose Hello is older than the first record read."""
        return slot not in self.epochs and epoch not in self._ended

    def _end(self, slot: Slot) -> None:
        self.epochs.pop(slot, None)
        self.by_partition = {p: owner for p, owner in self.by_partition.items() if owner != slot}
