"""Encodes messages as JSON, decodes and validates them, and gives their record keys."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Annotated, Any

import orjson
from pydantic import Field, TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

from binwright.core.errors import MalformedMessage, UnknownKind
from binwright.core.model import TopicPartition
from binwright.core.protocol.broker_plans import BrokerPlanRecord
from binwright.core.protocol.commands import Command, Dead
from binwright.core.protocol.group_plans import GroupPlan
from binwright.core.protocol.measurements import Measurement, Needs
from binwright.core.protocol.messages import Inbound, Message
from binwright.core.protocol.reports import Gap, Goodbye, Hello, Report, Started, Stopped
from binwright.core.protocol.staged import Staged


def _adapter(union: Any) -> TypeAdapter[Any]:
    return TypeAdapter(Annotated[union, Field(discriminator="kind")])


_INBOUND, _COMMAND, _MEASUREMENT = _adapter(Inbound), _adapter(Command), TypeAdapter(Measurement)
_STAGED, _NEEDS, _GROUP_PLAN = TypeAdapter(Staged), TypeAdapter(Needs), TypeAdapter(GroupPlan)
_BROKER_PLANS = _adapter(BrokerPlanRecord)


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


def encode(message: Message) -> bytes:
    """Return JSON, fields as declared, mappings sorted: equal messages are equal bytes."""
    if isinstance(message, Measurement):  # large, frequent, and without mappings: the faster way
        return orjson.dumps(
            {**_shallow(message), "partitions": list(map(tuple, message.partitions))}
        )
    return orjson.dumps(_plain(message))


def _shallow(message: Message) -> dict[str, Any]:
    return {f.name: getattr(message, f.name) for f in fields(message)}


def key(message: Message) -> bytes:
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


def decode_inbound(payload: bytes | None) -> Inbound:
    """Read a record of metadata partition 0; raise `MalformedMessage` or `UnknownKind`."""
    message: Inbound = _decode(_INBOUND, payload)
    return message


def decode_command(payload: bytes | None) -> Command:
    """Read a record of a slot's own partition; raise `MalformedMessage` or `UnknownKind`."""
    message: Command = _decode(_COMMAND, payload)
    return message


def decode_measurement(payload: bytes | None) -> Measurement:
    """Read a record of the metrics topic; raise `MalformedMessage` or `UnknownKind`."""
    message: Measurement = _decode(_MEASUREMENT, payload)
    return message


def decode_needs(payload: bytes | None) -> Needs:
    """Read a record of the needs topic; raise `MalformedMessage` or `UnknownKind`."""
    message: Needs = _decode(_NEEDS, payload)
    return message


def decode_staged(payload: bytes | None) -> Staged:
    """Read a record of the landing topic; raise `MalformedMessage` or `UnknownKind`."""
    message: Staged = _decode(_STAGED, payload)
    return message


def decode_group_plan(payload: bytes | None) -> GroupPlan:
    """Read a record of the plans topic; raise `MalformedMessage` or `UnknownKind`."""
    message: GroupPlan = _decode(_GROUP_PLAN, payload)
    return message


def decode_broker_plan(payload: bytes | None) -> BrokerPlanRecord:
    """Read a record of the topic of plans for brokers; raise as the others."""
    message: BrokerPlanRecord = _decode(_BROKER_PLANS, payload)
    return message
