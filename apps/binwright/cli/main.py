"""The command line: `binwright --help`."""

import os
import sys
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Annotated

import typer

from binwright.cli.lazy_group import lazy_app
from binwright.protocol.errors import ExternalError, SettingsError, UserError
from binwright.runtime.environment import keep_loopback_direct
from binwright.runtime.run import EXIT_FAILED, print_error, print_usage_error
from binwright.runtime.spark_url import has_token

PANELS: Mapping[str, Mapping[str, str]] = {
    "Try it": {
        "demo": "binwright.local.demo:command",
        "up": "binwright.local.up:command",
        "load": "binwright.streams.commands.load:command",
    },
    "Look": {
        "status": "binwright.look.commands.status:command",
        "explain": "binwright.look.commands.explain:command",
        "page": "binwright.look.commands.page:command",
        "top": "binwright.look.commands.top:command",
        "audit": "binwright.inspect.audit_command:command",
    },
    "Operate": {
        "init": "binwright.inspect.init.command:command",
        "settings": "binwright.inspect.settings_file:command",
        "acls": "binwright.inspect.acls:command",
        "doctor": "binwright.inspect.doctor.command:command",
        "schema": "binwright.inspect.schema_app:app",
        "approve": "binwright.look.commands.approve:command",
        "group": "binwright.look.commands.group:app",
        "table": "binwright.look.commands.table:app",
        "brokers": "binwright.balancer.commands:app",
        "calibrate": "binwright.lab.commands.calibrate:command",
        "shadow": "binwright.lab.commands.shadow:app",
    },
    "Run one service": {
        "monitor": "binwright.cli.services:monitor",
        "controller": "binwright.cli.services:controller",
        "consumer": "binwright.cli.services:consumer",
        "scaler": "binwright.cli.services:scaler",
        "balancer": "binwright.cli.services:balancer",
    },
    "Recordings and lab": {
        "record": "binwright.streams.commands.record:command",
        "replay": "binwright.streams.commands.replay:command",
        "generate": "binwright.streams.commands.generate:command",
        "convert": "binwright.streams.commands.convert:command",
        "lab": "binwright.lab.commands.app:app",
    },
}
"""In the order in which a new user needs them."""

COMMANDS = {name: where for panel in PANELS.values() for name, where in panel.items()}
OPTION, VARIABLE = "--settings", "BINWRIGHT_SETTINGS"


def _version(wanted: bool) -> None:
    if wanted:
        sys.stdout.write(f"binwright {version('binwright')}\n")
        raise typer.Exit


def root_options(
    *,
    settings: Annotated[
        Path | None,
        typer.Option(
            OPTION,
            help=f"A TOML file, before or after the command; else {VARIABLE} names it.",
        ),
    ] = None,
    version_: Annotated[
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Print the version."),
    ] = False,
) -> None:
    """Define the options of all commands; see `take_settings`."""
    del settings, version_


app = lazy_app(
    COMMANDS,
    "Scale a Kafka consumer group by load, and land its topics in Delta tables exactly once.",
    root_options,
    panels={name: panel for panel, commands in PANELS.items() for name in commands},
    completion=True,
)


def take_settings(arguments: Sequence[str]) -> list[str]:
    """Name the file of `--settings`, wherever it stands, to all programs; return the rest.

    The file's path becomes absolute: services that a command starts run in other directories.

    Raises:
        SettingsError: No file follows it.
    """
    rest: list[str] = []
    remaining = iter(arguments)
    for argument in remaining:
        name, equals, value = argument.partition("=")
        if name != OPTION:
            rest.append(argument)
            continue
        if not (file := value if equals else next(remaining, "")):
            raise SettingsError(f"{OPTION} names no file")
        os.environ[VARIABLE] = file
    if named := os.environ.get(VARIABLE):
        os.environ[VARIABLE] = str(Path(named).absolute())
    return rest


def main() -> None:
    """Run the command line; faults of the user or of a server are printed without a traceback."""
    keep_loopback_direct()
    if any(map(has_token, sys.argv[1:])):
        typer.echo(
            "warning: the command line has a Spark token, which each user of this machine reads "
            "in the list of processes. Put it into a file (lake.token_file), or into "
            "SPARK_CONNECT_AUTHENTICATE_TOKEN",
            err=True,
        )
    try:
        app(take_settings(sys.argv[1:]))
    except UserError as exc:
        sys.exit(print_usage_error(exc))
    except ExternalError as exc:
        print_error(exc)
        sys.exit(EXIT_FAILED)
    except ModuleNotFoundError as exc:
        package = (exc.name or "binwright").partition(".")[0]
        if package == "binwright":  # a fault of ours, not an extra that is not installed
            raise
        missing = f"this needs the package {package}, which is missing"
        fault = SettingsError(f"{missing}: pip install 'binwright[all]' brings it")
        sys.exit(print_usage_error(fault))
    except OSError as exc:
        sys.exit(print_usage_error(SettingsError(str(exc))))
