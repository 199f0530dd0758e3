"""KEDA's contract for external scalers, `externalscaler.ExternalScaler`, as protobuf messages.

Described here by names and numbers of fields, which is all that the wire needs; protobuf makes the
classes. Source: KEDA's documentation, "External Scalers".
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

PACKAGE = "externalscaler"
SERVICE = f"{PACKAGE}.ExternalScaler"

_Field = descriptor_pb2.FieldDescriptorProto
_SCALARS = {
    "string": _Field.TYPE_STRING,
    "bool": _Field.TYPE_BOOL,
    "int64": _Field.TYPE_INT64,
    "double": _Field.TYPE_DOUBLE,
}
_MESSAGES: Mapping[str, tuple[tuple[int, str, str], ...]] = {
    "ScaledObjectRef": (
        (1, "name", "string"),
        (2, "namespace", "string"),
        (3, "scalerMetadata", "map"),
    ),
    "IsActiveResponse": ((1, "result", "bool"),),
    "MetricSpec": (
        (1, "metricName", "string"),
        (2, "targetSize", "int64"),
        (3, "targetSizeFloat", "double"),
    ),
    "GetMetricSpecResponse": ((1, "metricSpecs", "repeated MetricSpec"),),
    "GetMetricsRequest": (
        (1, "scaledObjectRef", "ScaledObjectRef"),
        (2, "metricName", "string"),
    ),
    "MetricValue": (
        (1, "metricName", "string"),
        (2, "metricValue", "int64"),
        (3, "metricValueFloat", "double"),
    ),
    "GetMetricsResponse": ((1, "metricValues", "repeated MetricValue"),),
}
"""Message -> its fields: number, name, type."""


def _add_field(message: Any, number: int, name: str, kind: str) -> None:
    field = message.field.add(name=name, number=number, label=_Field.LABEL_OPTIONAL)
    if kind in _SCALARS:
        field.type = _SCALARS[kind]
        return
    field.type = _Field.TYPE_MESSAGE
    if kind == "map":  # of strings: on the wire, repeated pairs
        entry = f"{name[0].upper()}{name[1:]}Entry"
        pair = message.nested_type.add(name=entry)
        pair.options.map_entry = True
        _add_field(pair, 1, "key", "string")
        _add_field(pair, 2, "value", "string")
        field.label, kind = _Field.LABEL_REPEATED, f"{message.name}.{entry}"
    if kind.startswith("repeated "):
        field.label, kind = _Field.LABEL_REPEATED, kind.removeprefix("repeated ")
    field.type_name = f".{PACKAGE}.{kind}"


def _classes() -> dict[str, Any]:
    file = descriptor_pb2.FileDescriptorProto(
        name="binwright/externalscaler.proto", package=PACKAGE, syntax="proto3"
    )
    for name, fields in _MESSAGES.items():
        message = file.message_type.add(name=name)
        for field in fields:
            _add_field(message, *field)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return {
        name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{PACKAGE}.{name}"))
        for name in _MESSAGES
    }


CLASSES = _classes()
"""The class of each message, by its name."""


@dataclass(frozen=True, slots=True)
class ScaledObjectRef:
    """A ScaledObject that asks, and the metadata of its trigger."""

    name: str
    namespace: str
    metadata: Mapping[str, str]

    @classmethod
    def from_message(cls, message: Any) -> "ScaledObjectRef":
        """Read it from KEDA's message of that name."""
        return cls(message.name, message.namespace, dict(message.scalerMetadata))
