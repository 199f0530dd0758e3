"""A service from its settings to its exit code."""

import gc
from argparse import ArgumentParser
from collections.abc import Awaitable, Callable, Sequence

from binwright.core.errors import UserError
from binwright.shell.logs import configure
from binwright.shell.run import complain, run
from binwright.shell.settings import Settings, load_settings

COLLECT_EVERY = 50_000
"""How many more things there are before Python looks for circles among the newest.

A pass over many partitions makes tens of thousands of small values and none in circles: with
Python's 700, a quarter of a monitor's time and a third of a large decision went into looking.
"""


def parse(service: str, description: str | None, arguments: Sequence[str] | None) -> None:
    """Answer `--help`, and refuse anything else: what a service does is said by its settings."""
    told = "Settings: BINWRIGHT_SETTINGS names a TOML file, BINWRIGHT_<SECTION>__<NAME> one value."
    parser = ArgumentParser(f"python -m binwright.{service}", None, description, told)
    parser.parse_args(arguments)


def serve(work: Callable[[Settings], Awaitable[None]]) -> int:
    """Run `work` with the settings of the file and the environment; return the exit code."""
    try:
        settings = load_settings()
    except UserError as exc:
        return complain(exc)
    gc.set_threshold(COLLECT_EVERY)
    configure(settings.log_level, settings.log_format)
    return run(lambda: work(settings))
