"""The page of all commands, from the application that runs them."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import typer
from tools.reference.markdown import code, table

from binwright.cli.main import app

HEAD = """\
# Commands

`binwright COMMAND --help` prints the same in a terminal. Commands that talk to Kafka read the
settings ([settings.md](settings.md)). A command ends with 0 if it did its work, 1 if it failed,
and 2 if a person has to change something ([errors.md](errors.md)).

`python -m tools.reference cli` prints this page, in a checkout.
"""

NAMES = {int: "integer", float: "number", Path: "path"}


def page() -> str:
    """Return the reference, in Markdown."""
    return "\n".join([HEAD, *_sections(typer.main.get_command(app), "binwright")])


def _sections(command: Any, name: str) -> Iterator[str]:
    parameters = [p for p in command.params if p.name != "help"]
    arguments = [p for p in parameters if _is_argument(p)]
    words = [name]
    words += ["[OPTIONS]"] if len(arguments) < len(parameters) else []
    words += ["COMMAND"] if hasattr(command, "list_commands") else []
    words += [_name(p) if p.required else f"[{_name(p)}]" for p in arguments]
    yield f"## {name}\n\n{_paragraph(command.help)}\n\n```sh\n{' '.join(words)}\n```\n"
    if parameters:
        yield table(["parameter", "value", "default", "meaning"], map(_row, parameters))
    if hasattr(command, "list_commands"):
        for each in command.list_commands(None):
            yield from _sections(command.get_command(None, each), f"{name} {each}")


def _paragraph(text: str | None) -> str:
    return " ".join((text or "").split())


def _is_argument(parameter: Any) -> bool:
    return bool(parameter.param_type_name == "argument")


def _name(argument: Any) -> str:
    return str(argument.name).upper().rstrip("_")


def _row(parameter: Any) -> tuple[str, str, str, str]:
    spelled = [_name(parameter)] if _is_argument(parameter) else parameter.opts
    names = ", ".join(map(code, [*spelled, *parameter.secondary_opts]))
    return names, _value(parameter), _default(parameter), parameter.help or ""


def _value(parameter: Any) -> str:
    kind = parameter.type_descriptor.annotation
    if kind is bool:
        return ""
    if get_origin(kind) is Literal:
        return ", ".join(code(str(choice)) for choice in get_args(kind))
    least, most = parameter.min, parameter.max
    words = [NAMES.get(kind, "text")]
    words += [f"from {least:g}"] if least is not None else []
    words += [f"up to {most:g}"] if most is not None else []
    words += ["(may be repeated)"] if getattr(parameter, "multiple", False) else []
    return " ".join(words)


def _default(parameter: Any) -> str:
    if parameter.required:
        return "required"
    found, text = parameter.default, parameter.show_default
    if isinstance(text, str):  # what depends on the machine
        return text
    return "" if found is None or found is False or found == "" else code(str(found))
