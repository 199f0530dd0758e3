"""Turn into another program that dies with its parent: `tether.py PARENT NICE PROGRAM [ARGUMENT]...`.

Run as a file, by `process.py`, with nothing of binwright importable.
"""

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
    os.nice(nice)
    os.execv(program[0], program)  # noqa: S606 - becoming the program is the point


main()
