"""Checks that a decoder returns or raises its own error, within bounds of memory and CPU."""

import time
from contextlib import suppress
from pathlib import Path

from tests.fuzz.target import Target

MEMORY_BYTES, CPU_S = 64 << 20, 1.0
_STATUS, _REFS = Path("/proc/self/status"), Path("/proc/self/clear_refs")
_RESET_PEAK = "5"
LINUX = _REFS.exists()


class Exceeded(AssertionError):
    """A decoder took more than it may."""


def check(target: Target, content: bytes) -> None:
    """Decode once; raise what is none of the target's errors, or `Exceeded`."""
    before, began = peak_memory(reset=True), time.process_time()
    with suppress(*target.errors):
        target.decode(content)
    took_s, used = time.process_time() - began, peak_memory() - before
    if used > MEMORY_BYTES:  # first: where memory is short it takes CPU time, too
        raise Exceeded(f"{used >> 20} MB for {len(content)} bytes")
    if took_s > CPU_S:
        raise Exceeded(f"{took_s:.1f} s of CPU for {len(content)} bytes")


def peak_memory(*, reset: bool = False) -> int:
    """Return the most memory that this process had since the last reset, bytes; Linux tells it."""
    if not LINUX:
        return 0
    if reset:
        _REFS.write_text(_RESET_PEAK)
    line = next(line for line in _STATUS.read_text().splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) << 10
