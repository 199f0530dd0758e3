"""A service ends as a process should."""

import asyncio
import os
import pty
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from binwright.protocol.errors import BrokerUnavailable, SettingsError
from binwright.runtime.run import must_not_end, root_cause, run, ungrouped

SERVICE = """
import asyncio, sys
from binwright.runtime.run import run
async def main():
    print('up', flush=True)
    try:
        await asyncio.sleep(60)
    finally:
        await asyncio.sleep(0.2)
        print('cleaned up', flush=True)
sys.exit(run(main))
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_service_after_its_clean_up(number: signal.Signals) -> None:
    """A second one, from an impatient person, does not cut that short."""
    with subprocess.Popen(
        [sys.executable, "-c", SERVICE], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "up\n"
        os.kill(process.pid, number)
        os.kill(process.pid, number)
        rest, _ = process.communicate(timeout=20)
    assert rest.endswith("cleaned up\n")
    assert process.returncode == 0


CLOSED = """
import asyncio, pathlib, sys
from binwright.runtime.run import run
async def main():
    print('up', flush=True)
    try:
        await asyncio.sleep(60)
    finally:
        for _ in range(3):
            print('a terminal that is gone takes no words', flush=True)
        pathlib.Path(sys.argv[1]).write_text('cleaned up')
sys.exit(run(main))
"""


def test_a_closed_terminal_ends_the_service_after_its_clean_up(tmp_path: Path) -> None:
    done = tmp_path / "done"
    pid, terminal = pty.fork()
    if not pid:
        os.execv(sys.executable, [sys.executable, "-c", CLOSED, str(done)])  # noqa: S606 - no shell
    try:
        words = b""
        while not words.endswith(b"\n"):
            words += os.read(terminal, 100)
    finally:
        os.close(terminal)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert done.read_text() == "cleaned up"


def test_what_nohup_started_outlives_its_terminal() -> None:
    with subprocess.Popen(
        ["nohup", sys.executable, "-c", SERVICE], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "up\n"
        os.kill(process.pid, signal.SIGHUP)
        os.kill(process.pid, signal.SIGTERM)
        rest, _ = process.communicate(timeout=20)
    assert "signal=SIGTERM" in rest
    assert "SIGHUP" not in rest


def test_a_user_error_is_one_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    async def main() -> None:
        raise SettingsError("no topics")

    assert run(main) == 2
    assert capsys.readouterr().err == "binwright: no topics\n"


def test_an_external_error_exits_with_1() -> None:
    async def main() -> None:
        raise ExceptionGroup("tasks", [BrokerUnavailable("gone")])

    assert run(main) == 1


def test_a_defect_is_shown_with_its_traceback() -> None:
    async def main() -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run(main)


def test_an_error_of_binwright_is_the_root_cause_before_others() -> None:
    ours = BrokerUnavailable("gone")
    nested = BaseExceptionGroup("a", [ValueError(), BaseExceptionGroup("b", [KeyError(), ours])])
    assert root_cause(nested) is ours


async def test_an_error_of_tasks_comes_without_their_group() -> None:
    ours = BrokerUnavailable("gone")
    with pytest.raises(BrokerUnavailable) as raised, ungrouped(BrokerUnavailable):
        raise BaseExceptionGroup("a", [BaseExceptionGroup("b", [ours])])
    assert raised.value is ours


@pytest.mark.parametrize("beside", [(), (BrokerUnavailable("gone"),)])
def test_another_error_of_tasks_is_not_hidden_by_one_that_is_expected(
    beside: tuple[Exception, ...],
) -> None:
    defect = ValueError("a defect")
    with pytest.raises(BaseExceptionGroup) as raised, ungrouped(BrokerUnavailable):
        raise BaseExceptionGroup("a", [*beside, defect])
    assert raised.value.exceptions == (defect,)


async def test_a_task_that_ends_early_is_an_error() -> None:
    with pytest.raises(RuntimeError, match="ended that runs until"):
        await must_not_end(asyncio.sleep(0))


async def test_a_task_that_is_cancelled_from_inside_is_an_error() -> None:
    async def cut_off() -> None:
        raise asyncio.CancelledError

    with pytest.raises(RuntimeError, match="cancelled from inside"):
        await asyncio.create_task(must_not_end(cut_off()))


async def test_a_cancellation_that_was_asked_for_passes() -> None:
    task = asyncio.create_task(must_not_end(asyncio.sleep(60)))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
