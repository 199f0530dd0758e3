"""A service from its settings to its exit code."""

import gc
from argparse import ArgumentParser
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from binwright.protocol.errors import UserError
from binwright.protocol.log_events import LogEvent
from binwright.runtime.environment import keep_loopback_direct
from binwright.runtime.logs import configure_logging, log
from binwright.runtime.run import print_usage_error, run
from binwright.runtime.settings.loading import load, readable_password
from binwright.runtime.settings.programs import ProgramSettings

PASSWORD_READABLE = LogEvent.warning(
    "password.readable",
    "Every user of the machine may read the settings file, in which a password is.",
)
Program = TypeVar("Program", bound=ProgramSettings)

COLLECT_EVERY = 50_000
"""Allocations between two collections of the youngest generation (`gc.set_threshold`).

A pass over many partitions creates tens of thousands of small values and no reference cycles: with
Python's default of 700, the collector took a quarter of a monitor's time and a third of a large
decision's.
"""


def run_service(
    name: str,
    description: str | None,
    work: Callable[[Program], Awaitable[None]],
    program: type[Program],
    arguments: Sequence[str] | None,
) -> int:
    """Run a service that is configured by settings alone; return the exit code.

    Args:
        name: Of its module within `binwright`.
        description: For its `--help`.
        work: What it does, until cancelled.
        program: The settings that it reads.
        arguments: Of the command line; only `--help` is accepted.
    """
    epilog = (
        "Settings: BINWRIGHT_SETTINGS names a TOML file, BINWRIGHT_<SECTION>__<NAME> one value."
    )
    parser = ArgumentParser(f"python -m binwright.{name}", None, description, epilog)
    parser.parse_args(arguments)
    return serve(work, program)


def serve(work: Callable[[Program], Awaitable[None]], program: type[Program]) -> int:
    """Run `work` with the settings of the file and the environment; return the exit code."""
    keep_loopback_direct()
    try:
        settings = load(program)
    except UserError as exc:
        return print_usage_error(exc)
    gc.set_threshold(COLLECT_EVERY)
    configure_logging(settings.log_level, settings.log_format)
    if file := readable_password():
        log(PASSWORD_READABLE, file=str(file))
    return run(lambda: work(settings))
