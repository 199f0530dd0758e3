"""The page of all commands, from the application that runs them."""

from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import typer
from tools.reference.markdown import Entry, but_common, code, common, entries

from binwright.cli.main import app

HEAD = """\
# Commands

`binwright COMMAND --help` prints the same in a terminal. Commands that talk to Kafka read the
settings ([settings.md](settings.md)). A command ends with 0 if it did its work, 1 if it failed,
and 2 if a person has to change something ([errors.md](errors.md)). In parentheses stand a
parameter's value and its default.
"""

NAMES = {int: "integer", float: "number", Path: "path"}


def page() -> str:
    """Return the reference, in Markdown."""
    found = list(_commands(typer.main.get_command(app), "binwright"))
    shared = common(map(_entry, _parameters(command)) for _, command in found)
    parts = [HEAD, f"## Options of many commands\n\n{entries(shared)}"]
    return "\n".join([*parts, *(_section(name, command, shared) for name, command in found)])


def _commands(command: Any, name: str) -> Iterator[tuple[str, Any]]:
    """Yield a command with its whole name, and all below it."""
    yield name, command
    if hasattr(command, "list_commands"):
        for each in command.list_commands(None):
            yield from _commands(command.get_command(None, each), f"{name} {each}")


def _parameters(command: Any) -> list[Any]:
    return [p for p in command.params if p.name != "help"]


def _section(name: str, command: Any, shared: Collection[Entry]) -> str:
    parameters = _parameters(command)
    arguments = [p for p in parameters if _is_argument(p)]
    words = [name]
    words += ["[OPTIONS]"] if len(arguments) < len(parameters) else []
    words += ["COMMAND"] if hasattr(command, "list_commands") else []
    words += [_name(p) if p.required else f"[{_name(p)}]" for p in arguments]
    head = f"## {name}\n\n{_paragraph(command.help)}\n"
    usage = f"\n{code(' '.join(words))}\n" if arguments else ""
    found = list(map(_entry, parameters))
    return f"{head}{usage}\n{but_common(found, shared)}" if found else f"{head}{usage}"


def _paragraph(text: str | None) -> str:
    return " ".join((text or "").split())


def _is_argument(parameter: Any) -> bool:
    return bool(parameter.param_type_name == "argument")


def _name(argument: Any) -> str:
    return str(argument.name).upper().rstrip("_")


def _entry(parameter: Any) -> Entry:
    spelled = [_name(parameter)] if _is_argument(parameter) else parameter.opts
    names = ", ".join(map(code, [*spelled, *parameter.secondary_opts]))
    return names, (_value(parameter), _default(parameter)), parameter.help or ""


def _value(parameter: Any) -> str:
    kind = parameter.type_descriptor.annotation
    if kind is bool:
        return ""
    if get_origin(kind) is Literal:
        return ", ".join(code(str(choice)) for choice in get_args(kind))
    least, most = parameter.min, parameter.max
    words = [NAMES.get(kind, "text")]
    words += [f"from {least:.10g}"] if least is not None else []
    words += [f"up to {most:.10g}"] if most is not None else []
    return " ".join(words)


def _default(parameter: Any) -> str:
    if parameter.required:
        return "required"
    found, text = parameter.default, parameter.show_default
    if isinstance(text, str):  # what depends on the machine
        return text
    return "" if found is None or found is False or found == "" else code(str(found))
