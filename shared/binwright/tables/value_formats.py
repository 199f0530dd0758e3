"""What the values of a topic seem to be, by a sample of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import orjson

from binwright.tables.inferred_columns import Inferred, infer_columns

HEADER_BYTES = 5
"""In front of a value by Confluent's serializers: a byte 0, and the id of its schema."""
MOST_SCHEMAS = 20
"""Different ids in a sample: more are no ids, but bytes that happen to begin with 0."""

NOTHING = Inferred(())

Kind = Literal["none", "json", "partly json", "by schema", "json by schema", "text", "binary"]


@dataclass(frozen=True, slots=True)
class ValueFormat:
    """What the values of a topic seem to be."""

    kind: Kind
    values: int = 0  # that were looked at; tombstones do not count
    objects: int = 0  # of them objects of JSON
    schemas: tuple[int, ...] = ()  # ids that the values name
    inferred: Inferred = NOTHING  # of the objects


def guess_format(sample: Sequence[bytes | None]) -> ValueFormat:
    """Return what these values are; those of tombstones are None."""
    values = [value for value in sample if value is not None]
    if not values:
        return ValueFormat("none")
    if schemas := _schema_ids(values):
        is_json = all(_is_object(value[HEADER_BYTES:]) for value in values)
        kind: Kind = "json by schema" if is_json else "by schema"
        return ValueFormat(kind, len(values), schemas=schemas)
    objects = [document for document in map(_parsed, values) if type(document) is dict]
    if objects:
        kind = "json" if len(objects) == len(values) else "partly json"
        return ValueFormat(kind, len(values), len(objects), inferred=infer_columns(objects))
    return ValueFormat("text" if all(map(_is_text, values)) else "binary", len(values))


def _schema_ids(values: Sequence[bytes]) -> tuple[int, ...]:
    """Return the ids of schemas with which all values begin; none: they begin otherwise."""
    if any(len(value) < HEADER_BYTES or value[0] for value in values):
        return ()
    ids = {int.from_bytes(value[1:HEADER_BYTES], "big") for value in values}
    return () if 0 in ids or len(ids) > MOST_SCHEMAS else tuple(sorted(ids))


def _parsed(value: bytes) -> Any:
    try:
        return orjson.loads(value.removeprefix(b"\xef\xbb\xbf"))  # as consumers do
    except orjson.JSONDecodeError:
        return None


def _is_object(value: bytes) -> bool:
    return type(_parsed(value)) is dict


def _is_text(value: bytes) -> bool:
    try:
        text = value.decode()
    except UnicodeDecodeError:
        return False
    return all(character.isprintable() or character in "\t\r\n" for character in text)
