"""All settings of all programs, from the models that read them."""

from collections.abc import Iterator, Mapping
from inspect import getdoc

from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined
from tools.reference.markdown import Entry, but_common, code, entries

from binwright.inspect.settings_file import (
    descriptions,
    entry_of,
    inner_sections,
    program_fields,
    section_of,
    tables,
)
from binwright.protocol.section import Section

HEAD = """\
# Settings

All services read the same TOML file: `--settings FILE` of a command names it, or the environment
variable `BINWRIGHT_SETTINGS`. An environment variable overrides one value: `BINWRIGHT_GROUP`,
`BINWRIGHT_KAFKA__BOOTSTRAP_SERVERS`. A list is written as JSON: `BINWRIGHT_TOPICS='["a"]'`. A
program refuses unknown keys of the tables that it reads, and reports everything that is wrong at
once, before it starts anything.

`BINWRIGHT_CACHE` is the directory where the jars of the embedded broker and Spark are kept, and
`BINWRIGHT_IVY_SETTINGS` an Ivy settings file that names your mirror.

In parentheses stand defaults. `binwright settings` prints a file to start from, with all of them.
"""


def page() -> str:
    """Return the page, in Markdown."""
    fields, meanings = program_fields()
    own = {n: f for n, f in fields.items() if not (section_of(f) or entry_of(f))}
    parts = [HEAD, _list(own, meanings)]
    for name, field in sorted(fields.items()):
        if entry := entry_of(field):
            parts.append(f"## [[{name}]]\n\n{getdoc(entry)}\n")
            parts.append(_list(entry.model_fields, descriptions(entry)))
            parts += _inner(name, entry)
        if section := section_of(field):
            for head, each in tables(name, section):
                level = "##" if head == name else "###"
                parts.append(f"{level} [{head}]\n\n{getdoc(each)}\n")
                parts.append(_list(each.model_fields, descriptions(each)))
            parts += _inner(name, section)
    return "\n".join(parts)


def _inner(name: str, section: type[Section]) -> Iterator[str]:
    outer = _entries(section.model_fields, descriptions(section))
    for head, inner in inner_sections(name, section):
        level = "##" if head.startswith("[[") else "###"
        own = _entries(inner.model_fields, descriptions(inner))
        yield f"{level} {head}\n\n{getdoc(inner)}\n"
        yield but_common(own, outer, f"as in {code(name)}")


def _list(fields: Mapping[str, FieldInfo], meanings: Mapping[str, str]) -> str:
    return entries(_entries(fields, meanings))


def _entries(fields: Mapping[str, FieldInfo], meanings: Mapping[str, str]) -> list[Entry]:
    return [
        (code(n), ("" if f.is_required() else _default(f.default),), meanings.get(n, ""))
        for n, f in fields.items()
        if not section_of(f)
    ]


def _default(value: object) -> str:
    return "" if value in (None, (), {}, PydanticUndefined) else f"`{value}`"
