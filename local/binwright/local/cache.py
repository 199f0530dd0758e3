"""Where what was fetched or built once is kept, and how two processes share it."""

import asyncio
import fcntl
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from binwright.protocol.errors import EmbeddedError

LOCK_POLL_S = 0.1


def cache_dir(environment: Mapping[str, str] = os.environ) -> Path:
    """Return the cache's directory, which need not exist: ours, the desktop's, or the home's."""
    if own := environment.get("BINWRIGHT_CACHE"):
        return Path(own).expanduser().absolute()
    # The XDG rules say that a relative path there is to be ignored.
    shared = Path(environment.get("XDG_CACHE_HOME", ""))
    home = Path(environment.get("HOME") or "~").expanduser()
    return (shared if shared.is_absolute() else home / ".cache") / "binwright"


@asynccontextmanager
async def file_lock(path: Path, *, deadline_s: float) -> AsyncIterator[None]:
    """Hold the lock file `path` against other processes and tasks; the kernel frees it if we die.

    Raises:
        EmbeddedError: Somebody else held it for `deadline_s`.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as handle:
        try:
            async with asyncio.timeout(deadline_s):
                while not _taken(handle.fileno()):  # noqa: ASYNC110 - files tell nobody
                    await asyncio.sleep(LOCK_POLL_S)
        except TimeoutError as exc:
            raise EmbeddedError(
                f"another process has held {path} for {deadline_s:.0f} s: wait for it, or end it"
            ) from exc
        yield


def _taken(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
