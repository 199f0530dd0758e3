"""IncrementalAlterConfigs and ElectLeaders, which aiokafka lacks; it has the parts to build them.

The versions are those of Kafka 2.4, which all later brokers support.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from aiokafka.protocol.types import Array, Boolean, Int8, Int16, Int32, String

from binwright.kafka.frames import VersionedRequest, version

SET, DELETE = 0, 1
"""Operations of an incremental change."""
PREFERRED = 0
"""The election in which a partition's first replica becomes its leader."""

_TEXT = String("utf-8")


_RESULT = (
    ("error_code", Int16),
    ("error_message", _TEXT),
    ("resource_type", Int8),
    ("resource_name", _TEXT),
)
_CHANGE = (
    ("resource_type", Int8),
    ("resource_name", _TEXT),
    ("configs", Array(("name", _TEXT), ("operation", Int8), ("value", _TEXT))),
)


class IncrementalAlterConfigs(VersionedRequest):
    """Sets and removes single values of configurations: (type, name) -> name -> value or None."""

    VERSIONS = (
        version(
            44,
            0,
            [("resources", Array(*_CHANGE)), ("validate_only", Boolean)],
            [("throttle_time_ms", Int32), ("resources", Array(*_RESULT))],
        ),
    )

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


_ELECTED = ("partition", Int32), ("error_code", Int16), ("error_message", _TEXT)


class ElectLeaders(VersionedRequest):
    """Makes the first replicas of partitions their leaders: topic -> partitions."""

    VERSIONS = (
        version(
            43,
            1,
            [
                ("election_type", Int8),
                ("topics", Array(("topic", _TEXT), ("partitions", Array(Int32)))),
                ("timeout_ms", Int32),
            ],
            [
                ("throttle_time_ms", Int32),
                ("error_code", Int16),
                ("topics", Array(("topic", _TEXT), ("partitions", Array(*_ELECTED)))),
            ],
        ),
    )

    def __init__(self, partitions: Mapping[str, Sequence[int]], timeout_ms: int) -> None:
        self._partitions, self._timeout_ms = partitions, timeout_ms

    def build(self, request_struct_class: Any) -> Any:
        """Return the request."""
        topics = [(topic, list(numbers)) for topic, numbers in self._partitions.items()]
        return request_struct_class(PREFERRED, topics, self._timeout_ms)
