"""What readers of single values have in common: why one is bad, and arrays of what they read."""

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Context, DivisionByZero, Inexact, InvalidOperation
from decimal import Decimal as Number
from typing import Any, TypeAlias

import pyarrow as pa

from binwright.consumer.decode.arrow_types import BAD, row_type
from binwright.protocol.errors import MaskUnavailable
from binwright.protocol.orders import BadValueKind
from binwright.tables.columns import Decimal
from binwright.tables.ports import ValueDecoder

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

    kind: BadValueKind
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
        items: list[Any] = []
        try:
            for item in values:
                items.append(None if item is None else read(item))  # noqa: PERF401 - its length is the index
        except Misfit as exc:
            exc.path = f"[{len(items)}]{exc.path}"
            raise
        return items

    return read_list


def read_pairs(
    read: Callable[[Any], Any],
) -> Callable[[dict[str, Any]], list[tuple[str, Any]]]:
    """Return what reads a map as Arrow takes it: as pairs, whose values may be None."""

    def read_map(values: dict[str, Any]) -> list[tuple[str, Any]]:
        pairs: list[tuple[str, Any]] = []
        for key, item in values.items():
            try:
                pairs.append((key, None if item is None else read(item)))
            except Misfit as exc:
                exc.path = f".{key}{exc.path}"
                raise
        return pairs

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


def undecodable(fault: Exception) -> Bad:
    """Return a value as bad whose decoding, or whose row, failed in no foreseen way."""
    text = f"cannot be decoded: {type(fault).__name__}: {fault}"
    return Bad("malformed", _storable(text)[:REASON_LENGTH])


NOT_OF_A_VALUE = (MemoryError, OSError, MaskUnavailable)
"""Faults of the process and its surroundings: what fails by them is tried again.

What cannot be masked is none of a value: it would land among the bad ones, as it is (†).
"""


def decode_each(values: "pa.Array[Any]", read: Read, rows_type: "pa.StructType") -> Decoded:
    """Return what `read` makes of these values, which are binary or NULL.

    Whatever fails of one value makes it bad, and holds no other.
    """
    rows: list[Fields | None] = []
    bad: list[dict[str, Any] | None] = []
    for value in values.to_pylist():
        try:
            result = read(value)
        except NOT_OF_A_VALUE:
            raise
        except Exception as exc:  # noqa: BLE001 - else the topic would stand still by one value
            result = undecodable(exc)
        if isinstance(result, Bad):
            rows.append(None)
            bad.append(_bad_record(value, result))
        else:
            rows.append(result)
            bad.append(None)
    try:
        made = pa.array(rows, rows_type)
    except NOT_OF_A_VALUE:
        raise
    except Exception:  # noqa: BLE001 - Arrow does not say which row it refuses
        for at, row in enumerate(rows):
            if row is not None and (fault := _refusal(row, rows_type)):
                rows[at], bad[at] = None, _bad_record(values[at].as_py(), fault)
        made = pa.array(rows, rows_type)
    return made, pa.array(bad, BAD)


def _refusal(row: Fields, rows_type: "pa.StructType") -> Bad | None:
    """Return why Arrow takes no array of this row, None if it does."""
    try:
        pa.array([row], rows_type)
    except NOT_OF_A_VALUE:
        raise
    except Exception as exc:  # noqa: BLE001 - as above
        return undecodable(exc)
    return None


def _bad_record(value: bytes | None, fault: Bad) -> dict[str, Any]:
    return {"value": value, "kind": fault.kind, "reason": _storable(fault.reason)}


def _storable(text: str) -> str:
    """Return a text as UTF-8 can hold it: values may have lone surrogates."""
    return text.encode(errors="backslashreplace").decode()


def decode_parts(decoder: ValueDecoder, values: Any, headers: Any, keys: Any) -> Decoded:
    """Return what a decoder makes of values; where it fails, of fewer, down to the bad one."""
    try:
        return decoder.decode(values, headers, keys)
    except NOT_OF_A_VALUE:
        raise
    except Exception as exc:  # noqa: BLE001 - as in `decode_each`
        if len(values) == 1:
            bad = [_bad_record(values[0].as_py(), undecodable(exc))]
            return pa.nulls(1, row_type(decoder.columns)), pa.array(bad, BAD)
    half = len(values) // 2
    places = (slice(0, half), slice(half, None))
    parts = [decode_parts(decoder, values[at], headers[at], keys[at]) for at in places]
    rows, bads = zip(*parts, strict=True)
    return pa.concat_arrays(rows), pa.concat_arrays(bads)
