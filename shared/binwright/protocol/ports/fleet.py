"""The fleet: runs consumers as processes or pods."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Literal, Protocol

from binwright.protocol.model import Slot


@dataclass(frozen=True, slots=True)
class Process:
    """A consumer's process, as its `Hello` describes it."""

    name: str
    sent_ms: int = 0  # when it sent the `Hello`, by its machine's wall clock; 0: unknown

    @property
    def host(self) -> str:
        """Return the name of its machine or pod."""
        return self.name.partition("/")[0]


@dataclass(frozen=True, slots=True)
class Disruption:
    """Why a slot's process will end, or should, though it runs well.

    Attributes:
        kind: node: the platform ends it before long, because its node goes. roll: it runs by an
            older template, and may go on. evicted: the platform has asked it to end.
        reason: A clause, such as `node worker-3 is cordoned`.
    """

    kind: Literal["node", "roll", "evicted"]
    reason: str


class Fleet(Protocol):
    """Starts and ends the processes of slots."""

    async def reconcile(self, desired: Collection[Slot]) -> None:
        """Make exactly these slots run: start the missing ones, end the others gracefully.

        Returns when the platform has accepted the requests; a process that exits is restarted.

        Raises:
            ExternalError: The platform did not accept a request.
        """

    async def destroy(self, slot: Slot) -> None:
        """End the slot's process at once; it is restarted if the slot is desired."""

    def watch(self, ended: Callable[[], None]) -> None:
        """Call `ended` as soon as a process may have ended, until `detach`."""

    async def find_ended(self, processes: Mapping[Slot, Process]) -> Collection[Slot]:
        """Return the slots whose process, exactly this one, has certainly ended.

        Called after `watch` reports, and every second. Uncertain cases are left out: such a death
        is detected by silence, or by the next `Hello`.

        Raises:
            ExternalError: The platform cannot be asked at present.
        """

    def disruptions(self) -> Mapping[Slot, Disruption]:
        """Return the slots whose processes will end or should, as last seen; called every second.

        The controller has others take over first, and then does not desire the slot any more.
        """

    def renew(self, slots: Collection[Slot]) -> None:
        """Restart these slots, and no others, to take them off their nodes or renew their template.

        For slots whose partitions no other can take over beforehand. One at a time: the next once
        those that were restarted are ready. Holds until the next call.
        """

    def update_ready(self, ready: Mapping[Slot, float]) -> None:
        """Take which slots' current processes are ready, and since when; called every second.

        Seconds of the loop's clock. A rolling restart continues once the restarted process is ready
        and has been so for some time.
        """

    def detach(self) -> None:
        """Leave all processes running and stop managing them: another controller takes over."""
