"""Partitions that are left alone for a while, because asking for them at once is in vain."""

from collections.abc import Collection
from dataclasses import dataclass

from binwright.core.model import TopicPartition

FIRST_S, LONGEST_S = 0.5, 30.0


@dataclass(frozen=True, slots=True)
class _Rest:
    until: float
    for_s: float
    asleep: bool = True


class Resting:
    """Who rests until when; each rest is twice as long as the one before."""

    def __init__(self) -> None:
        self._rests: dict[TopicPartition, _Rest] = {}

    @property
    def partitions(self) -> Collection[TopicPartition]:
        """Return what rests now."""
        return [p for p, rest in self._rests.items() if rest.asleep]

    def new(self, partition: TopicPartition) -> bool:
        """Tell whether it has not rested before."""
        return partition not in self._rests

    def add(self, partition: TopicPartition, now: float) -> None:
        """Let it rest."""
        last = self._rests.get(partition)
        for_s = min(2 * last.for_s, LONGEST_S) if last else FIRST_S
        self._rests[partition] = _Rest(now + for_s, for_s)

    def over(self, now: float) -> Collection[TopicPartition]:
        """Return what has rested long enough, once."""
        awake = [p for p, rest in self._rests.items() if rest.asleep and rest.until <= now]
        for partition in awake:
            rest = self._rests[partition]
            self._rests[partition] = _Rest(rest.until, rest.for_s, asleep=False)
        return awake

    def forget(self, partition: TopicPartition) -> None:
        """Begin with short rests again: it is well, or nobody wants it."""
        self._rests.pop(partition, None)
