"""A service ends as a process should."""

import asyncio
import os
import signal
import subprocess
import sys

import pytest

from binwright.protocol.errors import BrokerUnavailable, SettingsError
from binwright.runtime.run import must_not_end, root_cause, run

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
