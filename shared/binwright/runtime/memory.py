"""How much memory this process may have, and that it keeps none that it has freed."""

import ctypes
import os
import resource
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

_LIMITS = (resource.RLIMIT_AS, resource.RLIMIT_DATA)
_MALLOC = {
    "MALLOC_ARENA_MAX": (-8, 2),
    "MALLOC_MMAP_THRESHOLD_": (-3, 16 << 20),
    "MALLOC_TRIM_THRESHOLD_": (-1, 32 << 20),
}
"""By the variable that sets it too: glibc's number of a parameter of malloc, and its value.

By default each thread has a heap of its own, and once a large piece is freed, pieces of that size
are taken from heaps and stay there: 250 MB of 768, in a process that used 40.
"""
_CGROUP_FILES = {"": "memory.max", "memory": "memory.limit_in_bytes"}  # of versions 2 and 1


def memory_limit(root: Path = Path("/")) -> int:
    """Return the least of what limits this process's memory, bytes.

    That is its control group or one above it (of version 2 or 1), `ulimit`, or the machine.

    Args:
        root: Where `proc` and `sys` are.
    """
    limits = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    soft = [resource.getrlimit(each)[0] for each in _LIMITS]
    limits += [limit for limit in soft if limit != resource.RLIM_INFINITY]
    return min([*limits, *_of_groups(root)])


def give_back_freed_memory() -> None:
    """Have the C library give large pieces back once they are freed; before threads are started.

    What the environment sets stays as it is there. Other libraries than glibc keep none.
    """
    with suppress(OSError, AttributeError):
        mallopt = ctypes.CDLL(None).mallopt
        for variable, (parameter, value) in _MALLOC.items():
            if variable not in os.environ:
                mallopt(parameter, value)


def _of_groups(root: Path) -> Iterator[int]:
    """Yield the limits of this process's control groups."""
    try:
        lines = (root / "proc/self/cgroup").read_text().splitlines()
    except OSError:
        return  # no Linux
    for line in lines:
        _, controllers, path = line.split(":", 2)
        for controller in set(controllers.split(",")) & _CGROUP_FILES.keys():
            top = root / "sys/fs/cgroup" / controller
            # In a container the path may be the host's: what is there of it counts, and the top.
            group = top / path.strip("/")
            for directory in (group, *group.parents):
                with suppress(OSError, ValueError):  # none there, or `max`
                    yield int((directory / _CGROUP_FILES[controller]).read_text())
                if directory == top:
                    break
