"""Consumers have the memory of a pod: they are told, and who takes more is killed."""

import asyncio
import os
import signal
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType

from tests.chaos.patch_on_import import ModulePatch

MEMORY_VARIABLE = "CHAOS_MEMORY"
"""Bytes that a consumer finds when it asks how much memory it has."""
POD_BYTES = 768 << 20  # of deploy/consumers
LOOK_S = 0.2
PROC = Path("/proc")


def memory_patches() -> Mapping[str, ModulePatch]:
    """Return the changes to modules by which a consumer finds the environment's limit, if any."""
    changes = {"binwright.runtime.memory": _limit}
    return changes if MEMORY_VARIABLE in os.environ else {}


def _limit(module: ModuleType) -> None:
    """Answer as the control group of a pod does, which there is none of here."""
    module.memory_limit = lambda: int(os.environ[MEMORY_VARIABLE])  # type: ignore[attr-defined]


def peak_of(pid: int, proc: Path = PROC) -> int:
    """Return the most memory that a process has had, bytes; 0 if it has ended.

    Linux keeps it, so none that is short is missed. It counts what a pod's control group counts,
    and pages of libraries beside it that would be given back.
    """
    with suppress(OSError):
        for line in (proc / str(pid) / "status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) << 10
    return 0


@dataclass(slots=True)
class PodMemory:
    """What consumers took, and who was killed for it."""

    most_bytes: int = POD_BYTES
    peak: Callable[[int], int] = peak_of
    peak_bytes: int = 0  # of any consumer
    killed: list[str] = field(default_factory=list)

    def look(self, pids: Iterable[int]) -> None:
        """Kill those of these processes that have taken more than they have."""
        for pid in pids:
            taken = self.peak(pid)
            self.peak_bytes = max(self.peak_bytes, taken)
            if taken > self.most_bytes:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
                    self.killed.append(
                        f"the consumer {pid} took {taken >> 20} MiB of {self.most_bytes >> 20}"
                    )

    async def watch(
        self, consumers: Callable[[], Iterable[int]], log: Callable[[str], None]
    ) -> None:
        """Look at the consumers several times a second, for ever, and tell who was killed."""
        while True:
            before = len(self.killed)
            await asyncio.to_thread(lambda: self.look(consumers()))
            for text in self.killed[before:]:
                log(text)
            await asyncio.sleep(LOOK_S)
