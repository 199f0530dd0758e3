"""Run the work of a command, and give it a directory and a console."""

import shutil
import sys
import tempfile
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

import typer
from rich.text import Text

from binwright.cli.terminal import Console
from binwright.runtime.logs import configure_logging
from binwright.runtime.run import EXIT_FAILED, EXIT_INTERRUPTED, print_error
from binwright.runtime.run import run as run_logged

T = TypeVar("T")
NAME = "binwright"


def run(work: Callable[[], Awaitable[None]], *, log_level: str = "error") -> int:
    """Run `work`; return the exit code. A failure is printed as one sentence; errors are logged."""
    configure_logging(log_level, "console")
    return run_logged(work, print_error)


def run_for_result(work: Callable[[], Awaitable[T]]) -> T:
    """Run `work` and return its result; exit with its code if there is none."""
    results: list[T] = []

    async def store() -> None:
        results.append(await work())

    code = run(store)
    if not results:
        raise typer.Exit(code or EXIT_INTERRUPTED)
    return results[0]


@contextmanager
def working_directory(named: Path | None) -> Iterator[Path]:
    """Give a directory: the named one, or a temporary one.

    The temporary one is deleted at the end, unless the work failed: its logs say why.
    """
    if named is not None:
        named.mkdir(parents=True, exist_ok=True)
        yield named.absolute()
        return
    temporary = Path(tempfile.mkdtemp(prefix="binwright-"))
    kept = False
    try:
        yield temporary
    except Exception as exc:
        failed = getattr(exc, "exit_code", EXIT_FAILED)
        kept = failed == EXIT_FAILED and any(temporary.iterdir())
        if kept:
            sys.stderr.write(f"binwright: the logs are kept in {temporary}\n")
        raise
    finally:
        if not kept:
            shutil.rmtree(temporary, ignore_errors=True)


class ProgressConsole(Console):
    """A console whose log is plain lines in a file or a pipe: neither folded nor padded."""

    def copyable(self, text: str) -> None:
        """Print a line, or several, that no newline divides in a narrow terminal."""
        self.print(text, soft_wrap=True, highlight=False, markup=False)

    def log(self, *objects: Any, **options: Any) -> None:
        """Print objects with the time."""
        if self.is_terminal:
            super().log(*objects, **options)
        else:
            now = f"{datetime.now().astimezone():[%H:%M:%S]}"
            self.print(Text(now), *objects, soft_wrap=True, highlight=False)


def progress_console(*, json_: bool = False) -> ProgressConsole:
    """Return the console for progress; with `json_` on standard error, apart from the JSON."""
    return ProgressConsole(stderr=json_, log_path=False)


def own_command() -> str:
    """Return what a person types to run the command line again from where this one was run."""
    called = Path(sys.argv[0])
    named = called.name == NAME and shutil.which(NAME) is None
    return sys.argv[0] if named else NAME


def split(topics: str) -> tuple[str, ...]:
    """Return the names in a list separated by commas."""
    return tuple(topic.strip() for topic in topics.split(",") if topic.strip())
