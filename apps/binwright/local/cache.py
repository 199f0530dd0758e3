"""Where what was fetched or built once is kept, and how two processes share it."""

import asyncio
import fcntl
import os
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

from binwright.protocol.errors import EmbeddedError, SettingsError

LOCK_POLL_S = 0.1
CACHE_VARIABLE = "BINWRIGHT_CACHE"


def cache_dir(environment: Mapping[str, str] = os.environ) -> Path:
    """Return the cache's directory, which need not exist: ours, the desktop's, or the home's.

    Raises:
        SettingsError: None is named, and this user has no home.
    """
    try:
        if own := environment.get(CACHE_VARIABLE):
            return Path(own).expanduser().absolute()
        # The XDG rules say that a relative path there is to be ignored.
        shared = Path(environment.get("XDG_CACHE_HOME", ""))
        if shared.is_absolute():
            return shared / "binwright"
        return Path(environment.get("HOME") or "~").expanduser() / ".cache" / "binwright"
    except RuntimeError as exc:
        raise SettingsError(
            f"this user has no home to keep jars in: name a directory by {CACHE_VARIABLE}"
        ) from exc


@contextmanager
def written_cache() -> Iterator[None]:
    """Translate errors of writing to the cache: say which directory it is, and how to name another.

    Raises:
        SettingsError: It cannot be written.
    """
    try:
        yield
    except OSError as exc:
        raise SettingsError(
            f"nothing can be kept in {cache_dir()} ({exc.strerror or exc}: {exc.filename}): name a "
            f"directory that this user may write by {CACHE_VARIABLE}"
        ) from exc


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
