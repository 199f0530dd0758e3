"""Measures what a consumer could read, by its CPU time and its waits."""

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from binwright.consumer.decide.capacity import (
    WINDOW_S,
    CapacityEstimate,
    Window,
    at_full_speed,
)
from binwright.protocol.metadata import MeasuredCapacity
from binwright.protocol.ports.kafka import ReadProgress

CGROUP = Path("/sys/fs/cgroup")


@dataclass(frozen=True, slots=True)
class CpuTime:
    """CPU time since the process began, s."""

    process: float
    loop: float  # of the event loop's thread


def cpu_time() -> CpuTime:
    """Return the CPU time so far; to be called in the event loop's thread."""
    return CpuTime(time.process_time(), time.thread_time())


def usable_cpus(cgroup: Path = CGROUP) -> float:
    """Return how many CPUs this process may use: those it runs on, or its container's quota."""
    runs_on = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    cpus = float(runs_on or 1)
    try:
        quota, _, period = (cgroup / "cpu.max").read_text().partition(" ")
        return min(cpus, int(quota) / int(period))
    except (OSError, ValueError):  # no version 2, or no limit: `max`
        return cpus


@dataclass(frozen=True, slots=True)
class _Look:
    at: float
    cpu: CpuTime
    progress: ReadProgress
    waited_s: float
    held_s: float


class CapacityMeter:
    """Divides a consumer's time into windows; see `decide.capacity`.

    Attributes:
        capacity: The estimate; None: too little was measured.
    """

    def __init__(
        self,
        cpu: Callable[[], CpuTime] = cpu_time,
        cpus: Callable[[], float] = usable_cpus,
    ) -> None:
        self._cpu, self._cpus = cpu, cpus()
        self._estimate = CapacityEstimate()
        self._last: _Look | None = None
        self.capacity: MeasuredCapacity | None = None

    def look(
        self, now: float, progress: Callable[[], ReadProgress], waited_s: float, held_s: float
    ) -> None:
        """End a window if it is time.

        Args:
            now: Seconds, monotonic.
            progress: Returns that of the reader; called at the end of a window only.
            waited_s: That fetching has waited for staging or landing until now.
            held_s: Of them, for landing.
        """
        if (last := self._last) is not None and now - last.at < WINDOW_S:
            return
        self._last = look = _Look(now, self._cpu(), progress(), waited_s, held_s)
        if last is not None:
            self._estimate.add(self._window(last, look))
            self.capacity = self._estimate.capacity()

    def _window(self, last: _Look, look: _Look) -> Window:
        seconds, cpu, before = look.at - last.at, look.cpu, last.cpu
        return Window(
            seconds=seconds,
            bytes=look.progress.stored_bytes - last.progress.stored_bytes,
            loop=(cpu.loop - before.loop) / seconds,
            process=(cpu.process - before.process) / seconds / self._cpus,
            waited=(look.waited_s - last.waited_s) / seconds,
            held=(look.held_s - last.held_s) / seconds,
            full_speed=at_full_speed(last.progress.offsets, look.progress.offsets),
        )
