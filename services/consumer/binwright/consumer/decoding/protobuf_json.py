"""The well-known types that stand for JSON, as its text."""

from math import isfinite
from typing import Any

import orjson

from binwright.consumer.decoding.fits import EXACT_IN_DOUBLE
from binwright.consumer.decoding.one_by_one import Misfit


def json_text(value: Any) -> str:
    """Return a `Struct`, a `Value` or a `ListValue` as JSON, names in order.

    Raises:
        Misfit: A number is none of JSON.
    """
    return orjson.dumps(_plain(value)).decode()


def _plain(value: Any) -> Any:
    match value.DESCRIPTOR.name:
        case "Struct":
            return {name: _plain(value.fields[name]) for name in sorted(value.fields)}
        case "ListValue":
            return [_plain(item) for item in value.values]
    match value.WhichOneof("kind"):
        case "number_value":
            return _number(value.number_value)
        case "struct_value":
            return _plain(value.struct_value)
        case "list_value":
            return _plain(value.list_value)
        case "string_value":
            return value.string_value
        case "bool_value":
            return value.bool_value
        case _:
            return None


def _number(number: float) -> float | int:
    if not isfinite(number):
        raise Misfit("a number of JSON", number)
    return int(number) if number.is_integer() and abs(number) < EXACT_IN_DOUBLE else number
