"""A server on this machine: its process, its port of 127.0.0.1, and the directory it lives in."""

import asyncio
import shutil
import socket
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from binwright.local.child import Child, Command
from binwright.protocol.errors import EmbeddedError
from binwright.protocol.log_events import LogEvent
from binwright.runtime.logs import log

HOST = "127.0.0.1"
CONNECT_S = 1.0

ProgressCallback = Callable[[str], None]
"""Called with each step, in words."""

SERVER_STARTED = LogEvent.info("server.started", "An embedded server runs.")
SERVER_STOPPED = LogEvent.info("server.stopped", "An embedded server ended.")
SERVER_KILLED = LogEvent.info(
    "server.killed", "An embedded server did not end in time and was killed."
)


def no_progress(_: str) -> None:
    """Say nothing."""


class Server:
    """One child process of a command: started, stopped, killed, and started again on its port."""

    def __init__(
        self,
        command: Command,
        *,
        until_ready: Callable[[Child], Awaitable[None]],
        grace_s: float,
        progress: ProgressCallback = no_progress,
    ) -> None:
        self._command = command
        self._until_ready = until_ready
        self._grace_s = grace_s
        self._progress = progress
        self._child: Child | None = None

    @property
    def pid(self) -> int | None:
        """The process id; None while it does not run."""
        return self._child.pid if self._child and self._child.returncode is None else None

    async def start(self) -> None:
        """Start it, on the data that are there, and wait until it serves; nothing if it runs.

        Raises:
            EmbeddedError: It ended, or did not serve in time; no process is left.
        """
        if self.pid is not None:
            return
        title, began = self._command.title, time.monotonic()
        self._progress(f"starting {title}")
        child = self._child = Child(self._command)
        try:
            await self._until_ready(child)
        except BaseException:
            child.reap()
            raise
        took_s = time.monotonic() - began
        self._progress(f"{title} is ready after {took_s:.1f} s")
        log(SERVER_STARTED, server=title, pid=child.pid, took_s=round(took_s, 3))

    async def stop(self) -> None:
        """Ask it to end and wait until it has; nothing if it does not run."""
        if self._child is not None:
            code = await self._child.stop(grace_s=self._grace_s)
            log(SERVER_STOPPED, server=self._command.title, code=code)

    async def kill(self) -> None:
        """End it as a power cut would, and wait until it is gone; nothing if it does not run."""
        if self._child is not None:
            await self._child.kill()
            log(SERVER_KILLED, server=self._command.title)


@contextmanager
def reserve_port(port: int | None = None) -> Iterator[int]:
    """Keep a port, or a free one if None, from being handed to anybody who asks for a free one.

    On Linux a bound socket that does not listen leaves room for a server that binds the same port
    with SO_REUSEADDR, as Java does, while the kernel gives the number to nobody else: so it is ours
    before the server's start, and from its stop to its next start. Elsewhere the socket must go
    first, which leaves a moment to others.

    Raises:
        EmbeddedError: Somebody listens on `port`, or it is not ours to take.
    """
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as holder:
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            holder.bind((HOST, port or 0))
        except (OSError, OverflowError) as exc:
            raise EmbeddedError(
                f"port {port} of {HOST} cannot be had ({exc}): end whoever listens there, "
                "or name no port and get a free one"
            ) from exc
        number = int(holder.getsockname()[1])
        if sys.platform != "linux":
            holder.close()
        yield number


async def accepts_connections(port: int) -> bool:
    """Tell whether somebody accepts connections on `port`, within a second."""
    with suppress(OSError, TimeoutError):
        async with asyncio.timeout(CONNECT_S):
            _, writer = await asyncio.open_connection(HOST, port)
        writer.close()
        return True
    return False


@contextmanager
def run_directory(directory: Path) -> Iterator[Path]:
    """Make `directory` and give its absolute path; if the block is cancelled, undo what was made.

    After one of our own errors everything stays: its message points to a log in there. What was
    there before always stays.
    """
    directory = directory.absolute()
    above = [directory, *directory.parents]
    made = [path for path in above if not path.exists()]
    before = set() if made else set(directory.iterdir())
    directory.mkdir(parents=True, exist_ok=True)
    try:
        yield directory
    except EmbeddedError:
        raise
    except BaseException:
        for path in made[-1:] or set(directory.iterdir()) - before:
            _remove(path)
        raise


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
