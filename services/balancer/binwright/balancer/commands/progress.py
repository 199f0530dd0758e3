"""What a running `apply` prints: a line when something changes, at most one a second."""

from rich.console import Console

from binwright.balancer.decide.reassignment.machine import Decision, Observation
from binwright.balancer.decide.reassignment.steps import Copy
from binwright.protocol.model import TopicPartition

SHOWN = 4
"""Copies that a line names."""


class ProgressLines:
    """Prints how far a run is, when that changes."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._last = ""

    def show(self, decided: Decision, seen: Observation) -> None:
        """Print a line, unless it is the last one again."""
        text = line(decided, seen)
        if text != self._last:
            self._console.print(text, markup=False, highlight=False)
            self._last = text


def line(decided: Decision, seen: Observation) -> str:
    """Return how far a run is: in place, copying, waiting."""
    progress = decided.progress
    parts = [f"{progress.done} of {progress.total} partitions in place"]
    if progress.copying:
        first = ", ".join(_copied(copy, seen) for copy in progress.copying[:SHOWN])
        parts.append(f"{len(progress.copying)} being copied: {first}")
    if decided.elect:
        parts.append(f"{len(decided.elect)} leaders move")
    if decided.pauses:
        parts.append(f"paused: {'; '.join(decided.pauses)}")
    return "; ".join(parts)


def _copied(copy: Copy, seen: Observation) -> str:
    """Return which partition goes where, and the share that is there."""
    whole = max((_held(seen, broker, copy.partition) for broker in copy.sources), default=0)
    there = min((_held(seen, broker, copy.partition) for broker in copy.added), default=0)
    share = f" {100 * there / whole:.0f} %" if whole else ""
    return f"{copy.partition} → {', '.join(map(str, copy.added))}{share}"


def _held(seen: Observation, broker: int, partition: TopicPartition) -> int:
    disk = seen.disks.get(broker)
    return 0 if disk is None else disk.sizes.get(partition, 0)
