"""A group of commands, each imported when it is used."""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, ClassVar

import typer
from typer.core import TyperCommand, TyperGroup


class _PlainFlags:
    """Shows flags without a kind of value in the help: they take none."""

    def get_params(self, ctx: Any) -> list[Any]:
        params: list[Any] = super().get_params(ctx)  # type: ignore[misc]
        for option in params:
            if getattr(option, "is_flag", False):
                option.metavar = ""
        return params


class _Command(_PlainFlags, TyperCommand):
    pass


class LazyGroup(_PlainFlags, TyperGroup):
    """Imports only the module of the command that runs; a subclass names them."""

    COMMANDS: ClassVar[Mapping[str, str]] = {}
    """Module and function of each, `module:function`, in the order of the help."""
    PANELS: ClassVar[Mapping[str, str]] = {}
    """The heading in the help under which a command stands, where there are several."""

    def list_commands(self, _: Any) -> list[str]:
        """Return the names, in the order in which a new user needs them."""
        return list(self.COMMANDS)

    def get_command(self, _: Any, cmd_name: str) -> Any:
        """Return the command of this name; None: there is none."""
        if cmd_name not in self.COMMANDS:
            return None
        module, _, name = self.COMMANDS[cmd_name].partition(":")
        found = getattr(import_module(module), name)
        if not isinstance(found, typer.Typer):
            single = typer.Typer(add_completion=False)
            single.command(cmd_name, cls=_Command)(found)
            found = single
        command: Any = typer.main.get_command(found)
        command.name = cmd_name
        command.rich_help_panel = self.PANELS.get(cmd_name)
        return command


def no_options() -> None:
    """Define the options of all commands: none."""


def lazy_app(
    commands: Mapping[str, str],
    about: str,
    options: Callable[..., None] = no_options,
    panels: Mapping[str, str] | None = None,
) -> typer.Typer:
    """Return an application whose commands are imported when they are used.

    Args:
        commands: Module and function of each; see `LazyGroup.COMMANDS`.
        about: Its help.
        options: Defines the options of all commands.
        panels: Headings of the help; see `LazyGroup.PANELS`.
    """

    class Commands(LazyGroup):
        COMMANDS = commands
        PANELS = panels or {}

    app = typer.Typer(cls=Commands, add_completion=False, no_args_is_help=True, help=about)
    app.callback()(options)
    return app
