"""What processes cost: CPU seconds and memory of whole process trees."""

import contextlib
from collections.abc import Iterable

import psutil


class CpuUsage:
    """CPU of processes and all their descendants, also of those that have ended since."""

    def __init__(self, roots: Iterable[int]) -> None:
        self._roots = list(roots)
        self._seen: dict[tuple[int, float], float] = {}

    def add(self, roots: Iterable[int]) -> None:
        """Count these processes too, from now on; those that are counted already are not twice."""
        self._roots += [root for root in roots if root not in self._roots]

    def seconds(self) -> float:
        """Return user and system CPU seconds; look often, or short-lived processes are missed."""
        for root in self._roots:
            with contextlib.suppress(psutil.NoSuchProcess):
                process = psutil.Process(root)
                for each in (process, *process.children(recursive=True)):
                    self._note(each)
        return sum(self._seen.values())

    def _note(self, process: psutil.Process) -> None:
        with contextlib.suppress(psutil.NoSuchProcess, psutil.AccessDenied):
            times = process.cpu_times()
            self._seen[process.pid, process.create_time()] = times.user + times.system


def memory_mb(roots: Iterable[int]) -> float:
    """Return what processes and their descendants hold: a shared page is each one's in part."""
    held: dict[int, float] = {}
    for root in roots:
        with contextlib.suppress(psutil.NoSuchProcess):
            process = psutil.Process(root)
            for each in (process, *process.children(recursive=True)):
                with contextlib.suppress(psutil.NoSuchProcess, psutil.AccessDenied):
                    held[each.pid] = each.memory_full_info().pss / 1e6
    return sum(held.values())
