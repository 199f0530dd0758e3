"""How long partitions whose fetch failed are left alone, so that other partitions do not wait."""

from collections.abc import Collection

from binwright.protocol.model import TopicPartition
from binwright.runtime.backoff import Backoff


class RetryDelays:
    """The delay of each partition; each delay is twice as long as the one before."""

    def __init__(self) -> None:
        self._backoffs: dict[TopicPartition, Backoff] = {}
        self._until: dict[TopicPartition, float] = {}  # s, of those that are delayed now

    @property
    def partitions(self) -> Collection[TopicPartition]:
        """Return the partitions that are delayed now."""
        return list(self._until)

    def is_new(self, partition: TopicPartition) -> bool:
        """Return whether the partition was not delayed before."""
        return partition not in self._backoffs

    def add(self, partition: TopicPartition, now: float) -> None:
        """Delay the partition from `now`, seconds, on."""
        backoff = self._backoffs.setdefault(partition, Backoff())
        self._until[partition] = now + backoff.next()

    def take_expired(self, now: float) -> Collection[TopicPartition]:
        """Return the partitions whose delay has ended, each once."""
        expired = [p for p, until in self._until.items() if until <= now]
        for partition in expired:
            del self._until[partition]
        return expired

    def forget(self, partition: TopicPartition) -> None:
        """Begin with short delays again: a fetch succeeded, or the partition is stopped."""
        self._backoffs.pop(partition, None)
        self._until.pop(partition, None)
