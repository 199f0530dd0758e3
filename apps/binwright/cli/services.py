"""`binwright monitor`, `controller`, `consumer`, ...: one service, as a process."""

from importlib import import_module
from typing import Annotated

import typer


def monitor() -> None:
    """Run the monitor alone, with the settings of the file and the environment."""
    _serve("monitor.__main__")


def controller() -> None:
    """Run a controller alone, with the settings of the file and the environment."""
    _serve("controller.__main__")


def consumer(
    slot: Annotated[int, typer.Option(help="The consumer's slot, 0 or more.")],
) -> None:
    """Run one consumer alone, with the settings of the file and the environment."""
    _serve("consumer.__main__", "--slot", str(slot))


def scaler() -> None:
    """Run a scaler of ordinary consumer groups, with the settings of the file and environment."""
    _serve("scaler.__main__")


def balancer() -> None:
    """Run a balancer alone, with the settings of the file and the environment."""
    _serve("balancer.__main__")


def _serve(module: str, *arguments: str) -> None:
    """Import one service only: each needs libraries that may be missing for the others."""
    raise typer.Exit(import_module(f"binwright.{module}").main(list(arguments)))
