"""The command line: `binwright --help`."""

import sys
from importlib import import_module
from importlib.metadata import version
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from binwright.core.errors import SettingsError, UserError
from binwright.shell.run import complain

COMMANDS = {
    "demo": "binwright.cli.system:demo",
    "up": "binwright.cli.system:up",
    "status": "binwright.cli.status:command",
    "approve": "binwright.cli.approve:command",
    "audit": "binwright.cli.audit:command",
    "page": "binwright.cli.page:command",
    "top": "binwright.cli.metrics:top",
    "record": "binwright.cli.metrics:record",
    "replay": "binwright.cli.metrics:replay",
    "load": "binwright.cli.load:command",
    "generate": "binwright.cli.generate:command",
    "lab": "binwright.cli.lab:app",
    "settings": "binwright.cli.reference:command",
    "monitor": "binwright.cli.services:monitor",
    "controller": "binwright.cli.services:controller",
    "consumer": "binwright.cli.services:consumer",
}
"""Where each command is, MODULE:NAME: only the one that runs is imported."""


class Commands(TyperGroup):
    """The commands, each imported when it is asked for."""

    def list_commands(self, _: Any) -> list[str]:
        """Return the names, in the order in which one meets them."""
        return list(COMMANDS)

    def get_command(self, _: Any, cmd_name: str) -> Any:
        """Return the command of this name, if there is one."""
        if cmd_name not in COMMANDS:
            return None
        module, _, name = COMMANDS[cmd_name].partition(":")
        found = getattr(import_module(module), name)
        if not isinstance(found, typer.Typer):
            alone = typer.Typer(add_completion=False)
            alone.command(cmd_name)(found)
            found = alone
        command = typer.main.get_command(found)
        command.name = cmd_name
        return command


app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    add_completion=False,
    help="Scale a Kafka consumer group by load, and land its topics in Delta tables exactly once.",
)


def _tell_version(wanted: bool) -> None:
    if wanted:
        sys.stdout.write(f"binwright {version('binwright')}\n")
        raise typer.Exit


@app.callback()
def common(
    *,
    version_: Annotated[
        bool,
        typer.Option("--version", callback=_tell_version, is_eager=True, help="Print the version."),
    ] = False,
) -> None:
    """Take what all commands have in common."""


def main() -> None:
    """Run the command line; what a person can mend is told without a traceback."""
    try:
        app()
    except UserError as exc:
        sys.exit(complain(exc))
    except OSError as exc:
        sys.exit(complain(SettingsError(str(exc))))
