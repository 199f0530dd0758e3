"""A `Fleet` of asyncio tasks, which tests can kill."""

import asyncio
import contextlib
from collections.abc import Callable, Collection, Mapping
from typing import Protocol

from binwright.protocol.errors import ExternalError
from binwright.protocol.model import Slot
from binwright.protocol.ports.fleet import Disruption, Process


class Worker(Protocol):
    """The process of a slot."""

    name: str
    """As in its `Hello`."""

    async def run(self) -> None:
        """Run until drained or failed."""

    def drain(self) -> None:
        """Begin a graceful exit."""


class FakeFleet:
    """A `Fleet` whose processes are tasks on the running loop.

    Attributes:
        starts: Slot -> how often it was started.
        restart_s: Seconds from the end of a desired slot to its restart.
        stuck: Slots that cannot be destroyed.
        reports_ends: Whether `ended` returns killed slots.
        reachable: Whether `ended` succeeds.
        ready: The last argument of `update_ready`.
        renewed: The last argument of `renew`.
        disrupted: What `disruptions` returns.
    """

    def __init__(self, make: Callable[[Slot], Worker], *, restart_s: float = 1.0) -> None:
        """Run the worker that `make` returns for a slot."""
        self.starts: dict[Slot, int] = {}
        self.restart_s = restart_s
        self.reports_ends = False
        self.reachable = True
        self.ready: dict[Slot, float] = {}
        self.renewed: frozenset[Slot] = frozenset()
        self.disrupted: dict[Slot, Disruption] = {}
        self.stuck: set[Slot] = set()
        self._ended: Callable[[], None] = lambda: None
        self._ends: set[str] = set()  # names of processes
        self._make = make
        self._desired: frozenset[Slot] = frozenset()
        self._workers: dict[Slot, Worker] = {}
        self._tasks: dict[Slot, asyncio.Task[None]] = {}

    @property
    def running(self) -> frozenset[Slot]:
        """Return the slots that run now."""
        return frozenset(slot for slot, task in self._tasks.items() if not task.done())

    def worker(self, slot: Slot) -> Worker:
        """Return the current or last worker of this slot."""
        return self._workers[slot]

    async def reconcile(self, desired: Collection[Slot]) -> None:
        """See `Fleet.reconcile`."""
        self._desired = frozenset(desired)
        for slot in sorted(self._desired - self.running):
            self._start(slot)
        for slot in sorted(self.running - self._desired):
            self._workers[slot].drain()

    async def destroy(self, slot: Slot) -> None:
        """See `Fleet.destroy`."""
        if slot in self.stuck:
            raise ExternalError(f"slot {slot}: device or resource busy")
        self.kill(slot)

    def watch(self, ended: Callable[[], None]) -> None:
        """See `Fleet.watch`."""
        self._ended = ended

    async def find_ended(self, processes: Mapping[Slot, Process]) -> Collection[Slot]:
        """See `Fleet.find_ended`; empty unless `reports_ends`."""
        if not self.reachable:
            raise ExternalError("no reply in time")
        seen = self._ends if self.reports_ends else set()
        return [slot for slot, process in processes.items() if process.name in seen]

    def disruptions(self) -> Mapping[Slot, Disruption]:
        """See `Fleet.disruptions`."""
        return {s: why for s, why in self.disrupted.items() if s in self._desired}

    def renew(self, slots: Collection[Slot]) -> None:
        """See `Fleet.renew`."""
        self.renewed = frozenset(slots)

    def update_ready(self, ready: Mapping[Slot, float]) -> None:
        """See `Fleet.update_ready`."""
        self.ready = dict(ready)

    def detach(self) -> None:
        """See `Fleet.detach`: slots continue to run, and are not restarted."""
        self._desired, self._ended = frozenset(), lambda: None

    def kill(self, slot: Slot) -> None:
        """End a slot at once, as kill -9 does."""
        if slot in self.running:
            self._tasks[slot].cancel()
            self._ends.add(self._workers[slot].name)
            self._ended()

    async def close(self) -> None:
        """End everything."""
        self._desired = frozenset()
        for slot in self.running:
            self.kill(slot)
        for task in list(self._tasks.values()):
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.wait([task])

    def _start(self, slot: Slot) -> None:
        self.starts[slot] = self.starts.get(slot, 0) + 1
        self._tasks[slot] = asyncio.create_task(self._live(slot))

    async def _live(self, slot: Slot) -> None:
        worker = self._workers[slot] = self._make(slot)
        try:
            await worker.run()
        finally:
            if slot in self._desired:
                asyncio.get_running_loop().call_later(self.restart_s, self._again, slot)

    def _again(self, slot: Slot) -> None:
        if slot in self._desired and slot not in self.running:
            self._start(slot)
