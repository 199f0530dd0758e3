"""Standard output reserved for what a command prints itself."""

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager

STDOUT, STDERR = 1, 2


@contextmanager
def to_stderr() -> Iterator[None]:
    """Redirect standard output to standard error, also for C code such as solvers.

    Processes started meanwhile inherit it. What the C library still has in its buffer is written
    before standard output is put back.
    """
    stdout = os.dup(STDOUT)
    os.dup2(STDERR, STDOUT)
    try:
        yield
    finally:
        ctypes.CDLL(None).fflush(None)
        os.dup2(stdout, STDOUT)
        os.close(stdout)
