"""A fleet of tasks: each slot runs as long as it is desired, and can be killed."""

import asyncio
import contextlib
from collections.abc import Callable, Collection, Mapping
from typing import Protocol

from binwright.core.errors import WorldError
from binwright.core.model import Slot
from binwright.core.ports import Process


class Worker(Protocol):
    """What runs as a slot."""

    name: str
    """As its `Hello` says it."""

    async def run(self) -> None:
        """Work until drained, or failed."""

    def drain(self) -> None:
        """Begin a graceful exit."""


class FakeFleet:
    """A `Fleet` whose processes are tasks on the running loop.

    Attributes:
        born: How often each slot was started.
        restart_s: How long after its end a desired slot runs again.
        stuck: Slots that cannot be destroyed.
        sees_ends: Whether the controller can learn of what was killed.
        answers: Whether it can ask.
        ready: Whom the controller called ready last, and since when.
    """

    def __init__(self, make: Callable[[Slot], Worker], *, restart_s: float = 1.0) -> None:
        """Run what `make` gives for a slot."""
        self.born: dict[Slot, int] = {}
        self.restart_s = restart_s
        self.sees_ends = False
        self.answers = True
        self.ready: dict[Slot, float] = {}
        self.stuck: set[Slot] = set()
        self._ended: Callable[[], None] = lambda: None
        self._ends: set[str] = set()  # names of processes
        self._make = make
        self._desired: frozenset[Slot] = frozenset()
        self._workers: dict[Slot, Worker] = {}
        self._tasks: dict[Slot, asyncio.Task[None]] = {}

    @property
    def running(self) -> frozenset[Slot]:
        """Return who runs now."""
        return frozenset(slot for slot, task in self._tasks.items() if not task.done())

    def worker(self, slot: Slot) -> Worker:
        """Return what runs, or ran last, as this slot."""
        return self._workers[slot]

    async def reconcile(self, desired: Collection[Slot]) -> None:
        """Fit `Fleet.reconcile`."""
        self._desired = frozenset(desired)
        for slot in sorted(self._desired - self.running):
            self._start(slot)
        for slot in sorted(self.running - self._desired):
            self._workers[slot].drain()

    async def destroy(self, slot: Slot) -> None:
        """Fit `Fleet.destroy`."""
        if slot in self.stuck:
            raise WorldError(f"slot {slot}: device or resource busy")
        self.kill(slot)

    def watch(self, ended: Callable[[], None]) -> None:
        """Fit `Fleet.watch`."""
        self._ended = ended

    async def ended(self, processes: Mapping[Slot, Process]) -> Collection[Slot]:
        """Fit `Fleet.ended`, if ends are to be seen."""
        if not self.answers:
            raise WorldError("no answer in time")
        seen = self._ends if self.sees_ends else set()
        return [slot for slot, process in processes.items() if process.name in seen]

    def notice(self, ready: Mapping[Slot, float]) -> None:
        """Fit `Fleet.notice`: it is kept for tests to look at."""
        self.ready = dict(ready)

    def rest(self) -> None:
        """Fit `Fleet.rest`: what runs goes on, what ends stays ended."""
        self._desired, self._ended = frozenset(), lambda: None

    def kill(self, slot: Slot) -> None:
        """End a slot as kill -9 does: nothing is said, nothing is finished."""
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
        self.born[slot] = self.born.get(slot, 0) + 1
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
