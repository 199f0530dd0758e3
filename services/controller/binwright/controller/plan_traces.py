"""Traces of plans, from what a group's topic says: which moves a plan made, and how long each took.

A move has two parts: until its old reader has stopped, and from there until the new one has begun,
the pause of the partition.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice

from binwright.group.fold import StateRecord
from binwright.protocol.metadata import Goodbye, Planned, Started, Stopped
from binwright.protocol.model import Slot, TopicPartition
from binwright.runtime.traces import Span, Trace

MAX_MOVES = 1_000  # of a plan; those beyond are only counted


@dataclass(slots=True)
class _Plan:
    """A plan that is carried out; times on the wall clock, ms."""

    began_ms: int
    plan: Planned
    open: dict[TopicPartition, Slot]  # moves that have not ended -> the new reader
    stopped_ms: dict[TopicPartition, int] = field(default_factory=dict)
    ended: list[Span] = field(default_factory=list)

    def stop(self, partition: TopicPartition, at_ms: int) -> None:
        if partition in self.open:
            self.stopped_ms.setdefault(partition, at_ms)

    def start(self, group: str, partition: TopicPartition, slot: Slot, at_ms: int) -> None:
        if self.open.get(partition) != slot:
            return
        del self.open[partition]
        stopped_ms = self.stopped_ms.pop(partition, self.began_ms)
        self.ended.append(
            Span(
                "move",
                self.began_ms,
                at_ms,
                {
                    "binwright.group": group,
                    "messaging.destination.name": partition.topic,
                    "messaging.destination.partition.id": str(partition.partition),
                    "binwright.to": slot,
                },
                (
                    Span("stop reading", self.began_ms, stopped_ms),
                    Span("start reading", stopped_ms, at_ms),
                ),
            )
        )

    def span(self, group: str, ended_ms: int, fault: str = "") -> Span:
        """Return what has been done of it by now."""
        plan = self.plan
        return Span(
            "plan",
            self.began_ms,
            ended_ms,
            {
                "binwright.group": group,
                "binwright.reason": "; ".join(plan.reasons),
                "binwright.consumers": plan.consumers,
                "binwright.moves": len(plan.moves),
                "binwright.rscore": plan.rscore,
            },
            tuple(self.ended),
            fault,
        )


class PlanTraces:
    """Follows the records of a group, and traces each plan when all its moves have ended.

    A plan that another one replaces before is traced as a fault.
    """

    def __init__(self, group: str, trace: Trace) -> None:
        self._group, self._trace = group, trace
        self._plan: _Plan | None = None

    def apply(self, at_ms: int, message: StateRecord) -> None:
        """Take a record; `at_ms` is the wall clock when Kafka got it."""
        if isinstance(message, Planned):
            self._begin(at_ms, message)
        elif (plan := self._plan) is not None:
            match message:
                case Stopped(stopped_ms=stopped_ms):
                    for partition in message.next:
                        plan.stop(partition, stopped_ms or at_ms)
                case Goodbye():
                    for partition in message.next:
                        plan.stop(partition, at_ms)
                case Started(slot=slot):
                    for partition in message.offsets:
                        plan.start(self._group, partition, slot, at_ms)
            self._end_if_done(at_ms)

    def _begin(self, at_ms: int, message: Planned) -> None:
        if self._plan is not None:
            left = f"another plan replaced it, {len(self._plan.open)} moves had not ended"
            self._trace(self._plan.span(self._group, at_ms, left))
        self._plan = _Plan(at_ms, message, dict(islice(_moves(message), MAX_MOVES)))
        self._end_if_done(at_ms)

    def _end_if_done(self, at_ms: int) -> None:
        if self._plan is not None and not self._plan.open:
            self._trace(self._plan.span(self._group, at_ms))
            self._plan = None


def _moves(message: Planned) -> Iterator[tuple[TopicPartition, Slot]]:
    for partition, slot in message.moves.items():
        yield partition, Slot(slot)
