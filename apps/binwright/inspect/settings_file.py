"""`binwright settings`: a settings file to start from, with every setting there is."""

import ast
import inspect
import sys
import textwrap
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Annotated, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from binwright.balancer.settings import BalancerProgramSettings
from binwright.controller.settings import ControllerProgramSettings
from binwright.protocol.section import Section
from binwright.scaler.settings import ScalerProgramSettings

PROGRAMS = (ControllerProgramSettings, BalancerProgramSettings, ScalerProgramSettings)
"""Which together read all settings that there are; the one that owns a table comes last."""
WIDTH = 100
HEAD = """\
# Settings of binwright. What is commented out has the value shown, or none.
#
#   binwright settings > binwright.toml
#   binwright status --settings binwright.toml     (or BINWRIGHT_SETTINGS=binwright.toml)
#
# A variable of the environment overrides one value: BINWRIGHT_GROUP=orders,
# BINWRIGHT_KAFKA__BOOTSTRAP_SERVERS=kafka:9092, BINWRIGHT_TOPICS='["orders"]'.
"""


def command() -> None:
    """Print a settings file to start from: every setting with its meaning and default."""
    sys.stdout.write(text())


def text() -> str:
    """Return the file, in TOML."""
    fields, meanings = program_fields()
    own = {n: f for n, f in fields.items() if not (section_of(f) or entry_of(f))}
    parts = [HEAD, *_values(own, meanings)]
    for name, field in sorted(fields.items()):
        if entry := entry_of(field):
            parts += _section(f"#[[{name}]]", entry)
            for head, inner in inner_sections(name, entry):
                parts += _section(f"#{head}", inner)
        if section := section_of(field):
            for head, table in tables(name, section):
                parts += _section(f"[{head}]", table)
            for head, inner in inner_sections(name, section):
                parts += _section(f"#{head}", inner)
    return "\n".join(parts)


def program_fields() -> tuple[dict[str, FieldInfo], dict[str, str]]:
    """Return all that programs read, values and tables, and what each means."""
    fields: dict[str, FieldInfo] = {}
    meanings: dict[str, str] = {}
    for model in PROGRAMS:
        fields |= model.model_fields
        meanings |= descriptions(model)
    return fields, meanings


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


def section_of(field: FieldInfo) -> type[Section] | None:
    """Return the model of a field that is a table of the file; None: it is a value."""
    kind = field.annotation
    return kind if isinstance(kind, type) and issubclass(kind, Section) else None


def entry_of(field: FieldInfo) -> type[Section] | None:
    """Return the model of a field that is a list of tables, `[[NAME]]`; None: it is none."""
    return next(_parts(field), None) if _is_list(field) else None


def _is_list(field: FieldInfo) -> bool:
    return get_origin(field.annotation) is tuple


def _parts(field: FieldInfo) -> Iterator[type[Section]]:
    """Yield the models of the tables in a list or mapping."""
    for item in get_args(field.annotation):
        kind = get_args(item)[0] if get_origin(item) is Annotated else item
        if isinstance(kind, type) and issubclass(kind, Section):
            yield kind


def tables(name: str, section: type[Section]) -> Iterator[tuple[str, type[Section]]]:
    """Yield a table and the ones that are single values of it: `NAME`, `NAME.FIELD`."""
    yield name, section
    for field, info in section.model_fields.items():
        if inner := section_of(info):
            yield from tables(f"{name}.{field}", inner)


def inner_sections(name: str, section: type[Section]) -> Iterator[tuple[str, type[Section]]]:
    """Yield the tables in values of one: `[NAME.FIELD]`, `[NAME.FIELD.KEY]` or `[[NAME.FIELD]]`."""
    for field, info in section.model_fields.items():
        for kind in _parts(info):
            key = ".NAME" if get_origin(info.annotation) is dict else ""
            yield f"[[{name}.{field}]]" if _is_list(info) else f"[{name}.{field}{key}]", kind
            yield from inner_sections(f"{name}.{field}", kind)


def _section(head: str, section: type[Section]) -> Iterator[str]:
    yield "\n".join([*_comment(section.__doc__ or ""), head, ""])
    yield from _values(section.model_fields, descriptions(section))


def _values(fields: Mapping[str, FieldInfo], meanings: Mapping[str, str]) -> Iterator[str]:
    for name, field in fields.items():
        if section_of(field):
            continue  # it has its own head
        yield "\n".join([*_comment(meanings.get(name, "")), f"#{name} = {_default(field)}", ""])


def _comment(words: str) -> list[str]:
    return [f"# {line}" for line in textwrap.wrap(" ".join(words.split()), WIDTH - 2)]


def _default(field: FieldInfo) -> str:
    """Return the default in TOML; nothing behind the `=` where there is none."""
    if field.default in (None, PydanticUndefined):
        return ""
    match field.default:
        case bool(flag):
            return str(flag).lower()
        case int() | float() as number:
            return f"{number:_}" if isinstance(number, int) else f"{number}"
        case tuple() as values:
            return f"[{', '.join(_text(value) for value in values)}]"
        case dict():
            return "{}"
        case _:
            return _text(field.default)


def _text(value: object) -> str:
    return '"' + str(value).replace("\\", "\\\\").replace('"', '\\"') + '"'
