"""Bounds what consumers read, for the hooks of those that a bench or test starts."""

import asyncio
import os
import time
from collections.abc import Mapping
from functools import wraps
from types import ModuleType
from typing import Any

from tests.chaos.patch_on_import import ModulePatch

PACE_VARIABLE = "CONSUMER_PACE"
"""Bytes/s of memory, of all that a process fetches; a second's worth may come at once."""


class Pace:
    """A bucket of bytes that time fills, and fetches empty, below nothing if they bring more."""

    def __init__(self, bytes_per_s: float) -> None:
        self.bytes_per_s = bytes_per_s
        self._room, self._at = bytes_per_s, time.monotonic()

    def room(self) -> float:
        """Return how many bytes may be fetched now."""
        now = time.monotonic()
        filled = self._room + (now - self._at) * self.bytes_per_s
        self._room, self._at = min(filled, self.bytes_per_s), now
        return self._room

    def spend(self, size: int) -> None:
        """Count what was fetched."""
        self._room -= size


def pace_patches() -> Mapping[str, ModulePatch]:
    """Return the changes to modules by which a consumer keeps the environment's pace, if any."""
    changes = {"binwright.consumer.read.aiokafka_consumer": _bound}
    return changes if PACE_VARIABLE in os.environ else {}


def _bound(module: ModuleType) -> None:
    """Let all of the process's clients fetch at one pace."""
    pace, original = Pace(float(os.environ[PACE_VARIABLE])), module.AssignedConsumer.poll

    @wraps(original)
    async def poll(self: Any, timeout_s: float, most_bytes: int, most: int) -> Mapping[Any, Any]:
        if (room := pace.room()) <= 0:
            await asyncio.sleep(min(timeout_s, -room / pace.bytes_per_s + 0.01))
            return {}
        polled: Mapping[Any, Any] = await original(
            self, timeout_s, min(most_bytes, int(room)), most
        )
        pace.spend(sum(records.bytes for records in polled.values()))
        return polled

    module.AssignedConsumer.poll = poll
