"""A function over many values, on the cores of this machine."""

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context, parent_process
from multiprocessing.connection import wait
from threading import Thread
from typing import TypeVar

V = TypeVar("V")
R = TypeVar("R")

OnProgress = Callable[[int], None]
"""Called with the number of values that are done since the last call."""


def run_all(
    function: Callable[[V], R], values: Sequence[V], on_progress: OnProgress, jobs: int
) -> list[R]:
    """Return what the function returns for each value, in their order; raises what it raises.

    Args:
        function: And the values: what can be pickled, unless `jobs` is 1.
        values: Each independent of the others.
        on_progress: For a progress bar.
        jobs: Processes; 1: only this one.
    """
    if jobs == 1:
        return list(_sequentially(function, values, on_progress))
    with worker_pool(jobs) as pool:
        futures = [pool.submit(function, value) for value in values]
        try:
            for future in as_completed(futures):
                future.result()
                on_progress(1)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
        return [future.result() for future in futures]


def worker_pool(jobs: int, begin: Callable[[], object] | None = None) -> ProcessPoolExecutor:
    """Return processes that end with this one; they call `begin` first.

    They are new processes, not forks: a fork of a process with the threads of a gRPC channel may
    wait for ever.
    """
    spawn = get_context("spawn")
    return ProcessPoolExecutor(jobs, mp_context=spawn, initializer=_begin, initargs=(begin,))


def _begin(begin: Callable[[], object] | None) -> None:
    """Have this process end when the one that started it has ended, however: else it works on."""
    if begin is not None:
        begin()
    if (parent := parent_process()) is not None:
        Thread(target=_end_after, args=(parent.sentinel,), daemon=True).start()


def _end_after(sentinel: int) -> None:
    wait([sentinel])
    os._exit(1)


def _sequentially(
    function: Callable[[V], R], values: Sequence[V], on_progress: OnProgress
) -> Iterator[R]:
    for value in values:
        yield function(value)
        on_progress(1)
