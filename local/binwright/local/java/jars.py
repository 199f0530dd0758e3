"""Jars with pinned sha256, fetched once and checked each time they are used."""

import asyncio
import hashlib
import re
import shutil
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryDirectory

import structlog

from binwright.local.cache import file_lock
from binwright.protocol.errors import EmbeddedError

LOCK_S = 900.0  # somebody else's download
FETCH_ATTEMPTS = 3  # a fetch and two retries of what it left out
PAUSE_S = 2.0  # before the first retry, twice that before the second

_LINE = re.compile(
    r"(?P<organisation>[^:\s]+):(?P<name>[^:\s]+):(?P<revision>[^:\s]+)(?::(?P<classifier>[^:\s]+))?"
    r" (?P<size>\d+) (?P<sha256>[0-9a-f]{64})"
)
_PART = ".part-"
_log = structlog.get_logger()

ProgressCallback = Callable[[str], None]


@dataclass(frozen=True, slots=True, order=True)
class Artifact:
    """One jar, exactly."""

    organisation: str
    name: str
    revision: str
    classifier: str  # mostly ""
    size: int  # bytes
    sha256: str

    @property
    def file_name(self) -> str:
        """The jar's name in the cache."""
        tail = f"-{self.classifier}" if self.classifier else ""
        return f"{self.name}-{self.revision}{tail}.jar"

    def __str__(self) -> str:
        return f"{self.organisation}:{self.name}:{self.revision}"


# Puts jars into a directory under their `file_name`. It may leave some out, and then returns why if
# it can tell; it checks none.
Fetch = Callable[[Sequence[Artifact], Path], Awaitable[str]]


def parse_lock(text: str) -> tuple[Artifact, ...]:
    """Read lines of `organisation:name:revision[:classifier] size sha256`, in their order.

    Raises:
        EmbeddedError: A line is not of that form.
    """
    lines = (line.strip() for line in text.splitlines())
    return tuple(_parse_line(line) for line in lines if line and not line.startswith("#"))


def locked_jars(name: str) -> tuple[Artifact, ...]:
    """Return the jars of a lock file that this package ships: "kafka", "delta" or "s3"."""
    return parse_lock(files("binwright.local").joinpath(f"{name}.lock").read_text())


async def ensure_jars(
    artifacts: Sequence[Artifact], directory: Path, fetch: Fetch, *, pause_s: float = PAUSE_S
) -> tuple[Path, ...]:
    """Return the jars' paths in `directory`, in order; fetch those that are not there or not right.

    Every jar is read and compared with its sha256 each time: 45 MB take 30 ms, and there is no
    record to trust. Processes that come at once fetch once.

    Raises:
        EmbeddedError: A fetched jar is not the one that is pinned, or could not be had.
    """
    if await asyncio.to_thread(_missing, artifacts, directory):
        async with file_lock(directory / ".lock", deadline_s=LOCK_S):
            await _fetch_missing(artifacts, directory, fetch, pause_s)
    return tuple(directory / a.file_name for a in artifacts)


async def _fetch_missing(
    artifacts: Sequence[Artifact], directory: Path, fetch: Fetch, pause_s: float
) -> None:
    _sweep(directory)
    why = ""
    for attempt in range(FETCH_ATTEMPTS):
        wanted = await asyncio.to_thread(_missing, artifacts, directory)
        if not wanted:
            return
        await asyncio.sleep(attempt * pause_s)
        _log.info("jars.missing", count=len(wanted), attempt=attempt + 1, directory=str(directory))
        with TemporaryDirectory(dir=directory, prefix=_PART) as scratch:
            why = await fetch(wanted, Path(scratch))
            for artifact in wanted:
                await asyncio.to_thread(_take, artifact, Path(scratch), directory)
    if wanted := await asyncio.to_thread(_missing, artifacts, directory):
        names = ", ".join(map(str, wanted))
        raise EmbeddedError(
            f"could not fetch {len(wanted)} of {len(artifacts)} jars in {FETCH_ATTEMPTS} tries: "
            f"{names} ({why or 'not found there'}). Look at the network; behind a mirror, set "
            "BINWRIGHT_IVY_SETTINGS to an Ivy settings file that names it; or put the files into "
            f"{directory} yourself"
        )


def _sweep(directory: Path) -> None:
    """Take away what a process left that was killed: we have the lock, so there is no other."""
    for left in directory.glob(f"{_PART}*"):
        shutil.rmtree(left, ignore_errors=True)


def _missing(artifacts: Sequence[Artifact], directory: Path) -> list[Artifact]:
    return [a for a in artifacts if _found(directory / a.file_name) != (a.size, a.sha256)]


def _take(artifact: Artifact, source: Path, directory: Path) -> None:
    """Move a fetched jar to its place if it is the right one; leave it out if it did not come."""
    file = source / artifact.file_name
    if (found := _found(file)) is None:
        return
    if found != (artifact.size, artifact.sha256):
        file.unlink()
        raise EmbeddedError(
            f"{artifact.file_name} ({artifact}) is not the file that is pinned, so it was deleted: "
            f"expected {artifact.size} bytes, sha256 {artifact.sha256}; "
            f"found {found[0]} bytes, sha256 {found[1]}. Something between here and the registry "
            "changes it: look at the proxy or mirror, then try again"
        )
    file.replace(directory / file.name)


def _found(file: Path) -> tuple[int, str] | None:
    try:
        with file.open("rb") as handle:
            digest = hashlib.file_digest(handle, "sha256").hexdigest()
            return handle.tell(), digest
    except FileNotFoundError:
        return None


def _parse_line(line: str) -> Artifact:
    if not (found := _LINE.fullmatch(line)):
        raise EmbeddedError(f"not a line of a jar lock: {line!r}")
    return Artifact(
        organisation=found["organisation"],
        name=found["name"],
        revision=found["revision"],
        classifier=found["classifier"] or "",
        size=int(found["size"]),
        sha256=found["sha256"],
    )
