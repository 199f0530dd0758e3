"""The reaction of `brokers.mode = "observe"`: a plan in the log and in metrics; nothing moves."""

import asyncio
from collections.abc import Iterable, Iterator

import structlog

from binwright.balancer.decide.lines import Crossing, Line
from binwright.balancer.watch import Look
from binwright.runtime.clock import loop_s
from binwright.runtime.metrics import Sample

log = structlog.get_logger()

PLAN_AGAIN_S = 3_600.0
"""A plan costs a core for seconds: the same lines are not planned for again within this time."""


class PlanPace:
    """When to plan: for other lines than before at once, for the same ones once an hour."""

    def __init__(self) -> None:
        self._lines: frozenset[Line] = frozenset()
        self._again_at = 0.0

    def due(self, crossed: Iterable[Crossing]) -> bool:
        """Whether to plan now, for these lines; none: never."""
        before, self._lines = self._lines, frozenset(each.line for each in crossed)
        if not self._lines or (self._lines == before and loop_s() < self._again_at):
            return False
        self._again_at = loop_s() + PLAN_AGAIN_S
        return True


class Observing:
    """Proposes a plan when other lines are crossed than before."""

    def __init__(self) -> None:
        self._pace = PlanPace()
        self._logged: frozenset[Line] = frozenset()
        self._bytes: int | None = None  # of the plan that is proposed

    async def react(self, look: Look) -> None:
        """See `Reaction`."""
        due, lines = self._pace.due(look.crossed), frozenset(each.line for each in look.crossed)
        if not lines:
            self._bytes, self._logged = None, lines
        if not due:
            return
        self._bytes = None
        plan = await look.find_plan()
        if not plan.moves:
            return  # the replicas are too large for anything better
        self._bytes = plan.bytes
        if lines != self._logged:
            self._logged = lines
            log.info(
                "balance.proposed",
                reasons=[each.text for each in look.crossed],
                partitions=len(plan.moves),
                bytes=plan.bytes,
            )

    async def rest(self, seconds: float) -> None:
        """See `Reaction`."""
        await asyncio.sleep(seconds)

    def samples(self) -> Iterator[Sample]:
        """See `Reaction`."""
        if self._bytes is not None:
            yield Sample("binwright_brokers_proposed_bytes", self._bytes)
