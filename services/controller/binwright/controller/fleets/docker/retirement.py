"""Ends containers: SIGTERM, repeated until they end; after the grace they are removed running."""

from collections.abc import Collection
from dataclasses import dataclass, field
from math import isfinite

from binwright.controller.fleets.docker.engine import Engine
from binwright.controller.fleets.docker.spec import ListedContainer
from binwright.fleets.reconcile import Report


@dataclass
class _Retirement:
    """A container that is being ended."""

    deadline: float  # when it is removed even if it runs
    signalled_at: float = float("-inf")


@dataclass
class Retirements:
    """The containers that are being ended, by id.

    Attributes:
        engine: The engine that runs them.
        grace_s: Seconds from the first SIGTERM to the removal.
        repeat_s: Seconds between SIGTERMs: a process that is just starting misses the first one.
        report: Called at the first SIGTERM, and when a container is overdue.
    """

    engine: Engine
    grace_s: float
    repeat_s: float
    report: Report
    _started: dict[str, _Retirement] = field(default_factory=dict)

    def __contains__(self, container_id: str) -> bool:
        return container_id in self._started

    def __len__(self) -> int:
        return len(self._started)

    def retain(self, ids: Collection[str]) -> None:
        """Forget all containers but these."""
        self._started = {i: each for i, each in self._started.items() if i in ids}

    async def advance(self, found: ListedContainer, now: float) -> bool:
        """Signal a container, or remove it once it has ended or is overdue.

        Args:
            found: The container, as just listed.
            now: Seconds, of the event loop's clock.

        Returns:
            Whether it was removed.
        """
        retirement = self._started.setdefault(found.id, _Retirement(now + self.grace_s))
        ended = found.state not in {"running", "paused"}
        if ended or now > retirement.deadline:
            if not ended:
                text = f"{found.name} did not end in {self.grace_s:g} s"
                self.report("ConsumerOverdue", text, found.slot, warning=True)
            await self.engine.remove(found.id)
            self._started.pop(found.id, None)
            return True
        if now >= retirement.signalled_at + self.repeat_s:
            repeated, retirement.signalled_at = isfinite(retirement.signalled_at), now
            if found.state == "paused":
                await self.engine.unpause(found.id)
            await self.engine.terminate(found.id)
            if not repeated:
                self.report("ConsumerDismissed", found.name, found.slot)
        return False
