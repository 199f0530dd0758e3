"""What acts wait for."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.chaos.aimed_faults import STRUCK_S
from tests.chaos.fault_helpers import stopped, superseded, until

from binwright.local.child import Child as Twin
from binwright.local.child import Command

STOPS_ITSELF = "import os, signal, time; time.sleep(0.2); os.kill(os.getpid(), signal.SIGSTOP)"

Child = subprocess.Popen[bytes]


@pytest.fixture
def child() -> Iterator[Child]:
    with subprocess.Popen((sys.executable, "-c", STOPS_ITSELF)) as started:
        yield started
        started.kill()


async def test_a_process_that_stops_itself_soon_is_waited_for(child: Child) -> None:
    """Woken before, it would stop afterwards, and nobody would wake it again."""
    await until(lambda: stopped(child.pid), STRUCK_S, "it has stopped")
    os.kill(child.pid, signal.SIGCONT)
    assert child.wait(STRUCK_S) == 0
    assert stopped(child.pid)


async def test_a_twin_that_was_killed_at_its_start_supersedes_no_process(
    child: Child, tmp_path: Path
) -> None:
    sleeping = Command(
        title="a twin",
        argv=(sys.executable, "-c", "import time; time.sleep(60)"),
        directory=tmp_path,
        log=tmp_path / "log",
        environment=dict(os.environ),
    )
    twin = Twin(sleeping)
    _, ended = superseded(child.pid, twin)
    assert not ended()
    await twin.kill()
    assert ended()
