"""Somebody else starts slots 0 to n - 1; we only use what says Hello."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

import structlog

from binwright.controller.fleets.keeping import within
from binwright.core.model import Slot
from binwright.core.ports import Process

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class FixedFleet:
    """A `Fleet` that orders nothing."""

    max_slots: int

    async def reconcile(self, desired: Collection[Slot]) -> None:
        """Fit `Fleet.reconcile`: what is beyond the fleet cannot be had."""
        within(desired, self.max_slots, "of the fixed fleet")

    async def destroy(self, slot: Slot) -> None:
        """Fit `Fleet.destroy`: whoever runs the slot must end it."""
        log.warning("consumer.hung", slot=slot, remedy="end its process; it was declared dead")

    def watch(self, ended: Callable[[], None]) -> None:
        """Fit `Fleet.watch`: we see nobody end."""

    async def ended(self, processes: Mapping[Slot, Process]) -> Collection[Slot]:  # noqa: ARG002 - the port's
        """Fit `Fleet.ended`: nobody, as far as we know."""
        return ()

    def notice(self, ready: Mapping[Slot, float]) -> None:
        """Fit `Fleet.notice`: nothing is renewed here."""

    def rest(self) -> None:
        """Fit `Fleet.rest`: there is nothing to leave off."""
