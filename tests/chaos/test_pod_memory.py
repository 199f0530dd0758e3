"""Who takes more memory than a pod has is killed, and the run says so."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.chaos.pod_memory import MEMORY_VARIABLE, POD_BYTES, PROC, PodMemory, peak_of
from tests.chaos.test_hooks import PROCESS_S, process

ASKS = """
from binwright.consumer import __main__ as consumer
print(consumer.memory_limit())
"""
TAKES = "x = bytearray(300 << 20); del x; print('taken', flush=True); input()"


def test_the_most_of_a_process_is_read_in_bytes_and_none_of_one_that_has_ended(
    tmp_path: Path,
) -> None:
    for pid, status in (
        (7, "Name:\tpython\nVmHWM:\t  2048 kB\nVmRSS:\t  1 kB\n"),
        (8, "Name:\tx\n"),
    ):
        (tmp_path / str(pid)).mkdir()
        (tmp_path / str(pid) / "status").write_text(status)
    assert [peak_of(pid, tmp_path) for pid in (7, 8, 9)] == [2 << 20, 0, 0]


@pytest.mark.skipif(not PROC.exists(), reason="only Linux tells the most memory of a process")
def test_who_took_more_is_killed_even_if_it_gave_it_back() -> None:
    memory = PodMemory(most_bytes=200 << 20)
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", TAKES], stdin=pipe, stdout=pipe) as taker:
        assert taker.stdout is not None
        assert taker.stdout.readline() == b"taken\n"
        memory.look([taker.pid])
        assert taker.wait(PROCESS_S) == -signal.SIGKILL
    assert len(memory.killed) == 1
    assert memory.peak_bytes > 300 << 20


def test_who_has_what_it_may_have_lives() -> None:
    memory = PodMemory(peak=lambda _: POD_BYTES)
    memory.look([os.getpid()])
    assert (memory.killed, memory.peak_bytes) == ([], POD_BYTES)


@pytest.mark.parametrize("given", [True, False])
def test_a_consumer_finds_the_limit_where_it_asks_for_its_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, given: bool
) -> None:
    monkeypatch.delenv(MEMORY_VARIABLE, raising=False)
    if given:
        monkeypatch.setenv(MEMORY_VARIABLE, "777000000")
    done = process(tmp_path, ASKS)
    assert done.returncode == 0, done.stderr
    assert (done.stdout == "777000000\n") is given
