"""Run the work of a command, and give it a directory and a console."""

import shutil
import tempfile
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import typer
from rich.console import Console

from binwright.runtime.logs import configure_logging
from binwright.runtime.run import EXIT_FAILED, print_error
from binwright.runtime.run import run as run_logged

T = TypeVar("T")


def run(work: Callable[[], Awaitable[None]]) -> int:
    """Run `work`; return the exit code. A failure is printed as one sentence; errors are logged."""
    configure_logging("error", "console")
    return run_logged(work, print_error)


def run_for_result(work: Callable[[], Awaitable[T]]) -> T:
    """Run `work` and return its result; exit with its code if there is none."""
    results: list[T] = []

    async def store() -> None:
        results.append(await work())

    code = run(store)
    if not results:
        # Ended by a signal without a result: not a success.
        raise typer.Exit(code or EXIT_FAILED)
    return results[0]


@contextmanager
def working_directory(named: Path | None) -> Iterator[Path]:
    """Give a directory: the named one, or a temporary one that is deleted at the end."""
    if named is not None:
        named.mkdir(parents=True, exist_ok=True)
        yield named.absolute()
        return
    temporary = Path(tempfile.mkdtemp(prefix="binwright-"))
    try:
        yield temporary
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def progress_console(*, json_: bool = False) -> Console:
    """Return the console for progress; with `json_` on standard error, apart from the JSON."""
    return Console(stderr=json_, log_path=False, soft_wrap=True)


def split(topics: str) -> tuple[str, ...]:
    """Return the names in a list separated by commas."""
    return tuple(topic.strip() for topic in topics.split(",") if topic.strip())
