"""One child process: started, awaited, stopped and always reaped."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from binwright.protocol.errors import EmbeddedError

POLL_S = 0.02
REAP_S = 10.0
TAIL_BYTES = 4_000

_WATCHDOG = Path(__file__).with_name("parent_watchdog.py")


@dataclass(frozen=True, slots=True)
class Command:
    """What to run, where, and where its output goes."""

    title: str  # as people call it: "the Kafka broker"
    argv: tuple[str, ...]
    directory: Path
    log: Path  # appended to
    environment: Mapping[str, str]
    nice: int = 0


class Child:
    """A running process, leader of a session of its own; dies with the thread that started it."""

    def __init__(self, command: Command) -> None:
        self._command = command
        command.directory.mkdir(parents=True, exist_ok=True)
        # Between here and the next await nothing can be cancelled: either there is a child
        # and somebody who knows it, or there is none.
        with command.log.open("ab") as log:
            self._process = subprocess.Popen(
                _with_watchdog(command),
                cwd=command.directory,
                env=dict(command.environment),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        """The process id, also after its end."""
        return self._process.pid

    @property
    def returncode(self) -> int | None:
        """How it ended (minus the signal's number if by one); None while it runs."""
        return self._process.poll()

    def tail(self) -> str:
        """Return the end of its log, for an error's message."""
        with suppress(OSError):
            text = self._command.log.read_bytes()[-TAIL_BYTES:].decode(errors="replace").strip()
            return f"{text}\n(its log: {self._command.log})"
        return "(it left no log)"

    async def wait(self) -> int:
        """Wait for the end, without a deadline of its own; return how it ended."""
        while (code := self.returncode) is None:  # noqa: ASYNC110 - works on any loop, in any thread
            await asyncio.sleep(POLL_S)
        return code

    async def wait_until_ready(
        self, condition: Callable[[], Awaitable[bool]], *, deadline_s: float
    ) -> None:
        """Ask `condition` again and again until it holds.

        Raises:
            EmbeddedError: The process ended first, or the deadline passed; with its last words.
        """
        title = self._command.title
        try:
            async with asyncio.timeout(deadline_s):
                while not await condition():
                    if (code := self.returncode) is not None:
                        raise EmbeddedError(
                            f"{title} ended with {code} before it was ready:\n{self.tail()}"
                        )
                    await asyncio.sleep(POLL_S)
        except TimeoutError as exc:
            raise EmbeddedError(
                f"{title} was not ready after {deadline_s:.0f} s:\n{self.tail()}"
            ) from exc

    async def stop(self, *, grace_s: float) -> int:
        """Ask it to end, make it end after `grace_s`, or at once if we are cancelled."""
        try:
            if self.returncode is None:
                self._process.terminate()
            with suppress(TimeoutError):
                async with asyncio.timeout(grace_s):
                    return await self.wait()
        finally:
            self.reap()
        return self._process.returncode

    async def kill(self) -> None:
        """End it now, as a power cut would, and wait until it is gone."""
        try:
            self._kill_group()
            with suppress(TimeoutError):
                async with asyncio.timeout(REAP_S):
                    await self.wait()
        finally:
            self.reap()

    def reap(self) -> None:
        """End it if it runs, without awaiting: for those who are cancelled already."""
        self._kill_group()
        self._process.wait(REAP_S)

    def _kill_group(self) -> None:
        # Not reaped means the number is still ours, and with it the group's.
        if self.returncode is None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)


async def run_to_end(command: Command, *, deadline_s: float) -> tuple[int, Child]:
    """Run a command and return how it ended, with the child to ask for its last words.

    Raises:
        EmbeddedError: It still ran at the deadline.
    """
    child = Child(command)
    try:
        async with asyncio.timeout(deadline_s):
            return await child.wait(), child
    except TimeoutError as exc:
        raise EmbeddedError(
            f"{command.title} was not done after {deadline_s:.0f} s:\n{child.tail()}"
        ) from exc
    finally:
        child.reap()


def _with_watchdog(command: Command) -> list[str]:
    # `preexec_fn` is unsafe beside threads: some lines of Python turn into the program instead.
    watchdog = (sys.executable, "-I", "-S", str(_WATCHDOG), str(os.getpid()), str(command.nice))
    return [*watchdog, *command.argv]
