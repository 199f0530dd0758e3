"""`binwright brokers`: where replicas are, where they should be, and how they get there."""

from collections.abc import Mapping
from typing import ClassVar

import typer

from binwright.cli.lazy_group import LazyGroup


class BrokerCommands(LazyGroup):
    """The commands about brokers."""

    COMMANDS: ClassVar[Mapping[str, str]] = {
        "status": "binwright.cli.brokers.status:command",
        "plan": "binwright.cli.brokers.plan:plan",
        "drain": "binwright.cli.brokers.plan:drain",
        "apply": "binwright.cli.brokers.apply:apply",
        "approve": "binwright.cli.brokers.approve:approve",
        "withdraw": "binwright.cli.brokers.approve:withdraw",
        "cancel": "binwright.cli.brokers.apply:cancel",
        "simulate": "binwright.cli.brokers.simulate:command",
    }


app = typer.Typer(
    cls=BrokerCommands,
    add_completion=False,
    no_args_is_help=True,
    help="Balance a Kafka cluster: place replicas by true load, and move as little as possible.",
)


@app.callback()
def common() -> None:
    """Define the options of all commands: none."""
