"""A function over many values, on the cores of this machine."""

import gc
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context, parent_process
from multiprocessing.connection import wait
from threading import Thread
from typing import TypeVar

V = TypeVar("V")
R = TypeVar("R")

GC_THRESHOLDS = (100_000, 50, 50)
"""Of the garbage collector in a process that works on values."""

OnProgress = Callable[[int], None]
"""Called with the number of values that are done since the last call."""


def run_all(
    function: Callable[[V], R],
    values: Sequence[V],
    on_done: Callable[[V], object],
    jobs: int,
    *,
    cost: Callable[[V], float] | None = None,
) -> list[R]:
    """Return what the function returns for each value, in their order; raises what it raises.

    Args:
        function: And the values: what can be pickled, unless `jobs` is 1.
        values: Each independent of the others.
        on_done: Called with each value that is done, for a progress bar.
        jobs: Processes; 1, or a single value: only this one.
        cost: What a value takes, in any unit. Processes begin with those that take longest, so
            that none is left with one of them at the end; else in the order of the values.
    """
    if jobs == 1 or len(values) <= 1:
        return list(_sequentially(function, values, on_done))
    order = list(range(len(values)))
    if cost is not None:
        order.sort(key=lambda at: -cost(values[at]))
    with _worker_pool(min(jobs, len(values))) as pool:
        futures = {pool.submit(function, values[at]): at for at in order}
        try:
            for future in as_completed(futures):
                future.result()
                on_done(values[futures[future]])
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
        results = {at: future.result() for future, at in futures.items()}
        return [results[at] for at in range(len(values))]


def _worker_pool(jobs: int) -> ProcessPoolExecutor:
    """Return processes that end with this one, and look for garbage less often.

    They are new processes, not forks: a fork of a process with the threads of a gRPC channel may
    wait for ever.
    """
    spawn = get_context("spawn")
    return ProcessPoolExecutor(jobs, mp_context=spawn, initializer=_begin)


def _begin() -> None:
    """Have this process end when the one that started it has ended, however: else it works on.

    Simulations keep many objects and make few cycles.
    """
    gc.set_threshold(*GC_THRESHOLDS)
    if (parent := parent_process()) is not None:
        Thread(target=_end_after, args=(parent.sentinel,), daemon=True).start()


def _end_after(sentinel: int) -> None:
    wait([sentinel])
    os._exit(1)


def _sequentially(
    function: Callable[[V], R], values: Sequence[V], on_done: Callable[[V], object]
) -> Iterator[R]:
    for value in values:
        yield function(value)
        on_done(value)
