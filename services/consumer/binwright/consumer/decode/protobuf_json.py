"""Messages as text of JSON: the well-known types that stand for it, and all others."""

from base64 import b64encode
from math import isfinite, isnan
from typing import Any

import orjson

from binwright.consumer.decode.fits import EXACT_IN_DOUBLE
from binwright.consumer.decode.one_by_one import Misfit
from binwright.consumer.decode.protobuf_schemas import is_map, kind_of


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


def field_text(field: Any, value: Any) -> str:
    """Return what a field has as JSON: names as in the schema, what has its default left out.

    Bytes are base64, enums their names, and what JSON has no number for is `"NaN"` or `"Infinity"`.

    Raises:
        Misfit: A number is none of JSON, or a time is out of range.
    """
    return orjson.dumps(_field(field, value)).decode()


def _field(field: Any, value: Any) -> Any:
    if is_map(field):
        key, item = field.message_type.fields
        is_flag = kind_of(key) == "bool"
        pairs = sorted(value.items(), key=lambda pair: pair[0])
        return {str(k).lower() if is_flag else str(k): _value(item, v) for k, v in pairs}
    return [_value(field, each) for each in value] if field.is_repeated else _value(field, value)


def _value(field: Any, value: Any) -> Any:
    match kind_of(field):
        case "message":
            return {each.name: _field(each, there) for each, there in value.ListFields()}
        case "wrapper":
            return _value(field.message_type.fields_by_name["value"], value.value)
        case "timestamp":
            return _moment(value)
        case "json":
            return _plain(value)
        case "bytes":
            return b64encode(value).decode()
        case "enum" if value in field.enum_type.values_by_number:
            return field.enum_type.values_by_number[value].name
        case "float" | "double":
            return value if isfinite(value) else _name(value)
    return value.decode() if kind_of(field) == "string" and type(value) is not str else value


def _moment(value: Any) -> str:
    try:
        return str(value.ToJsonString())
    except ValueError:
        raise Misfit("a timestamp of the years 1 to 9999", value.seconds) from None


def _name(number: float) -> str:
    return "NaN" if isnan(number) else f"{'-' if number < 0 else ''}Infinity"
