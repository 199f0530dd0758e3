"""Consumers as child processes on this machine, or in the controller's own container.

They outlive a controller that crashes: the next one finds them by their command line. Like a
Deployment's pod, a process that ends while it is desired is restarted, with growing pauses.
"""

import asyncio
import contextlib
import os
import signal
import socket
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from binwright.fleets.reconcile import check_slots
from binwright.protocol.errors import ExternalError
from binwright.protocol.log_events import LogEvent
from binwright.protocol.model import Slot
from binwright.protocol.ports.fleet import Disruption, Process
from binwright.runtime.backoff import until_set
from binwright.runtime.clock import loop_s
from binwright.runtime.logs import log
from binwright.runtime.settings.group import Settings

PROCESS_KILLED = LogEvent.warning(
    "process.killed", "A consumer process was killed because it was declared dead."
)
PROCESS_ENDED = LogEvent.warning(
    "process.ended", "A consumer process ended by itself and is started again."
)
PROCESS_STARTED = LogEvent.info("process.started", "A consumer process was started.")
PROCESS_RETIRED = LogEvent.info("process.retired", "A consumer process is asked to end.")
PROCESS_OVERDUE = LogEvent.warning(
    "process.overdue", "A consumer process did not end within its grace period and is killed."
)

# A look reads the command lines of all processes; of our own children we are told when they end.
WATCH_S, WATCH_SETTLED_S = 0.5, 2.0
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.5, 30.0  # before the restart of a process that ended early
STEADY_S = 30.0  # a process that lived longer is restarted without a pause


@dataclass
class _Pause:
    """When a slot may be started again."""

    length_s: float = 0.0
    until: float = 0.0


@dataclass
class ProcessFleet:
    """A `Fleet` of processes.

    Attributes:
        command: Returns a slot's command line; unique to the slot among the machine's processes.
        max_slots: Only slots below this number are started.
        environment: Returns the whole environment of a slot's process.
        logs: The directory of the slots' output (`consumer-N.log`); None: the controller's output.
        grace_s: Seconds from SIGTERM to SIGKILL.
        owned: Whether a process with a slot's command line is one of this fleet.
    """

    command: Callable[[Slot], Sequence[str]]
    max_slots: int
    environment: Callable[[Slot], Mapping[str, str]]
    logs: Path | None = None
    grace_s: float = 70.0
    owned: Callable[[psutil.Process], bool] = lambda _: True
    _desired: frozenset[Slot] = frozenset()
    _settled: bool = False  # whether what ran at the last look is what is desired
    _attached: bool = False  # whether `reconcile` was called since the start, or since `detach`
    _children: dict[Slot, asyncio.subprocess.Process] = field(default_factory=dict)
    _pauses: dict[Slot, _Pause] = field(default_factory=dict)
    _started: dict[Slot, float] = field(default_factory=dict)
    _retiring: dict[int, float] = field(default_factory=dict)  # pid -> when it gets SIGKILL
    _on_end: Callable[[], None] | None = None
    _changed: asyncio.Event = field(default_factory=asyncio.Event)  # a child has ended
    _waiting: set[asyncio.Task[None]] = field(default_factory=set)
    _reconciling: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def reconcile(self, desired: Collection[Slot]) -> None:
        """Fit `Fleet.reconcile`."""
        self._desired, self._attached = check_slots(desired, self.max_slots), True
        await self._reconcile()

    async def destroy(self, slot: Slot) -> None:
        """Fit `Fleet.destroy`."""
        for process in self.running().get(slot, ()):
            log(PROCESS_KILLED, slot=slot, pid=process.pid)
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()

    def watch(self, ended: Callable[[], None]) -> None:
        """Fit `Fleet.watch`, for this controller's own children."""
        self._on_end = ended

    async def find_ended(self, processes: Mapping[Slot, Process]) -> Collection[Slot]:
        """Fit `Fleet.find_ended`, for all processes of this machine, whichever controller's."""
        host = socket.gethostname()
        return [slot for slot, p in processes.items() if p.host == host and _has_ended(p.name)]

    def disruptions(self) -> Mapping[Slot, Disruption]:
        """Fit `Fleet.disruptions`: who ends a process sends it SIGTERM, and it hands over then."""
        return {}

    def renew(self, slots: Collection[Slot]) -> None:
        """Fit `Fleet.renew`: this fleet restarts nothing that runs."""

    def update_ready(self, ready: Mapping[Slot, float]) -> None:
        """Fit `Fleet.update_ready`: this fleet renews nothing."""

    def detach(self) -> None:
        """Fit `Fleet.detach`."""
        self._attached, self._on_end = False, None

    def running(self) -> dict[Slot, list[psutil.Process]]:
        """Return the running processes of each slot, ours and an earlier controller's."""
        slots = {tuple(self.command(slot)): slot for slot in map(Slot, range(self.max_slots))}
        processes: dict[Slot, list[psutil.Process]] = {}
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.NoSuchProcess, psutil.AccessDenied):
                slot = slots.get(tuple(process.cmdline()))
                if slot is None or process.status() == psutil.STATUS_ZOMBIE:
                    continue
                if self.owned(process):
                    processes.setdefault(slot, []).append(process)
        return processes

    async def run(self) -> None:
        """Keep the desired slots running, for ever."""
        while True:
            await until_set(self._changed, WATCH_SETTLED_S if self._settled else WATCH_S)
            self._changed.clear()
            if self._attached:
                await self._reconcile()

    async def close(self) -> None:
        """End all processes of the fleet: SIGTERM, then SIGKILL; return when none is left."""
        self._desired, self._attached = frozenset(), True
        deadline = loop_s() + self.grace_s + 10
        while self.running() and loop_s() < deadline:
            await self._reconcile()
            await asyncio.sleep(0.1)

    async def _reconcile(self) -> None:
        # One round at a time: a process that another round is starting is not seen as running yet.
        async with self._reconciling:
            await self._start_and_retire()

    async def _start_and_retire(self) -> None:
        running = self.running()
        self._settled = running.keys() == self._desired
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
            lived_s = loop_s() - self._started[slot]
            longer_s = min(max(FIRST_PAUSE_S, 2 * pause.length_s), LONGEST_PAUSE_S)
            pause.length_s = 0.0 if lived_s > STEADY_S else longer_s
            pause.until = loop_s() + pause.length_s
            log(
                PROCESS_ENDED,
                slot=slot,
                code=code,
                lived_s=round(lived_s, 1),
                log=self._log(slot),
            )
        if loop_s() < pause.until:
            return
        self._children[slot] = await self._spawn(slot)
        self._started[slot] = loop_s()
        waiting = asyncio.create_task(self._await_end(self._children[slot]))
        self._waiting.add(waiting)
        waiting.add_done_callback(self._waiting.discard)
        log(PROCESS_STARTED, slot=slot, pid=self._children[slot].pid)

    async def _await_end(self, child: asyncio.subprocess.Process) -> None:
        await child.wait()
        self._changed.set()
        if self._on_end is not None:
            self._on_end()

    def _log(self, slot: Slot) -> str | None:
        return str(self.logs / f"consumer-{slot}.log") if self.logs else None

    async def _spawn(self, slot: Slot) -> asyncio.subprocess.Process:
        name = self._log(slot)
        try:
            if self.logs:
                self.logs.mkdir(parents=True, exist_ok=True)
            with open(name, "ab") if name else contextlib.nullcontext() as output:  # noqa: ASYNC230, PTH123 - a moment
                return await asyncio.create_subprocess_exec(
                    *self.command(slot),
                    env=dict(self.environment(slot)),
                    stdin=asyncio.subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                    start_new_session=True,  # it outlives this process, and its Ctrl-C
                )
        except OSError as exc:
            raise ExternalError(f"slot {slot} cannot be started: {exc}") from exc

    def _retire(self, slot: Slot, process: psutil.Process) -> None:
        with contextlib.suppress(psutil.NoSuchProcess):
            if process.pid not in self._retiring:
                log(PROCESS_RETIRED, slot=slot, pid=process.pid)
                # Its end is no failure: when the slot is desired again, it is started at once.
                if (child := self._children.get(slot)) and child.pid == process.pid:
                    del self._children[slot]
                self._retiring[process.pid] = loop_s() + self.grace_s
                process.send_signal(signal.SIGTERM)
            elif loop_s() > self._retiring[process.pid]:
                log(PROCESS_OVERDUE, slot=slot, pid=process.pid, grace_s=self.grace_s)
                process.kill()


def _has_ended(name: str) -> bool:
    """Whether this machine runs no process with the pid in this name (`host/pid/...`)."""
    number = name.split("/")[1:2]
    if not number or not number[0].isdecimal():
        return False
    try:
        ended: bool = psutil.Process(int(number[0])).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True
    except psutil.AccessDenied:  # it runs
        return False
    return ended


def consumer_command(settings: Settings, slot: Slot) -> tuple[str, ...]:
    """Return a consumer's command line; `--instance` tells its group from others."""
    instance = f"{settings.group}@{settings.kafka.bootstrap_servers}"
    module = "binwright.consumer"
    return (sys.executable, "-m", module, "--slot", str(slot), "--instance", instance)


def process_fleet(settings: Settings) -> ProcessFleet:
    """Return the fleet of child processes that these settings describe."""
    return ProcessFleet(
        command=lambda slot: consumer_command(settings, slot),
        max_slots=settings.controller.max_slots,
        environment=lambda slot: {**os.environ, **_health_port(settings, slot)},
        logs=settings.controller.process_logs,
        grace_s=settings.consumer.drain_timeout_s + 10,
    )


def _health_port(settings: Settings, slot: Slot) -> Mapping[str, str]:
    """Return the variable with a slot's own port: the controller has that of the settings."""
    port = settings.health.port
    return {} if port is None else {"BINWRIGHT_HEALTH__PORT": str(port + 1 + slot)}
