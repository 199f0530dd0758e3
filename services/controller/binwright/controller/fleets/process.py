"""Consumers as child processes of this machine, for local work and the embedded system.

They outlive a controller that dies: the next one finds them by their command line. Like a
Deployment's pod, a process that ends while it is desired is started again, with growing pauses.
"""

import asyncio
import contextlib
import signal
import socket
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import structlog

from binwright.controller.fleets.keeping import within
from binwright.core.errors import WorldError
from binwright.core.model import Slot
from binwright.core.ports import Process
from binwright.shell.pauses import until_set

log = structlog.get_logger()

WATCH_S = 0.5
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.5, 30.0  # before who died young starts again
STEADY_S = 30.0  # who lived so long starts again without a pause


@dataclass
class _Pause:
    """When a slot may start again."""

    length_s: float = 0.0
    until: float = 0.0


@dataclass
class ProcessFleet:
    """A `Fleet` of processes.

    Attributes:
        command: What runs as a slot; must differ for each slot, and from all else on the machine.
        max_slots: No slot from here on is started.
        environment: Of the processes, whole.
        logs: Where each slot's output goes (`consumer-N.log`); None: where ours goes.
        grace_s: How long after SIGTERM a process has until SIGKILL.
    """

    command: Callable[[Slot], Sequence[str]]
    max_slots: int
    environment: Mapping[str, str]
    logs: Path | None = None
    grace_s: float = 70.0
    _desired: frozenset[Slot] = frozenset()
    _known: bool = False  # whether anybody has said what is desired
    _children: dict[Slot, asyncio.subprocess.Process] = field(default_factory=dict)
    _pauses: dict[Slot, _Pause] = field(default_factory=dict)
    _started: dict[Slot, float] = field(default_factory=dict)
    _retiring: dict[int, float] = field(default_factory=dict)  # pid -> when grace ends
    _ended: Callable[[], None] | None = None
    _changed: asyncio.Event = field(default_factory=asyncio.Event)  # a child has ended
    _waiting: set[asyncio.Task[None]] = field(default_factory=set)
    _looking: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def reconcile(self, desired: Collection[Slot]) -> None:
        """Fit `Fleet.reconcile`."""
        self._desired, self._known = within(desired, self.max_slots), True
        await self._look()

    async def destroy(self, slot: Slot) -> None:
        """Fit `Fleet.destroy`."""
        for process in self.running().get(slot, ()):
            log.warning("process.killed", slot=slot, pid=process.pid)
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()

    def watch(self, ended: Callable[[], None]) -> None:
        """Fit `Fleet.watch`: of our own children."""
        self._ended = ended

    async def ended(self, processes: Mapping[Slot, Process]) -> Collection[Slot]:
        """Fit `Fleet.ended`: also of a former controller's children, of this machine."""
        here = socket.gethostname()
        return [slot for slot, p in processes.items() if p.host == here and _is_gone(p.name)]

    def notice(self, ready: Mapping[Slot, float]) -> None:
        """Fit `Fleet.notice`: nothing is renewed here."""

    def rest(self) -> None:
        """Fit `Fleet.rest`."""
        self._known, self._ended = False, None

    def running(self) -> dict[Slot, list[psutil.Process]]:
        """Return the living processes of each slot, ours and a former controller's."""
        wanted = {tuple(self.command(Slot(i))): Slot(i) for i in range(self.max_slots)}
        found: dict[Slot, list[psutil.Process]] = {}
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.NoSuchProcess, psutil.AccessDenied):
                slot = wanted.get(tuple(process.cmdline()))
                if slot is not None and process.status() != psutil.STATUS_ZOMBIE:
                    found.setdefault(slot, []).append(process)
        return found

    async def run(self) -> None:
        """Keep what is desired running, for ever."""
        while True:
            await until_set(self._changed, WATCH_S)
            self._changed.clear()
            if self._known:
                await self._look()

    async def close(self) -> None:
        """End every process of the fleet, gracefully, then not; return when all are gone."""
        self._desired, self._known = frozenset(), True
        deadline = self._now() + self.grace_s + 10
        while self.running() and self._now() < deadline:
            await self._look()
            await asyncio.sleep(0.1)

    @staticmethod
    def _now() -> float:
        return asyncio.get_running_loop().time()

    async def _look(self) -> None:
        # One look at a time: what another one is starting just now is not seen as running yet.
        async with self._looking:
            await self._put_right()

    async def _put_right(self) -> None:
        running = self.running()
        for slot in sorted(self._desired - running.keys()):
            await self._start(slot)
        for slot, processes in running.items():
            if slot not in self._desired:
                for process in processes:
                    self._retire(slot, process)
        alive = {process.pid for processes in running.values() for process in processes}
        self._retiring = {p: at for p, at in self._retiring.items() if p in alive}

    async def _start(self, slot: Slot) -> None:
        pause = self._pauses.setdefault(slot, _Pause())
        ended = self._children.pop(slot, None)
        if ended is not None:
            code = await ended.wait()
            lived_s = self._now() - self._started[slot]
            longer_s = min(max(FIRST_PAUSE_S, 2 * pause.length_s), LONGEST_PAUSE_S)
            pause.length_s = 0.0 if lived_s > STEADY_S else longer_s
            pause.until = self._now() + pause.length_s
            log.warning(
                "process.ended",
                slot=slot,
                code=code,
                lived_s=round(lived_s, 1),
                log=self._log(slot),
            )
        if self._now() < pause.until:
            return
        self._children[slot] = await self._spawn(slot)
        self._started[slot] = self._now()
        waiting = asyncio.create_task(self._await_end(self._children[slot]))
        self._waiting.add(waiting)
        waiting.add_done_callback(self._waiting.discard)
        log.info("process.started", slot=slot, pid=self._children[slot].pid)

    async def _await_end(self, child: asyncio.subprocess.Process) -> None:
        await child.wait()
        self._changed.set()
        if self._ended is not None:
            self._ended()

    def _log(self, slot: Slot) -> str | None:
        return str(self.logs / f"consumer-{slot}.log") if self.logs else None

    async def _spawn(self, slot: Slot) -> asyncio.subprocess.Process:
        name = self._log(slot)
        try:
            with open(name, "ab") if name else contextlib.nullcontext() as output:  # noqa: ASYNC230, PTH123 - a moment
                return await asyncio.create_subprocess_exec(
                    *self.command(slot),
                    env=dict(self.environment),
                    stdin=asyncio.subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                    start_new_session=True,  # it outlives us, and a Ctrl-C meant for us
                )
        except OSError as exc:
            raise WorldError(f"slot {slot} cannot be started: {exc}") from exc

    def _retire(self, slot: Slot, process: psutil.Process) -> None:
        with contextlib.suppress(psutil.NoSuchProcess):
            if process.pid not in self._retiring:
                log.info("process.retired", slot=slot, pid=process.pid)
                self._retiring[process.pid] = self._now() + self.grace_s
                process.send_signal(signal.SIGTERM)
            elif self._now() > self._retiring[process.pid]:
                log.warning("process.overdue", slot=slot, pid=process.pid, grace_s=self.grace_s)
                process.kill()


def _is_gone(name: str) -> bool:
    """Whether no process of this machine has the number in this name any more."""
    number = name.split("/")[1:2]
    if not number or not number[0].isdecimal():
        return False
    try:
        ended: bool = psutil.Process(int(number[0])).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True
    except psutil.AccessDenied:  # there is one
        return False
    return ended
