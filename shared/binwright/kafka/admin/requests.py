"""IncrementalAlterConfigs and ElectLeaders, which aiokafka lacks; it has the parts to build them.

The versions are those of Kafka 2.4, which all later brokers support.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from aiokafka.protocol.api import Request, RequestStruct, Response
from aiokafka.protocol.types import Array, Boolean, Int8, Int16, Int32, Schema, String

SET, DELETE = 0, 1
"""Operations of an incremental change."""
PREFERRED = 0
"""The election in which a partition's first replica becomes its leader."""

_TEXT = String("utf-8")


class _AlterConfigsResponse(Response):  # type: ignore[misc]  # aiokafka has no types
    API_KEY, API_VERSION = 44, 0
    SCHEMA = Schema(
        ("throttle_time_ms", Int32),
        (
            "resources",
            Array(
                ("error_code", Int16),
                ("error_message", _TEXT),
                ("resource_type", Int8),
                ("resource_name", _TEXT),
            ),
        ),
    )


class _AlterConfigsRequest(RequestStruct):  # type: ignore[misc]  # aiokafka has no types
    API_KEY, API_VERSION, RESPONSE_TYPE = 44, 0, _AlterConfigsResponse
    SCHEMA = Schema(
        (
            "resources",
            Array(
                ("resource_type", Int8),
                ("resource_name", _TEXT),
                ("configs", Array(("name", _TEXT), ("operation", Int8), ("value", _TEXT))),
            ),
        ),
        ("validate_only", Boolean),
    )


class IncrementalAlterConfigs(Request[_AlterConfigsRequest]):  # type: ignore[misc]
    """Sets and removes single values of configurations: (type, name) -> name -> value or None."""

    API_KEY = 44

    def __init__(self, changes: Mapping[tuple[int, str], Mapping[str, str | None]]) -> None:
        self._changes = changes

    def build(self, request_struct_class: Any) -> Any:
        """Return the request."""
        resources = [
            (
                *resource,
                [(name, DELETE if new is None else SET, new) for name, new in values.items()],
            )
            for resource, values in self._changes.items()
        ]
        return request_struct_class(resources, False)  # noqa: FBT003 - the struct has no names


class _ElectResponse(Response):  # type: ignore[misc]  # aiokafka has no types
    API_KEY, API_VERSION = 43, 1
    SCHEMA = Schema(
        ("throttle_time_ms", Int32),
        ("error_code", Int16),
        (
            "topics",
            Array(
                ("topic", _TEXT),
                (
                    "partitions",
                    Array(("partition", Int32), ("error_code", Int16), ("error_message", _TEXT)),
                ),
            ),
        ),
    )


class _ElectRequest(RequestStruct):  # type: ignore[misc]  # aiokafka has no types
    API_KEY, API_VERSION, RESPONSE_TYPE = 43, 1, _ElectResponse
    SCHEMA = Schema(
        ("election_type", Int8),
        ("topics", Array(("topic", _TEXT), ("partitions", Array(Int32)))),
        ("timeout_ms", Int32),
    )


class ElectLeaders(Request[_ElectRequest]):  # type: ignore[misc]  # aiokafka has no types
    """Makes the first replicas of partitions their leaders: topic -> partitions."""

    API_KEY = 43

    def __init__(self, partitions: Mapping[str, Sequence[int]], timeout_ms: int) -> None:
        self._partitions, self._timeout_ms = partitions, timeout_ms

    def build(self, request_struct_class: Any) -> Any:
        """Return the request."""
        topics = [(topic, list(numbers)) for topic, numbers in self._partitions.items()]
        return request_struct_class(PREFERRED, topics, self._timeout_ms)
