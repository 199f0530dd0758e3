"""What readers of single values have in common: why one is bad, and arrays of what they read."""

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Context, DivisionByZero, Inexact, InvalidOperation
from decimal import Decimal as Number
from typing import Any, Literal, TypeAlias

import pyarrow as pa

from binwright.consumer.decoding.arrow_types import BAD
from binwright.protocol.columns import Decimal

INTEGER_BITS = {"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64}
REASON_LENGTH, PATH_LENGTH, EXCERPT_LENGTH = 200, 100, 40  # characters, at most

Fields = dict[str, Any]
Decoded: TypeAlias = "tuple[pa.Array[Any], pa.Array[Any]]"
"""Rows and bad records: structs, of which both have one per value.

A row is NULL where the value is bad; a bad record is NULL where it is not.
"""


@dataclass(frozen=True, slots=True)
class Bad:
    """Why a value could not be decoded."""

    kind: Literal["malformed", "incompatible", "schema_unknown"]
    reason: str  # at most `REASON_LENGTH` characters


def not_text(fault: UnicodeDecodeError) -> Bad:
    """Return a value as bad that is no text."""
    return Bad("malformed", f"is not UTF-8: {fault.reason} at byte {fault.start}")


Read = Callable[[bytes | None], Fields | Bad]
"""Reads a value: its fields that are not NULL, as Arrow takes them. A tombstone has none."""


class Misfit(Exception):
    """A value does not fit its type; callers put the place before the path as they let it pass."""

    def __init__(self, wanted: str, there: object) -> None:
        super().__init__(wanted)
        self.wanted, self.there, self.path = wanted, there, ""

    def bad(self) -> Bad:
        """Return the value as bad, with the place of the misfit in it."""
        path = self.path.removeprefix(".")
        if len(path) > PATH_LENGTH:
            path = f"{path[: PATH_LENGTH // 2 - 1]}…{path[-PATH_LENGTH // 2 :]}"
        return Bad("incompatible", f"{path} needs {self.wanted}, has {described(self.there)}")


def described(value: object) -> str:
    """Return what a value is, in a few words."""
    if value is None or isinstance(value, bool):
        return "null" if value is None else str(value).lower()
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, list):
        return "an array"
    text = str(value)
    short = text if len(text) <= EXCERPT_LENGTH else f"{text[: EXCERPT_LENGTH - 1]}…"
    return f"the string {short!r}"[: 3 * EXCERPT_LENGTH // 2] if type(value) is str else short


def read_items(read: Callable[[Any], Any]) -> Callable[[list[Any]], list[Any]]:
    """Return what reads the items of a list, of which each may be None."""

    def read_list(values: list[Any]) -> list[Any]:
        found: list[Any] = []
        try:
            for item in values:
                found.append(None if item is None else read(item))  # noqa: PERF401 - its length is the index
        except Misfit as exc:
            exc.path = f"[{len(found)}]{exc.path}"
            raise
        return found

    return read_list


def read_pairs(
    read: Callable[[Any], Any],
) -> Callable[[dict[str, Any]], list[tuple[str, Any]]]:
    """Return what reads a map as Arrow takes it: as pairs, whose values may be None."""

    def read_map(values: dict[str, Any]) -> list[tuple[str, Any]]:
        found: list[tuple[str, Any]] = []
        for key, item in values.items():
            try:
                found.append((key, None if item is None else read(item)))
            except Misfit as exc:
                exc.path = f".{key}{exc.path}"
                raise
        return found

    return read_map


def exact_decimal(kind: Decimal) -> Callable[[Number, object], Number]:
    """Return what fits a number, which was written as another object, into a type exactly."""
    exact = Context(prec=kind.precision, traps=[Inexact, InvalidOperation, DivisionByZero])
    unit = Number(1).scaleb(-kind.scale)

    def fit(number: Number, written: object) -> Number:
        try:
            return number.quantize(unit, context=exact)
        except (Inexact, InvalidOperation):
            raise Misfit(str(kind), written) from None

    return fit


def decode_each(values: "pa.Array[Any]", read: Read, rows_type: "pa.StructType") -> Decoded:
    """Return what `read` makes of these values, which are binary or NULL."""
    rows: list[Fields | None] = []
    bad: list[dict[str, Any] | None] = []
    for value in values.to_pylist():
        found = read(value)
        if isinstance(found, Bad):
            rows.append(None)
            bad.append({"value": value, "kind": found.kind, "reason": found.reason})
        else:
            rows.append(found)
            bad.append(None)
    return pa.array(rows, rows_type), pa.array(bad, BAD)
