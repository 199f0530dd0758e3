"""How long partitions whose fetch failed are left alone, so that other partitions do not wait."""

from collections.abc import Collection
from dataclasses import dataclass

from binwright.protocol.model import TopicPartition

SHORTEST_DELAY_S, LONGEST_DELAY_S = 0.5, 30.0


@dataclass(frozen=True, slots=True)
class _Delay:
    until: float
    duration_s: float
    active: bool = True


class RetryDelays:
    """The delay of each partition; each delay is twice as long as the one before."""

    def __init__(self) -> None:
        self._delays: dict[TopicPartition, _Delay] = {}

    @property
    def partitions(self) -> Collection[TopicPartition]:
        """Return the partitions that are delayed now."""
        return [p for p, delay in self._delays.items() if delay.active]

    def is_new(self, partition: TopicPartition) -> bool:
        """Return whether the partition was not delayed before."""
        return partition not in self._delays

    def add(self, partition: TopicPartition, now: float) -> None:
        """Delay the partition from `now`, seconds, on."""
        last = self._delays.get(partition)
        duration_s = min(2 * last.duration_s, LONGEST_DELAY_S) if last else SHORTEST_DELAY_S
        self._delays[partition] = _Delay(now + duration_s, duration_s)

    def take_expired(self, now: float) -> Collection[TopicPartition]:
        """Return the partitions whose delay has ended, each once."""
        expired = [p for p, delay in self._delays.items() if delay.active and delay.until <= now]
        for partition in expired:
            delay = self._delays[partition]
            self._delays[partition] = _Delay(delay.until, delay.duration_s, active=False)
        return expired

    def forget(self, partition: TopicPartition) -> None:
        """Begin with short delays again: a fetch succeeded, or the partition is stopped."""
        self._delays.pop(partition, None)
