"""A group of commands, each imported when it is used."""

import ast
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
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
    _only_listed = False  # by the help and by shells, which need one sentence of each

    def list_commands(self, _: Any) -> list[str]:
        """Return the names, in the order in which a new user needs them."""
        return list(self.COMMANDS)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help, without importing the commands that it lists."""
        with self._listing():
            super().format_help(ctx, formatter)

    def shell_complete(self, ctx: Any, incomplete: str) -> Any:
        """Return the commands that begin so, with a sentence of each, and import none."""
        with self._listing():
            return super().shell_complete(ctx, incomplete)

    @contextmanager
    def _listing(self) -> Iterator[None]:
        self._only_listed = True
        try:
            yield
        finally:
            self._only_listed = False

    def get_command(self, _: Any, cmd_name: str) -> Any:
        """Return the command of this name; None: there is none."""
        if cmd_name not in self.COMMANDS:
            return None
        module, _, name = self.COMMANDS[cmd_name].partition(":")
        panel = self.PANELS.get(cmd_name)
        if self._only_listed and (about := _docstring(module, name)) is not None:
            return TyperCommand(cmd_name, help=about, rich_help_panel=panel)
        loaded = getattr(import_module(module), name)
        if not isinstance(loaded, typer.Typer):
            single = typer.Typer(add_completion=False)
            single.command(cmd_name, cls=_Command)(loaded)
            loaded = single
        command: Any = typer.main.get_command(loaded)
        command.name = cmd_name
        command.rich_help_panel = panel
        return command


def _docstring(module: str, name: str) -> str | None:
    """Return a function's docstring from the source, as importing what it needs takes a second.

    None: the module has no such function; it holds a group of commands, which imports nothing.
    """
    spec = find_spec(module)
    source = getattr(spec.loader, "get_source", lambda _: "")(module) if spec else ""
    for part in ast.parse(source or "").body:
        if isinstance(part, ast.FunctionDef) and part.name == name:
            return ast.get_docstring(part)
    return None


def no_options() -> None:
    """Define the options of all commands: none."""


def lazy_app(
    commands: Mapping[str, str],
    about: str,
    options: Callable[..., None] = no_options,
    panels: Mapping[str, str] | None = None,
    *,
    completion: bool = False,
) -> typer.Typer:
    """Return an application whose commands are imported when they are used.

    Args:
        commands: Module and function of each; see `LazyGroup.COMMANDS`.
        about: Its help.
        options: Defines the options of all commands.
        panels: Headings of the help; see `LazyGroup.PANELS`.
        completion: Add the options that have shells complete commands.
    """

    class Commands(LazyGroup):
        COMMANDS = commands
        PANELS = panels or {}

    app = typer.Typer(cls=Commands, add_completion=completion, no_args_is_help=True, help=about)
    app.callback()(options)
    return app
