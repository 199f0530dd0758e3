"""The command line: `binwright --help`."""

import sys
from collections.abc import Mapping
from importlib.metadata import version
from typing import Annotated

import typer

from binwright.cli.lazy_group import lazy_app
from binwright.protocol.errors import ExternalError, SettingsError, UserError
from binwright.runtime.run import EXIT_FAILED, print_error, print_usage_error

COMMANDS: Mapping[str, str] = {
    "demo": "binwright.local.demo:command",
    "up": "binwright.local.up:command",
    "status": "binwright.views.commands.status:command",
    "approve": "binwright.views.commands.approve:command",
    "audit": "binwright.audit.command:command",
    "page": "binwright.views.commands.page:command",
    "top": "binwright.views.commands.top:command",
    "record": "binwright.recordings.commands.record:command",
    "replay": "binwright.recordings.commands.replay:command",
    "brokers": "binwright.balancer.commands:app",
    "load": "binwright.recordings.commands.load:command",
    "generate": "binwright.recordings.commands.generate:command",
    "convert": "binwright.recordings.commands.convert:command",
    "lab": "binwright.lab.commands.app:app",
    "settings": "binwright.cli.settings_page:command",
    "monitor": "binwright.cli.services:monitor",
    "controller": "binwright.cli.services:controller",
    "consumer": "binwright.cli.services:consumer",
    "steer": "binwright.cli.services:steer",
    "scaler": "binwright.cli.services:scaler",
    "balancer": "binwright.cli.services:balancer",
}
"""In the order in which a new user needs them."""


def _version(wanted: bool) -> None:
    if wanted:
        sys.stdout.write(f"binwright {version('binwright')}\n")
        raise typer.Exit


def root_options(
    *,
    version_: Annotated[
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Print the version."),
    ] = False,
) -> None:
    """Define the options of all commands."""


app = lazy_app(
    COMMANDS,
    "Scale a Kafka consumer group by load, and land its topics in Delta tables exactly once.",
    root_options,
)


def main() -> None:
    """Run the command line; faults of the user or of a server are printed without a traceback."""
    try:
        app()
    except UserError as exc:
        sys.exit(print_usage_error(exc))
    except ExternalError as exc:
        print_error(exc)
        sys.exit(EXIT_FAILED)
    except OSError as exc:
        sys.exit(print_usage_error(SettingsError(str(exc))))
