"""`binwright lab`: experiments and simulations, offline unless they say otherwise."""

from collections.abc import Mapping
from typing import ClassVar

import typer

from binwright.cli.lazy_group import LazyGroup


class Experiments(LazyGroup):
    """The lab's commands."""

    COMMANDS: ClassVar[Mapping[str, str]] = {
        "packing": "binwright.cli.lab.packing:packing",
        "paper": "binwright.cli.lab.paper:paper",
        "report": "binwright.cli.lab.report:report",
        "latency": "binwright.cli.lab.latency:latency",
        "simulate": "binwright.cli.lab.simulate:simulate",
        "sweep": "binwright.cli.lab.sweep:sweep",
        "slo": "binwright.cli.lab.slo:slo",
        "timings": "binwright.cli.lab.timings:timings",
    }


app = typer.Typer(
    cls=Experiments,
    add_completion=False,
    no_args_is_help=True,
    help="Run the papers' experiments and simulate your own load.",
)


@app.callback()
def common() -> None:
    """Define the options of all experiments: none."""
