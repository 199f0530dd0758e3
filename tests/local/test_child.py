"""A child process is awaited, ended and reaped, whatever happens."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from binwright.local.child import Child, Command, run_to_end
from binwright.protocol.errors import EmbeddedError
from binwright.runtime.environment import clean_environment

# Says that it is up, then sleeps; with an argument it does not care for SIGTERM.
SLEEPER = """
import signal, sys, time
if len(sys.argv) > 1:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("up", flush=True)
time.sleep(600)
"""
# Starts a sleeper through our own code, tells its pid, and sleeps too.
PARENT = """
import sys, time
from pathlib import Path
from binwright.local.child import Child, Command
home = Path(sys.argv[1])
argv = (sys.executable, "-c", "import time; time.sleep(600)")
print(Child(Command("a child", argv, home, home / "log", {})).pid, flush=True)
time.sleep(600)
"""


def python(home: Path, code: str, *arguments: str, nice: int = 0) -> Command:
    argv = (sys.executable, "-c", code, *arguments)
    return Command("the sleeper", argv, home, home / "log", clean_environment({}), nice)


async def up(home: Path, *arguments: str) -> Child:
    child = Child(python(home, SLEEPER, *arguments))

    async def message() -> bool:
        return "up" in (home / "log").read_text()

    await child.wait_until_ready(message, deadline_s=30)
    return child


def dead(process: psutil.Process) -> bool:
    try:
        # An orphan is for process 1 to reap, which takes its time.
        return bool(process.status() == psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return True


async def never() -> bool:
    return False


async def test_it_ends_on_sigterm(tmp_path: Path) -> None:
    child = await up(tmp_path)
    assert await child.stop(grace_s=30) == -signal.SIGTERM
    assert not psutil.pid_exists(child.pid)


async def test_it_is_killed_when_it_ignores_sigterm(tmp_path: Path) -> None:
    child = await up(tmp_path, "deaf")
    assert await child.stop(grace_s=0.1) == -signal.SIGKILL


async def test_it_is_ended_at_once_when_the_stop_is_cancelled(tmp_path: Path) -> None:
    child = await up(tmp_path, "deaf")
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.1):
            await child.stop(grace_s=600)
    assert child.returncode == -signal.SIGKILL


async def test_a_server_can_be_killed_twice(tmp_path: Path) -> None:
    child = await up(tmp_path)
    await child.kill()
    await child.kill()
    assert await child.stop(grace_s=1) == -signal.SIGKILL


async def test_a_process_that_ends_early_is_reported_with_its_log(tmp_path: Path) -> None:
    child = Child(python(tmp_path, "import sys; sys.exit('no disk left')"))
    with pytest.raises(EmbeddedError, match=r"(?s)the sleeper ended with 1 .*no disk left.*log"):
        await child.wait_until_ready(never, deadline_s=30)


async def test_a_process_that_is_never_ready_is_reported_after_the_deadline(tmp_path: Path) -> None:
    child = await up(tmp_path)
    with pytest.raises(EmbeddedError, match=r"(?s)not ready after 0 s.*up"):
        await child.wait_until_ready(never, deadline_s=0.1)
    await child.kill()


async def test_run_to_end_returns_the_exit_code(tmp_path: Path) -> None:
    code, child = await run_to_end(python(tmp_path, "exit(3)"), deadline_s=30)
    assert (code, child.returncode) == (3, 3)


async def test_a_run_that_is_not_done_at_the_deadline_is_ended(tmp_path: Path) -> None:
    with pytest.raises(EmbeddedError, match="not done after"):
        await run_to_end(python(tmp_path, SLEEPER), deadline_s=0.2)
    assert not [c for c in psutil.Process().children() if SLEEPER in c.cmdline()]


async def test_it_runs_at_the_priority_that_was_asked_for(tmp_path: Path) -> None:
    await run_to_end(python(tmp_path, "import os; print(os.nice(0))", nice=7), deadline_s=30)
    assert (tmp_path / "log").read_text().strip() == str(os.nice(0) + 7)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux lets a child die with its parent")
def test_it_dies_with_its_parent(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", PARENT, str(tmp_path)], stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        child = psutil.Process(int(parent.stdout.readline()))
        parent.kill()
    deadline = time.monotonic() + 30
    while not dead(child):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_child_does_not_inherit_variables_that_change_a_server() -> None:
    harmless = {"PATH": "/bin", "HOME": "/h", "LC_ALL": "C"}
    harmful = {"JAVA_TOOL_OPTIONS": "-Xfoo", "SPARK_CONF_DIR": "/x", "CLASSPATH": "/y"}
    assert clean_environment({"OWN": "1"}, harmless | harmful) == {**harmless, "OWN": "1"}
