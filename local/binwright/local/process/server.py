"""A server that is a child process: started, stopped, killed and started again on the same port."""

import time
from collections.abc import Awaitable, Callable

import structlog

from binwright.local.java.jars import ProgressCallback
from binwright.local.process.child import Child, Command

_log = structlog.get_logger()


def no_progress(_: str) -> None:
    """Say nothing."""


class Server:
    """One child process at a time, of one command."""

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
        _log.info("server.started", server=title, pid=child.pid, took_s=round(took_s, 3))

    async def stop(self) -> None:
        """Ask it to end and wait until it has; nothing if it does not run."""
        if self._child is not None:
            code = await self._child.stop(grace_s=self._grace_s)
            _log.info("server.stopped", server=self._command.title, code=code)

    async def kill(self) -> None:
        """End it as a power cut would, and wait until it is gone; nothing if it does not run."""
        if self._child is not None:
            await self._child.kill()
            _log.info("server.killed", server=self._command.title)
