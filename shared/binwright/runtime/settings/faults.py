"""Faults of settings in words: where each stands, what is wrong, what a right value looks like."""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any, get_args

from pydantic import BaseModel, SecretStr, ValidationError
from pydantic.fields import FieldInfo

from binwright.runtime.settings.programs import PREFIX, ProgramSettings

Location = tuple[int | str, ...]

NUMBER, WHOLE = "must be a number, as in 2.5", "must be a whole number, as in 10"
FLAG, LIST = "must be true or false", 'must be a list, as in ["a", "b"]'
WORDS = {
    "missing": "is missing",
    "string_pattern_mismatch": "does not fit {pattern}",
    "literal_error": "must be one of {expected}",
    "greater_than": "must be greater than {gt:g}",
    "greater_than_equal": "must be at least {ge:g}",
    "less_than_equal": "must be at most {le:g}",
    **dict.fromkeys(["float_parsing", "float_type"], NUMBER),
    **dict.fromkeys(["int_parsing", "int_type", "int_from_float"], WHOLE),
    **dict.fromkeys(["bool_parsing", "bool_type"], FLAG),
    **dict.fromkeys(["string_type", "path_type"], 'must be text, as in "a"'),
    **dict.fromkeys(["tuple_type", "list_type"], LIST),
    **dict.fromkeys(["dict_type", "model_type", "model_attributes_type"], "must be a table"),
}
"""What is wrong, by pydantic's kind of error; in braces, what it knows of the limit."""

_UNION_KIND = re.compile(r"(literal|constrained-\w+|function-\w+)(\[.*\])?")
"""How pydantic names a member of a union in a location."""
_SOURCE_FIELD = re.compile(r'field "(\w+)"')


@dataclass(frozen=True, slots=True)
class SettingSources:
    """Where values come from: arguments first, then the environment, then the file."""

    given: Mapping[str, Any]
    file: Path | None

    def of(self, location: Location) -> str:
        """Return where a value stands, before its name: `FILE, line 7: ` or a variable."""
        if _holds(self.given, location):
            return ""
        names = [str(part).upper() for part in location]
        for length in range(len(names), 0, -1):
            if (variable := PREFIX + "__".join(names[:length])) in os.environ:
                return f"{variable}: "
        if self.file is None:
            return ""
        line = _line_of(self.file.read_text(encoding="utf-8"), location)
        return f"{self.file}, line {line}: " if line else f"{self.file}: "


def validation_faults(
    error: ValidationError, program: type[ProgramSettings], sources: SettingSources
) -> list[str]:
    """Return each fault as a line: where, which setting, and what is wrong."""
    faults: dict[str, str] = {}  # a value of a union has one for each of its kinds
    for each in error.errors(include_url=False):
        location = tuple(part for part in each["loc"] if not _UNION_KIND.fullmatch(str(part)))
        field, siblings = _field(program, location)
        known = each.get("ctx", {})
        what = _words(each["type"], each["msg"], known, location, siblings)
        if field is not None and not _secret(field) and "got" not in what:
            what += _got(each["input"])
        name = "".join(f"[{p}]" if isinstance(p, int) else f".{p}" for p in location)
        where = f"  {sources.of(location)}{name.lstrip('.') or 'settings'}: "
        faults[where] = f"{faults[where]}; or {what}" if where in faults else what
    return [where + what for where, what in faults.items()]


def source_fault(error: ValueError, file: Path | None) -> str:
    """Return why a source cannot be read at all: TOML of the file, or JSON of a variable."""
    if match := _SOURCE_FIELD.search(str(error)):
        variable = PREFIX + match[1].upper()
        return f'{variable} is not JSON: write a list as \'["a", "b"]\', a table as \'{{"a": 1}}\''
    return f"{file}: {error}" if file else str(error)


def _words(
    kind: str, message: str, known: Mapping[str, Any], location: Location, siblings: list[str]
) -> str:
    if kind == "extra_forbidden":
        near = get_close_matches(str(location[-1]), siblings, n=1)
        return "there is no such setting" + (f"; did you mean {near[0]}?" if near else "")
    if kind in WORDS:
        return WORDS[kind].format(**known)
    return message.removeprefix("Value error, ")


def _got(value: object) -> str:
    if isinstance(value, str | int | float | bool):
        return f", got {value!r}"
    return ""


def _secret(field: FieldInfo) -> bool:
    return not field.repr or SecretStr in (field.annotation, *get_args(field.annotation))


def _field(model: type[BaseModel], location: Location) -> tuple[FieldInfo | None, list[str]]:
    """Return the field at a location, None if there is none, and the names beside it."""
    field, siblings = None, list(model.model_fields)
    inside: type[BaseModel] | None = model
    for part in location:
        if inside is None or isinstance(part, int):
            continue
        siblings = list(inside.model_fields)
        field = inside.model_fields.get(part)
        inside = _model(field.annotation) if field else None
    return field, siblings


def _model(annotation: object) -> type[BaseModel] | None:
    if isinstance(annotation, type):
        return annotation if issubclass(annotation, BaseModel) else None
    return next((m for each in get_args(annotation) if (m := _model(each))), None)


def _holds(values: object, location: Location) -> bool:
    for part in location:
        if not isinstance(values, Mapping) or part not in values:
            return False
        values = values[part]
        if not isinstance(values, Mapping):
            return True
    return True


def _line_of(text: str, location: Location) -> int | None:
    """Return the line of a TOML file where a value stands: below its table's head, or that."""
    names = [str(part) for part in location if isinstance(part, str)]
    table, best = "", None
    for number, line in enumerate(text.splitlines(), 1):
        if head := re.match(r"\s*\[+\s*([^\]]+?)\s*\]", line):
            table = head[1].replace('"', "").replace(" ", "")
            if names and table == ".".join(names):
                best = number
        elif key := re.match(r'\s*"?([\w-]+)"?\s*=', line):
            path = [*table.split("."), key[1]] if table else [key[1]]
            if path == names[: len(path)]:
                return number
    return best
