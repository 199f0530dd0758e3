"""A service as a process: one main coroutine, three signals, an exit code that says why."""

import asyncio
import contextlib
import os
import signal
import socket
import stat
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from typing import Any

import uvloop

from binwright.protocol.errors import BinwrightError, UserError
from binwright.protocol.log_events import LogEvent
from binwright.runtime.control_characters import visible
from binwright.runtime.logs import log

STOP_REQUESTED = LogEvent.info(
    "stop.requested", "SIGTERM, SIGINT or SIGHUP arrived; the service ends."
)
NAME_UNRESOLVED = LogEvent.debug(
    "name.unresolved",
    "A host's name did not resolve before its connection was given up; that is told apart.",
)
SERVICE_FAILED = LogEvent.error("service.failed", "The service ends with an error.")

EXIT_OK, EXIT_FAILED, EXIT_USAGE = 0, 1, 2
EXIT_INTERRUPTED = 130  # a signal ended it before there was a result


async def _until_signalled(main: Callable[[], Awaitable[None]]) -> None:
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(_without_late_names)
    task = asyncio.ensure_future(main())
    requested = False

    def stop(number: signal.Signals) -> None:
        nonlocal requested
        if number == signal.SIGHUP:
            _leave_terminal()
        log(STOP_REQUESTED, signal=number.name, again=requested)
        if not requested:  # a second signal must not interrupt the clean-up
            task.cancel()
        requested = True

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:  # by nohup
            loop.add_signal_handler(number, stop, number)
    try:
        await task
    except asyncio.CancelledError:
        if not requested:  # a cancellation without a signal is an error
            raise


def _without_late_names(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Log what nobody awaits, but for names that did not resolve in time.

    uvloop leaves the look-up of a connection that was given up: its caller has the time-out.
    """
    if isinstance(error := context.get("exception"), socket.gaierror):
        log(NAME_UNRESOLVED, reason=str(error))
    else:
        loop.default_exception_handler(context)


def _leave_terminal() -> None:
    """Write nothing more to a terminal that was closed: it would fail, also in the clean-up."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        if stat.S_ISCHR(os.fstat(stream.fileno()).st_mode):
            os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


@contextlib.asynccontextmanager
async def background_tasks(*works: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Run `works` as tasks beside the body: they end with it, and the failure of one ends it."""
    async with asyncio.TaskGroup() as tasks:
        running = [tasks.create_task(work) for work in works]
        try:
            yield
        finally:
            for task in running:
                task.cancel()


async def must_not_end(work: Awaitable[None]) -> None:
    """Await work that runs until it is cancelled, as a task of a group; raise if it ends.

    A task group ignores a task that ends early or is cancelled from inside (as a library may do
    with a task of its own): the other tasks would run on without it.
    """
    try:
        await work
    except asyncio.CancelledError as exc:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        raise RuntimeError("a task was cancelled from inside") from exc
    raise RuntimeError("a task ended that runs until it is cancelled")


def root_cause(error: BaseException) -> BaseException:
    """Return the first error inside exception groups, errors of binwright before all others."""
    while isinstance(error, BaseExceptionGroup):
        inner = [root_cause(e) for e in error.exceptions]
        error = next((e for e in inner if isinstance(e, BinwrightError)), inner[0])
    return error


@contextlib.contextmanager
def ungrouped(kind: type[Exception]) -> Iterator[None]:
    """Raise an error of `kind` without the group in which it comes; other errors of it go first.

    A handler by `except*` cannot: what it raises, Python 3.11.2 puts into a group again.
    """
    try:
        yield
    except BaseExceptionGroup as group:
        of_kind, others = group.split(kind)
        if of_kind is None:
            raise
        raise others or root_cause(of_kind) from None


def exit_code(error: type[BaseException]) -> int:
    """Return the exit code of a process that ends with an error of this class."""
    return EXIT_USAGE if issubclass(error, UserError) else EXIT_FAILED


def print_usage_error(error: UserError) -> int:
    """Print what has to be changed to standard error; return the exit code 2."""
    print_error(error)
    return exit_code(type(error))


def print_error(error: BinwrightError) -> None:
    """Print what failed to standard error, in one sentence."""
    sys.stderr.write(f"binwright: {visible(str(error))}\n")


def _logged(error: BinwrightError) -> None:
    log(SERVICE_FAILED, error=type(error).__name__, reason=str(error))


def run(
    main: Callable[[], Awaitable[None]], on_error: Callable[[BinwrightError], None] = _logged
) -> int:
    """Run `main` until it ends or SIGTERM, SIGINT or SIGHUP cancels it; return the exit code.

    0: it ended, or was stopped by a signal; 1: it failed, and `on_error` was called with the
    reason; 2: settings or arguments have to be changed.
    """
    try:
        uvloop.run(_until_signalled(main))
    except BaseException as error:
        cause = root_cause(error)
        match cause:
            case UserError():
                return print_usage_error(cause)
            case BinwrightError():
                on_error(cause)
                return exit_code(type(cause))
            case _:
                raise
    return EXIT_OK
