"""A service as a process: one main coroutine, two signals, an exit code that says why."""

import asyncio
import contextlib
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from typing import Any

import structlog
import uvloop

from binwright.core.errors import BinwrightError, UserError

log = structlog.get_logger()

EXIT_OK, EXIT_FAILED, EXIT_USAGE = 0, 1, 2


async def _until_signalled(main: Callable[[], Awaitable[None]]) -> None:
    loop = asyncio.get_running_loop()
    task = asyncio.ensure_future(main())
    asked = False

    def stop(number: signal.Signals) -> None:
        nonlocal asked
        log.info("stop.asked", signal=number.name, again=asked)
        if not asked:  # once: a second one must not cut the cleaning up short
            task.cancel()
        asked = True

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop, number)
    try:
        await task
    except asyncio.CancelledError:
        if not asked:  # a cancellation that nobody asked for is not ours to hide
            raise


@contextlib.asynccontextmanager
async def meanwhile(*works: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Let `works` run beside the body: they end with it, and their failure ends it."""
    async with asyncio.TaskGroup() as tasks:
        running = [tasks.create_task(work) for work in works]
        try:
            yield
        finally:
            for task in running:
                task.cancel()


async def endless(work: Awaitable[None]) -> None:
    """Do what must not end by itself, in a task of a group.

    The group would take no notice of one that ends, nor of one that is cancelled by nobody (as a
    library may do with a task of its own): the others would go on as if it were still there.
    """
    try:
        await work
    except asyncio.CancelledError as exc:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        raise RuntimeError("a task was cancelled, and nobody asked for it") from exc
    raise RuntimeError("a task ended that must not")


def first_cause(error: BaseException) -> BaseException:
    """Return the error inside task groups' wrappings that says most: ours before others'."""
    while isinstance(error, BaseExceptionGroup):
        inner = [first_cause(e) for e in error.exceptions]
        error = next((e for e in inner if isinstance(e, BinwrightError)), inner[0])
    return error


def complain(error: UserError) -> int:
    """Tell a person what to change; return the exit code for it."""
    sys.stderr.write(f"binwright: {error}\n")
    return EXIT_USAGE


def plainly(error: BinwrightError) -> None:
    """Tell in a sentence what failed: to who typed a command."""
    sys.stderr.write(f"binwright: {error}\n")


def _logged(error: BinwrightError) -> None:
    log.error("service.failed", error=type(error).__name__, reason=str(error))


def run(
    main: Callable[[], Awaitable[None]], tell: Callable[[BinwrightError], None] = _logged
) -> int:
    """Run `main` until it ends or SIGTERM or SIGINT cancels it; return the exit code.

    0: ended or was asked to; 1: failed, and `tell` is told why; 2: a person has to change
    something.
    """
    try:
        uvloop.run(_until_signalled(main))
    except BaseException as error:
        cause = first_cause(error)
        match cause:
            case UserError():
                return complain(cause)
            case BinwrightError():
                tell(cause)
                return EXIT_FAILED
            case _:
                raise
    return EXIT_OK
