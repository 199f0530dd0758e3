"""Encodes messages as JSON, decodes and validates them, and gives their record keys."""

from collections.abc import Callable, Mapping
from dataclasses import fields
from functools import partial
from typing import Annotated, Any, TypeVar

import orjson
from pydantic import Field, TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

from binwright.protocol.commands import Command, Dead
from binwright.protocol.errors import MalformedMessage, UnknownKind
from binwright.protocol.group_plans import GroupPlan
from binwright.protocol.measurements import Measurement, Needs
from binwright.protocol.messages import AnyMessage, Inbound
from binwright.protocol.model import TopicPartition
from binwright.protocol.reports import Gap, Goodbye, Hello, Report, Started, Stopped
from binwright.protocol.staged import Staged

T = TypeVar("T")


def decoder(union: Any) -> "Decode[Any]":
    """Return what reads the records of a topic that has these kinds, two at least."""
    return partial(_decode, _adapter(union))


def _adapter(union: Any) -> TypeAdapter[Any]:
    return TypeAdapter(Annotated[union, Field(discriminator="kind")])


def _plain(value: object) -> object:
    match value:
        case TopicPartition():
            return str(value)
        case Mapping():
            return {_plain(key): _plain(item) for key, item in sorted(value.items())}
        case tuple() | list():
            return [_plain(item) for item in value]
        case int() | float() | str() | bool() | None:
            return value
        case _:
            return {f.name: _plain(getattr(value, f.name)) for f in fields(value)}  # type: ignore[arg-type]


def encode(message: AnyMessage) -> bytes:
    """Return JSON, fields as declared, mappings sorted: equal messages are equal bytes."""
    if isinstance(message, Measurement):  # large, frequent, and without mappings: the faster way
        return orjson.dumps(
            {**_shallow(message), "partitions": list(map(tuple, message.partitions))}
        )
    return orjson.dumps(_plain(message))


def _shallow(message: Measurement) -> dict[str, Any]:
    return {f.name: getattr(message, f.name) for f in fields(message)}


def key(message: AnyMessage) -> bytes:
    """Return the record key: kind and slot, topic, or group; compaction retains the newest."""
    name = message.kind.partition("/")[0]
    match message:
        case Measurement() | Staged():
            return message.topic.encode()
        case Needs() | GroupPlan():
            return message.group.encode()
        case Hello() | Report() | Stopped() | Started() | Gap() | Goodbye() | Dead():
            return f"{name}/{message.slot}".encode()
        case _:
            return name.encode()


def _decode(adapter: TypeAdapter[Any], payload: bytes | None) -> Any:
    payload = payload or b""
    try:
        return adapter.validate_json(payload)
    except ValidationError as exc:
        faults = exc.errors(include_url=False, include_context=False)
        # A message of an unknown kind may have any other fields, so faults of the kind come first.
        unknown = [fault for fault in faults if _is_unknown_kind(fault)]
        first = (unknown or faults)[0]
        where = ".".join(map(str, first["loc"])) or "message"
        error = UnknownKind if unknown else MalformedMessage
        raise error(f"{where}: {first['msg']}", payload) from exc


def _is_unknown_kind(fault: ErrorDetails) -> bool:
    """Whether pydantic rejects the message's kind."""
    return fault["type"] == "union_tag_invalid" or (
        fault["type"] == "literal_error" and fault["loc"][-1:] == ("kind",)
    )


Decode = Callable[[bytes | None], T]
"""Reads a record; raises `MalformedMessage`, or `UnknownKind` for a kind of a later version."""

decode_inbound: Decode[Inbound] = decoder(Inbound)
"""Of metadata partition 0."""
decode_command: Decode[Command] = decoder(Command)
"""Of a slot's own partition."""
decode_measurement: Decode[Measurement] = partial(_decode, TypeAdapter(Measurement))
"""Of the metrics topic."""
decode_needs: Decode[Needs] = partial(_decode, TypeAdapter(Needs))
"""Of the needs topic."""
decode_staged: Decode[Staged] = partial(_decode, TypeAdapter(Staged))
"""Of the landing topic."""
decode_group_plan: Decode[GroupPlan] = partial(_decode, TypeAdapter(GroupPlan))
"""Of the plans topic."""
