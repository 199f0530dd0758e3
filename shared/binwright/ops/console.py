"""Standard output reserved for what a command prints itself."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

STDOUT, STDERR = 1, 2


@contextmanager
def to_stderr() -> Iterator[None]:
    """Redirect standard output to standard error, also for C code such as solvers.

    Processes started meanwhile inherit it.
    """
    stdout = os.dup(STDOUT)
    os.dup2(STDERR, STDOUT)
    try:
        yield
    finally:
        os.dup2(stdout, STDOUT)
        os.close(stdout)
