"""The page of all settings, from the models that read them."""

import ast
import inspect
import textwrap
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import get_args

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined
from tools.reference.markdown import code, table

from binwright.runtime.settings import Section, Settings
from binwright.scaler.settings import LocalGroupSettings, ScaledGroupSettings, ScheduleSettings

HEAD = """\
# Settings

All services read the same TOML file; the environment variable `BINWRIGHT_SETTINGS` names it. An
environment variable overrides one value: `BINWRIGHT_GROUP`, `BINWRIGHT_KAFKA__BOOTSTRAP_SERVERS`.
A list is written as JSON: `BINWRIGHT_TOPICS='["a"]'`. A service refuses unknown keys, and reports
everything that is wrong at once, before it starts anything.

Two environment variables concern the embedded broker and Spark: `BINWRIGHT_CACHE` is the directory
where their jars are kept, and `BINWRIGHT_IVY_SETTINGS` an Ivy settings file that names your
mirror.

`binwright reference settings` prints this page.
"""

LISTS: tuple[tuple[str, type[Section], tuple[type[Section], ...]], ...] = (
    ("scaler.groups", LocalGroupSettings, (ScaledGroupSettings,)),
    ("scaler.groups.schedules", ScheduleSettings, ()),
)
"""Tables that a section may have several of: name, model, and the models that it extends."""


def page() -> str:
    """Return the reference, in Markdown."""
    own = {n: f for n, f in Settings.model_fields.items() if not _section(f)}
    parts = [HEAD, _table(own, descriptions(Settings))]
    for name, field in Settings.model_fields.items():
        if section := _section(field):
            parts.append(f"## [{name}]\n\n{section.__doc__}\n")
            parts.append(_table(section.model_fields, descriptions(section)))
            parts += _named_tables(name, section)
    for name, model, inherited in LISTS:
        meanings = {n: t for each in (*inherited, model) for n, t in descriptions(each).items()}
        parts.append(f"## [[{name}]]\n\n{model.__doc__}\n")
        parts.append(_table(model.model_fields, meanings))
    return "\n".join(parts)


def descriptions(section: type[BaseModel]) -> dict[str, str]:
    """Return the meaning of each setting: the docstring below its field.

    Read from the source here, not by pydantic: every process would parse it when it starts.
    """
    (model,) = ast.parse(textwrap.dedent(inspect.getsource(section))).body
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


def _named_tables(name: str, section: type[Section]) -> Iterator[str]:
    """Yield what stands in the tables `[SECTION.FIELD.NAME]` of a section."""
    for field, info in section.model_fields.items():
        kinds = [kind for kind in get_args(info.annotation) if isinstance(kind, type)]
        for kind in kinds:
            if issubclass(kind, Section):
                yield f"### [{name}.{field}.NAME]\n\n{kind.__doc__}\n"
                yield _table(kind.model_fields, descriptions(kind))


def _table(fields: Mapping[str, FieldInfo], meanings: Mapping[str, str]) -> str:
    rows = (
        [code(n), "" if f.is_required() else _default(f.default), meanings.get(n, "")]
        for n, f in fields.items()
    )
    return table(["name", "default", "meaning"], rows)


def _default(value: object) -> str:
    return "" if value in (None, (), {}, PydanticUndefined) else f"`{value}`"
