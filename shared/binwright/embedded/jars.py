"""Jars with pinned sha256, fetched once and checked each time they are used."""

import asyncio
import hashlib
import os
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryDirectory

import structlog

from binwright.core.errors import EmbeddedError
from binwright.embedded.cache import cache_dir, locked

LOCK_S = 900.0  # somebody else's download

_COORDINATES = (3, 4)
_log = structlog.get_logger()

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True, order=True)
class Artifact:
    """One jar, exactly."""

    organisation: str
    name: str
    revision: str
    classifier: str
    size: int  # bytes
    sha256: str

    @property
    def file_name(self) -> str:
        """The jar's name in the cache."""
        tail = f"-{self.classifier}" if self.classifier else ""
        return f"{self.name}-{self.revision}{tail}.jar"

    def __str__(self) -> str:
        return f"{self.organisation}:{self.name}:{self.revision}"


# Puts the jars into a directory under their `file_name`; may leave some out, never checks them.
Fetch = Callable[[Sequence[Artifact], Path, Say], Awaitable[None]]


def parse_lock(text: str) -> tuple[Artifact, ...]:
    """Read lines of `organisation:name:revision[:classifier] size sha256`, in their order.

    Raises:
        EmbeddedError: A line is not of that form.
    """
    lines = [line.strip() for line in text.splitlines()]
    return tuple(_parse_line(line) for line in lines if line and not line.startswith("#"))


def _parse_line(line: str) -> Artifact:
    try:
        coordinates, size, sha256 = line.split()
        organisation, name, revision, classifier, *more = (*coordinates.split(":"), "")
        if more != [""] * (len(coordinates.split(":")) - len(_COORDINATES) - 1 and 0) or len(sha256) != 64:
            raise ValueError
        return Artifact(organisation, name, revision, classifier, int(size), sha256)
    except ValueError as exc:
        raise EmbeddedError(f"not a line of a jar lock: {line!r}") from exc


def locked_jars(name: str) -> tuple[Artifact, ...]:
    """Return the jars of a lock file that this package ships: "kafka" or "delta"."""
    return parse_lock(files(__package__).joinpath(f"{name}.lock").read_text())
