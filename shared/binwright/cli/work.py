"""What commands do alike: run their work, and give it a place."""

import shutil
import tempfile
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import typer

from binwright.shell.run import EXIT_FAILED, plainly
from binwright.shell.run import run as run_logged

T = TypeVar("T")


def run(work: Callable[[], Awaitable[None]]) -> int:
    """Run `work` as a command's; return the exit code. What fails is told in a sentence."""
    return run_logged(work, plainly)


def result(work: Callable[[], Awaitable[T]]) -> T:
    """Run `work` to its end and return what it gives; exit with its code if there is nothing."""
    given: list[T] = []

    async def keep() -> None:
        given.append(await work())

    code = run(keep)
    if not given:
        # Ended by a signal without a result: not a success.
        raise typer.Exit(code or EXIT_FAILED)
    return given[0]


@contextmanager
def workplace(kept: Path | None) -> Iterator[Path]:
    """Give a directory: the one named, or one that is gone afterwards."""
    if kept is not None:
        kept.mkdir(parents=True, exist_ok=True)
        yield kept.absolute()
        return
    made = Path(tempfile.mkdtemp(prefix="binwright-"))
    try:
        yield made
    finally:
        shutil.rmtree(made, ignore_errors=True)


def split(topics: str) -> tuple[str, ...]:
    """Return the names in what was given as one word."""
    return tuple(topic.strip() for topic in topics.split(",") if topic.strip())
