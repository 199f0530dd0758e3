"""`binwright settings`: all settings of all programs, from the models that read them."""

import ast
import inspect
import sys
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from itertools import pairwise
from typing import get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from binwright.runtime.settings import ProgramSettings, Section

# By name: each program has its own, and this page alone looks at all of them.
PROGRAMS = (
    "binwright.controller.settings:ControllerProgramSettings",
    "binwright.balancer.settings:BalancerProgramSettings",
    "binwright.scaler.settings:ScalerProgramSettings",
)

HEAD = """\
# Settings

All services read the same TOML file; the environment variable `BINWRIGHT_SETTINGS` names it. An
environment variable overrides one value: `BINWRIGHT_GROUP`, `BINWRIGHT_KAFKA__BOOTSTRAP_SERVERS`.
A list is written as JSON: `BINWRIGHT_TOPICS='["a"]'`. A program refuses unknown keys of the
tables that it reads, and reports everything that is wrong at once, before it starts anything.

Two environment variables concern the embedded broker and Spark: `BINWRIGHT_CACHE` is the directory
where their jars are kept, and `BINWRIGHT_IVY_SETTINGS` an Ivy settings file that names your
mirror.

`binwright settings` prints this page.
"""


def command() -> None:
    """Print every setting there is, with its default."""
    sys.stdout.write(page())


def programs() -> Iterator[type[ProgramSettings]]:
    """Yield the settings of the programs that together read all there are."""
    for name in PROGRAMS:
        module, _, program = name.partition(":")
        yield getattr(import_module(module), program)


def page() -> str:
    """Return the page, in Markdown."""
    fields: dict[str, FieldInfo] = {}
    meanings: dict[str, str] = {}
    for model in programs():
        fields |= model.model_fields  # the program that owns a table comes last
        meanings |= descriptions(model)
    own = {n: f for n, f in fields.items() if not _section(f)}
    parts = [HEAD, _table(own, meanings)]
    for name, field in sorted(fields.items()):
        if section := _section(field):
            parts.append(f"## [{name}]\n\n{section.__doc__}\n")
            parts.append(_table(section.model_fields, descriptions(section)))
            parts += _inner_tables(name, section)
    return "\n".join(parts)


def descriptions(model: type[BaseModel]) -> dict[str, str]:
    """Return the meaning of each setting, inherited ones too: the docstring below its field.

    Read from the source here, not by pydantic: every process would parse it when it starts.
    """
    meanings: dict[str, str] = {}
    for kind in reversed(model.__mro__):
        if kind.__module__.startswith("binwright."):
            meanings |= _own_descriptions(kind)
    return meanings


def _own_descriptions(kind: type) -> dict[str, str]:
    (model,) = ast.parse(textwrap.dedent(inspect.getsource(kind))).body
    assert isinstance(model, ast.ClassDef)
    return {
        field.target.id: inspect.cleandoc(text)
        for field, docstring in pairwise(model.body)
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)
        if isinstance(docstring, ast.Expr) and isinstance(docstring.value, ast.Constant)
        if isinstance(text := docstring.value.value, str)
    }


def _section(field: FieldInfo) -> type[Section] | None:
    kind = field.annotation
    return kind if isinstance(kind, type) and issubclass(kind, Section) else None


def _inner_tables(name: str, section: type[Section]) -> Iterator[str]:
    """Yield what stands in the tables `[NAME.FIELD.KEY]` and `[[NAME.FIELD]]` of a section."""
    for field, info in section.model_fields.items():
        kinds = [kind for kind in get_args(info.annotation) if isinstance(kind, type)]
        for kind in kinds:
            if issubclass(kind, Section):
                several = get_origin(info.annotation) is tuple
                heading = f"## [[{name}.{field}]]" if several else f"### [{name}.{field}.NAME]"
                yield f"{heading}\n\n{kind.__doc__}\n"
                yield _table(kind.model_fields, descriptions(kind))
                yield from _inner_tables(f"{name}.{field}", kind)


def _table(fields: Mapping[str, FieldInfo], meanings: Mapping[str, str]) -> str:
    rows = (
        [code(n), "" if f.is_required() else _default(f.default), meanings.get(n, "")]
        for n, f in fields.items()
    )
    return table(["name", "default", "meaning"], rows)


def _default(value: object) -> str:
    return "" if value in (None, (), {}, PydanticUndefined) else f"`{value}`"


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table in Markdown; a bar inside a cell does not end the cell."""
    lines = [header, ["---"] * len(header), *rows]
    return "".join(f"| {' | '.join(map(_cell, line))} |\n" for line in lines)


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def code(text: str) -> str:
    """Return it as code; nothing if it is empty."""
    return f"`{text}`" if text else ""
