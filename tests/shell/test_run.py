"""A service ends as a process should."""

import asyncio
import os
import signal
import subprocess
import sys

import pytest

from binwright.core.errors import BrokerUnavailable, SettingsError
from binwright.shell.run import endless, first_cause, run

SERVICE = """
import asyncio, sys
from binwright.shell.run import run
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
def test_a_signal_ends_it_after_its_cleaning_up(number: signal.Signals) -> None:
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


def test_what_a_person_can_mend_is_told_in_a_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    async def main() -> None:
        raise SettingsError("no topics")

    assert run(main) == 2
    assert capsys.readouterr().err == "binwright: no topics\n"


def test_a_failure_of_the_world_ends_with_1() -> None:
    async def main() -> None:
        raise ExceptionGroup("tasks", [BrokerUnavailable("gone")])

    assert run(main) == 1


def test_our_own_fault_is_shown_whole() -> None:
    async def main() -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run(main)


def test_of_many_errors_the_one_of_ours_says_most() -> None:
    ours = BrokerUnavailable("gone")
    nested = BaseExceptionGroup("a", [ValueError(), BaseExceptionGroup("b", [KeyError(), ours])])
    assert first_cause(nested) is ours


async def test_what_must_not_end_is_missed_when_it_does() -> None:
    with pytest.raises(RuntimeError, match="ended that must not"):
        await endless(asyncio.sleep(0))


async def test_a_cancellation_that_nobody_asked_for_is_told() -> None:
    async def cut_off() -> None:
        raise asyncio.CancelledError

    with pytest.raises(RuntimeError, match="nobody asked for it"):
        await asyncio.create_task(endless(cut_off()))


async def test_a_cancellation_that_was_asked_for_passes() -> None:
    task = asyncio.create_task(endless(asyncio.sleep(60)))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
