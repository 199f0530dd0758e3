"""Suspends and resumes a process, as SIGSTOP and SIGCONT do."""

import asyncio
import inspect
from functools import wraps
from typing import Any


class Gate:
    """Open, unless the process behind it is suspended."""

    def __init__(self) -> None:
        self._open = asyncio.Event()
        self._open.set()

    def suspend(self) -> None:
        """Block all calls, at their start or end."""
        self._open.clear()

    def resume(self) -> None:
        """Let all calls continue."""
        self._open.set()

    async def passed(self) -> None:
        """Wait until it is open."""
        await self._open.wait()


class _Gated:
    """A port whose calls begin and end only while the gate is open."""

    def __init__(self, port: Any, gate: Gate) -> None:
        self._port, self._gate = port, gate

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._port, name)
        if not inspect.iscoroutinefunction(found):
            return found

        @wraps(found)
        async def call(*args: Any, **kwargs: Any) -> Any:
            await self._gate.passed()
            result = await found(*args, **kwargs)
            await self._gate.passed()
            return gated(result, self._gate) if hasattr(result, "read") else result

        return call


def gated(port: Any, gate: Gate) -> Any:
    """Return the port as a process behind the gate uses it."""
    return _Gated(port, gate)
