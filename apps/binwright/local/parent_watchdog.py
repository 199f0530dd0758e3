"""Become another program that dies with its parent: `parent_watchdog.py PARENT NICE PROGRAM...`.

Run as a file, by `child.py`, with nothing of binwright importable.
"""

import contextlib
import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1


def main() -> None:
    """Tie this process to its parent, lower its priority, and become the program."""
    parent, nice, program = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:  # it died before we asked
            sys.exit(1)
    _be_nice(nice)
    os.execv(program[0], program)  # noqa: S606 - becoming the program is the point


def _be_nice(nice: int) -> None:
    os.nice(nice)
    # Linux weighs a session as one where it groups by session; niceness counts only inside it.
    with contextlib.suppress(OSError), open("/proc/self/autogroup", "w") as group:  # noqa: PTH123
        group.write(str(nice))


main()
