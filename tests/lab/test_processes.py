"""Work on several processes."""

import gc
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import psutil

from binwright.lab.processes import GC_THRESHOLDS, run_all

DEADLINE_S = 60.0
_marks: list[str] = []
PARENT = """
import os, sys, time
from binwright.lab.processes import run_all

def work(number):
    print(os.getpid(), flush=True)
    time.sleep(600)

if __name__ == "__main__":
    run_all(work, [1, 2], lambda _: None, 2)
"""


def test_several_processes_return_results_in_order() -> None:
    progress: list[int] = []

    assert run_all(abs, [-3, 2, -1], progress.append, 2) == [3, 2, 1]
    assert sorted(progress) == [-3, -1, 2]


def test_processes_begin_with_the_values_that_take_longest(tmp_path: Path) -> None:
    """Two processes: the last value of the order can only be begun when another has ended."""
    (log := tmp_path / "begun").touch()
    values = [(log, "short"), (log, "longest"), (log, "longer")]
    costs = {"short": 1.0, "longer": 2.0, "longest": 3.0}

    found = run_all(_begun_before, values, _ignore, 2, cost=lambda value: costs[value[1]])
    assert found[0] == 2


def test_workers_look_for_garbage_less_often() -> None:
    assert run_all(_garbage_thresholds, [1, 2], _ignore, 2) == [GC_THRESHOLDS] * 2


def test_workers_are_no_forks_of_a_process_that_may_have_threads() -> None:
    """A fork of a process with the threads of a gRPC channel waited for ever."""
    _marks.append("of the parent")
    assert run_all(_marks_here, [1, 2], lambda _: None, 2) == [0, 0]


def test_workers_end_when_their_parent_is_killed(tmp_path: Path) -> None:
    (program := tmp_path / "parent.py").write_text(PARENT)
    with subprocess.Popen([sys.executable, str(program)], stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        workers = [int(parent.stdout.readline()) for _ in range(2)]
        parent.send_signal(signal.SIGKILL)
        deadline = time.monotonic() + DEADLINE_S
        try:
            while any(map(_runs, workers)):
                assert time.monotonic() < deadline
                time.sleep(0.05)
        finally:
            for worker in workers:
                with suppress(ProcessLookupError):
                    os.kill(worker, signal.SIGKILL)


def _garbage_thresholds(_: int) -> tuple[int, int, int]:
    return gc.get_threshold()


def _ignore(_: object) -> None: ...


def _begun_before(value: tuple[Path, str]) -> int:
    """Return how many others had begun; end only when two have."""
    log, name = value
    with log.open("a") as file:
        print(name, file=file)
    before = log.read_text().split().index(name)
    deadline = time.monotonic() + DEADLINE_S
    while len(log.read_text().split()) < 2:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    return before


def _marks_here(_: int) -> int:
    return len(_marks)


def _runs(process: int) -> bool:
    """Return whether it runs; one that has ended may wait to be collected."""
    try:
        return bool(psutil.Process(process).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False
