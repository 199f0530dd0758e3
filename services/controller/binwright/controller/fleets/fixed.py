"""A fleet whose slots 0 to n - 1 are started by other means; those that send a Hello are used."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from binwright.fleets.reconcile import check_slots
from binwright.protocol.log_events import LogEvent
from binwright.protocol.model import Slot
from binwright.protocol.ports.fleet import Disruption, Process
from binwright.runtime.logs import log

CONSUMER_HUNG = LogEvent.warning(
    "consumer.hung",
    "A consumer of the fleet `fixed` was declared dead; whoever started the process has to end it.",
)


@dataclass(frozen=True, slots=True)
class FixedFleet:
    """A `Fleet` that starts and ends nothing."""

    max_slots: int

    async def reconcile(self, desired: Collection[Slot]) -> None:
        """Fit `Fleet.reconcile`: raise `ExternalError` for slots beyond the fleet."""
        check_slots(desired, self.max_slots, "of the fixed fleet")

    async def destroy(self, slot: Slot) -> None:
        """Fit `Fleet.destroy`: log that the process must be ended by hand."""
        log(CONSUMER_HUNG, slot=slot, remedy="end its process; it was declared dead")

    def watch(self, ended: Callable[[], None]) -> None:
        """Fit `Fleet.watch`: this fleet sees no process end."""

    async def find_ended(self, processes: Mapping[Slot, Process]) -> Collection[Slot]:  # noqa: ARG002 - the port's
        """Fit `Fleet.find_ended`: none is known to have ended."""
        return ()

    def disruptions(self) -> Mapping[Slot, Disruption]:
        """Fit `Fleet.disruptions`: this fleet knows of none."""
        return {}

    def renew(self, slots: Collection[Slot]) -> None:
        """Fit `Fleet.renew`: this fleet restarts nothing."""

    def update_ready(self, ready: Mapping[Slot, float]) -> None:
        """Fit `Fleet.update_ready`: this fleet renews nothing."""

    def detach(self) -> None:
        """Fit `Fleet.detach`: this fleet maintains nothing."""
