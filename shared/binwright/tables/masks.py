"""What of each record a table hides before it is staged, by its settings."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from binwright.protocol.section import Section
from binwright.tables.columns import (
    Array,
    Column,
    Columns,
    ColumnType,
    Map,
    Simple,
    Struct,
    folded,
    is_variant,
    parse_path,
)

DROP, NULL, SHA256, LAST = "drop", "null", "sha256", "last"
MASKED_REASON = "is masked, as the value is"
"""Of a bad record whose value is masked."""
OTHER_HEADERS = "*"
"""In `headers`: all that it does not name."""
HOW = rf"^({DROP}|{NULL}|{SHA256}|{LAST} [1-9][0-9]?)$"

MOST_NAMED = 1_000
"""Fields, or headers, of a mask."""

How = Annotated[str, Field(pattern=HOW)]
"""`drop`, `null`, `sha256`, or `last 4`: the last four characters."""
Rules = Mapping[str, "str | Rules"]
"""Folded name of a column or field -> how it is masked, or the rules of its fields."""


class MaskSettings(Section):
    """What is masked before it is staged: plain, it is in no file that binwright writes.

    Masks are `drop`, `null`, `sha256` (the HMAC by the key in `key_file`, as hexadecimal text) and
    `last 4`: `***` and the last four characters, of what has more; any number up to 99.
    """

    fields: dict[str, How] = Field(default_factory=dict, max_length=MOST_NAMED)
    """Columns, or fields as `by.name` -> masks, also in lists of structs. What is no text becomes
    text by `sha256` and `last 4`; a struct, map or variant takes `null` and `drop` alone. The
    `value` of a raw table is a column, too, and stays bytes.
    """
    key: How | None = None
    """The mask of the key's bytes; `drop` is as `null`. Where keys are decoded, `fields` has to
    name `_kafka_key` or fields of it as well.
    """
    headers: dict[str, How] = Field(default_factory=dict, max_length=MOST_NAMED)
    """Names of headers -> masks of their values; `drop` leaves out the header. `*`: all others."""
    bad: Literal["null", "sha256", "keep"] = "null"
    """The mask of values that could not be decoded. The reason, which would quote them, is masked
    as well; their kind stays. `keep`: both land as they are.
    """
    key_file: Path | None = None
    """A file with the secret of `sha256`, 16 characters at least, on each consumer. It is read for
    each file that is staged, so another secret counts at once; hashes by both differ.
    """

    @model_validator(mode="after")
    def _has_the_key(self) -> Self:
        hashed = SHA256 in (*self.fields.values(), self.key, *self.headers.values(), self.bad)
        if hashed and self.key_file is None:
            raise ValueError("names sha256, and no key_file")
        if not hashed and self.key_file is not None:
            raise ValueError("names a key_file, and no sha256")
        if not (self.fields or self.key or self.headers):
            raise ValueError("names no fields, no key and no headers")
        return self

    @model_validator(mode="after")
    def _has_rules(self) -> Self:
        _ = self.rules
        return self

    @property
    def rules(self) -> Rules:
        """Return the masks of columns; raise `ValueError` where `fields` contradicts itself."""
        rules: dict[str, str | Rules] = {}
        for path, how in self.fields.items():
            names = [folded(name) for name in parse_path(path)]
            here: Any = rules
            for name in names[:-1]:
                here = here.setdefault(name, {})
                if not isinstance(here, dict):
                    raise ValueError(  # noqa: TRY004 - a setting's value
                        f"fields: {path} lies in a column that is masked as a whole"
                    )
            if names[-1] in here:
                raise ValueError(f"fields: {path} is named twice, or has fields that are named")
            here[names[-1]] = how
        return rules

    @property
    def hides_twice(self) -> bool:
        """Whether keys or headers that are masked already would be masked to something else."""
        return not {self.key or NULL, *self.headers.values()} <= {DROP, NULL}

    @property
    def text(self) -> str:
        """Return all on which it depends what is masked, but for the secret; equal for the same."""
        parts = {**{f"field {p}": how for p, how in self.fields.items()}, "bad": self.bad}
        parts |= {f"header {name}": how for name, how in self.headers.items()}
        return "; ".join(f"{p} {how}" for p, how in sorted((parts | {"key": self.key}).items()))


def masked_columns(columns: Columns, rules: Rules) -> Columns:
    """Return columns as they are once they are masked.

    Raises:
        ValueError: There is no column that a rule names, or none of its type can be masked so.
    """
    names = {folded(column.name) for column in columns}
    if missing := [name for name in rules if name not in names]:
        raise ValueError(f"there is no column or field {missing[0]}")
    masked = []
    for column in columns:
        rule = rules.get(folded(column.name))
        if rule != DROP:
            masked.append(column if rule is None else _masked(column, rule))
    if columns and not masked:
        raise ValueError("nothing would be left")
    return tuple(masked)


def _masked(column: Column, rule: str | Rules) -> Column:
    if is_variant(column) and rule != NULL:
        raise ValueError(f"{column.name} is {column.type}, which can be null or dropped")
    try:
        return replace(column, type=masked_type(column.type, rule))
    except ValueError as exc:
        raise ValueError(f"{column.name}: {exc}") from exc


def masked_type(kind: ColumnType, rule: str | Rules) -> ColumnType:
    """Return the type of a column once it is masked; raise `ValueError` where it cannot be."""
    match kind, rule:
        case _, "null":
            return kind
        case Array(item), _:
            return Array(masked_type(item, rule))
        case Struct(fields), Mapping():
            return Struct(masked_columns(fields, rule))
        case _, Mapping():
            raise ValueError(f"is {kind}, which has no fields that can be masked")
        case ((Struct() | Map()), _):
            raise ValueError(f"is {kind}, which can be null or dropped")
        case _:
            return kind if kind == Simple("binary") else Simple("string")
