"""FindCoordinator and OffsetFetch for many groups at once: versions that aiokafka does not have.

Brokers before Kafka 3.0 answer for one group at a time.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from aiokafka.errors import IncompatibleBrokerVersion
from aiokafka.protocol.api import Request, RequestStruct, Response
from aiokafka.protocol.types import (
    Array,
    Boolean,
    CompactArray,
    CompactString,
    Int8,
    Int16,
    Int32,
    Int64,
    Schema,
    String,
    TaggedFields,
)

_GROUP = 0  # the type of key that names a consumer group
_TEXT, _SHORT = String("utf-8"), CompactString("utf-8")
_TAGS = ("tags", TaggedFields)


class Coordinator(NamedTuple):
    """The broker that coordinates a group, or why it is not known."""

    group: str
    broker: int
    error_code: int


class GroupOffset(NamedTuple):
    """One committed offset of a group."""

    topic: str
    partition: int
    offset: int


class _FindResponse1(Response):  # type: ignore[misc]  # aiokafka has no types
    API_KEY, API_VERSION = 10, 1
    SCHEMA = Schema(
        ("throttle_time_ms", Int32),
        ("error_code", Int16),
        ("error_message", _TEXT),
        ("node_id", Int32),
        ("host", _TEXT),
        ("port", Int32),
    )


class _FindResponse4(Response):  # type: ignore[misc]  # aiokafka has no types
    API_KEY, API_VERSION = 10, 4
    SCHEMA = Schema(
        ("throttle_time_ms", Int32),
        (
            "coordinators",
            CompactArray(
                ("key", _SHORT),
                ("node_id", Int32),
                ("host", _SHORT),
                ("port", Int32),
                ("error_code", Int16),
                ("error_message", _SHORT),
                _TAGS,
            ),
        ),
        _TAGS,
    )


class _Find1(RequestStruct):  # type: ignore[misc]  # aiokafka has no types
    API_KEY, API_VERSION, RESPONSE_TYPE = 10, 1, _FindResponse1
    SCHEMA = Schema(("key", _TEXT), ("key_type", Int8))


class _Find4(RequestStruct):  # type: ignore[misc]  # aiokafka has no types
    API_KEY, API_VERSION, RESPONSE_TYPE, FLEXIBLE_VERSION = 10, 4, _FindResponse4, True
    SCHEMA = Schema(("key_type", Int8), ("keys", CompactArray(_SHORT)), _TAGS)


class FindCoordinators(Request[_Find1 | _Find4]):  # type: ignore[misc]
    """Request the coordinators of groups, of any broker."""

    API_KEY = 10

    def __init__(self, groups: Sequence[str]) -> None:
        self._groups = groups

    def build(self, request_struct_class: Any) -> Any:
        """Return the request; raise `IncompatibleBrokerVersion` if one group at a time is due."""
        if request_struct_class is _Find4:
            return _Find4(_GROUP, list(self._groups), {})
        return _Find1(_only(self._groups), _GROUP)


def coordinators(groups: Sequence[str], response: Any) -> Iterator[Coordinator]:
    """Yield the coordinators in the response to a request for these groups."""
    if not hasattr(response, "coordinators"):
        yield Coordinator(_only(groups), response.node_id, response.error_code)
        return
    for group, broker, _host, _port, code, *_ in response.coordinators:
        yield Coordinator(group, broker, code)


_ROW = (
    ("partition", Int32),
    ("offset", Int64),
    ("leader_epoch", Int32),
    ("metadata", _SHORT),
    ("error_code", Int16),
    _TAGS,
)


class _FetchResponse3(Response):  # type: ignore[misc]  # aiokafka has no types
    API_KEY, API_VERSION = 9, 3
    SCHEMA = Schema(
        ("throttle_time_ms", Int32),
        (
            "topics",
            Array(
                ("topic", _TEXT),
                (
                    "partitions",
                    Array(
                        ("partition", Int32),
                        ("offset", Int64),
                        ("metadata", _TEXT),
                        ("error_code", Int16),
                    ),
                ),
            ),
        ),
        ("error_code", Int16),
    )


class _FetchResponse8(Response):  # type: ignore[misc]  # aiokafka has no types
    API_KEY, API_VERSION = 9, 8
    SCHEMA = Schema(
        ("throttle_time_ms", Int32),
        (
            "groups",
            CompactArray(
                ("group", _SHORT),
                ("topics", CompactArray(("topic", _SHORT), ("rows", CompactArray(*_ROW)), _TAGS)),
                ("error_code", Int16),
                _TAGS,
            ),
        ),
        _TAGS,
    )


class _Fetch3(RequestStruct):  # type: ignore[misc]  # aiokafka has no types
    API_KEY, API_VERSION, RESPONSE_TYPE = 9, 3, _FetchResponse3
    SCHEMA = Schema(
        ("group", _TEXT), ("topics", Array(("topic", _TEXT), ("partitions", Array(Int32))))
    )


class _Fetch8(RequestStruct):  # type: ignore[misc]  # aiokafka has no types
    API_KEY, API_VERSION, RESPONSE_TYPE, FLEXIBLE_VERSION = 9, 8, _FetchResponse8, True
    SCHEMA = Schema(
        (
            "groups",
            CompactArray(
                ("group", _SHORT),
                ("topics", CompactArray(("topic", _SHORT), ("rows", CompactArray(Int32)), _TAGS)),
                _TAGS,
            ),
        ),
        ("require_stable", Boolean),
        _TAGS,
    )


class FetchGroupOffsets(Request[_Fetch3 | _Fetch8]):  # type: ignore[misc]
    """Request all committed offsets of groups, of their coordinator."""

    API_KEY = 9

    def __init__(self, groups: Sequence[str]) -> None:
        self._groups = groups

    def build(self, request_struct_class: Any) -> Any:
        """Return the request; raise `IncompatibleBrokerVersion` if one group at a time is due."""
        if request_struct_class is _Fetch8:
            return _Fetch8([(group, None, {}) for group in self._groups], False, {})  # noqa: FBT003
        return _Fetch3(_only(self._groups), None)


def group_offsets(
    groups: Sequence[str], response: Any
) -> Iterator[tuple[str, int, list[GroupOffset]]]:
    """Yield each group with its error code and its offsets, from the response for these groups.

    Partitions without a committed offset are left out.
    """
    if not hasattr(response, "groups"):
        yield _only(groups), response.error_code, list(_offsets(response.topics))
        return
    for group, topics, code, _ in response.groups:
        yield group, code, list(_offsets(topics))


def _offsets(topics: Any) -> Iterator[GroupOffset]:
    for topic, rows, *_tags in topics or ():
        for partition, offset, *_rest in rows:
            if offset >= 0:
                yield GroupOffset(topic, partition, offset)


def _only(groups: Sequence[str]) -> str:
    if len(groups) != 1:
        raise IncompatibleBrokerVersion("this broker answers for one group at a time")
    return groups[0]
