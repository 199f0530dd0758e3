"""Standard output for our own words alone."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

STDOUT, STDERR = 1, 2


@contextmanager
def to_stderr() -> Iterator[None]:
    """Send what anybody in this process prints to standard error: solvers print as they like.

    Below Python, where C writes. Processes started meanwhile do the same.
    """
    kept = os.dup(STDOUT)
    os.dup2(STDERR, STDOUT)
    try:
        yield
    finally:
        os.dup2(kept, STDOUT)
        os.close(kept)
