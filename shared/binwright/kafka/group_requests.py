"""FindCoordinator and OffsetFetch for many groups at once: versions that aiokafka does not have.

Brokers before Kafka 3.0 answer for one group at a time.
"""

from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Any, ClassVar, NamedTuple

from aiokafka.errors import IncompatibleBrokerVersion
from aiokafka.protocol.api import Request, Response
from aiokafka.protocol.types import (
    Array,
    Boolean,
    Bytes,
    CompactArray,
    CompactString,
    Int8,
    Int16,
    Int32,
    Int64,
    String,
    TaggedFields,
)

from binwright.kafka.frames import Field, Uuid, VersionedRequest, version

_GROUP = 0  # the type of key that names a consumer group
_TEXT, _SHORT = String("utf-8"), CompactString("utf-8")
_TAGS = ("tags", TaggedFields)


class Coordinator(NamedTuple):
    """The broker that coordinates a group, or why it is not known."""

    group: str
    broker: int
    error_code: int


class OffsetEntry(NamedTuple):
    """One committed offset of a group."""

    topic: str
    partition: int
    offset: int


_FIND_1 = version(
    10,
    1,
    [("key", _TEXT), ("key_type", Int8)],
    [
        ("throttle_time_ms", Int32),
        ("error_code", Int16),
        ("error_message", _TEXT),
        ("node_id", Int32),
        ("host", _TEXT),
        ("port", Int32),
    ],
)
_COORDINATOR = (
    ("key", _SHORT),
    ("node_id", Int32),
    ("host", _SHORT),
    ("port", Int32),
    ("error_code", Int16),
    ("error_message", _SHORT),
    _TAGS,
)
_FIND_4 = version(
    10,
    4,
    [("key_type", Int8), ("keys", CompactArray(_SHORT)), _TAGS],
    [("throttle_time_ms", Int32), ("coordinators", CompactArray(*_COORDINATOR)), _TAGS],
    is_flexible=True,
)


class FindCoordinators(VersionedRequest):
    """Request the coordinators of groups, of any broker."""

    VERSIONS = (_FIND_1, _FIND_4)

    def __init__(self, groups: Sequence[str]) -> None:
        self._groups = groups

    def build(self, request_struct_class: Any) -> Any:
        """Return the request; raise `IncompatibleBrokerVersion` if one group at a time is due."""
        if request_struct_class is _FIND_4:
            return _FIND_4(_GROUP, list(self._groups), {})
        return _FIND_1(_only(self._groups), _GROUP)


def coordinators(groups: Sequence[str], response: Any) -> Iterator[Coordinator]:
    """Yield the coordinators in the response to a request for these groups."""
    if not hasattr(response, "coordinators"):
        yield Coordinator(_only(groups), response.node_id, response.error_code)
        return
    for group, broker, _host, _port, code, *_ in response.coordinators or ():
        yield Coordinator(group, broker, code)


async def find_coordinator(
    group: str, ask: Callable[[Request[Any]], Awaitable[Response]]
) -> Coordinator:
    """Return the coordinator of one group, or the error of the broker that `ask` sends to.

    Raises what `ask` raises.
    """
    (coordinator,) = coordinators([group], await ask(FindCoordinators([group])))
    return coordinator


_ROW_3 = (
    ("partition", Int32),
    ("offset", Int64),
    ("metadata", _TEXT),
    ("error_code", Int16),
)
_ROW_8 = (
    ("partition", Int32),
    ("offset", Int64),
    ("leader_epoch", Int32),
    ("metadata", _SHORT),
    ("error_code", Int16),
    _TAGS,
)
_FETCH_3 = version(
    9,
    3,
    [("group", _TEXT), ("topics", Array(("topic", _TEXT), ("partitions", Array(Int32))))],
    [
        ("throttle_time_ms", Int32),
        ("topics", Array(("topic", _TEXT), ("partitions", Array(*_ROW_3)))),
        ("error_code", Int16),
    ],
)


def _by_topic(rows: CompactArray) -> Field:
    return "topics", CompactArray(("topic", _SHORT), ("rows", rows), _TAGS)


_FETCH_8 = version(
    9,
    8,
    [
        ("groups", CompactArray(("group", _SHORT), _by_topic(CompactArray(Int32)), _TAGS)),
        ("require_stable", Boolean),
        _TAGS,
    ],
    [
        ("throttle_time_ms", Int32),
        (
            "groups",
            CompactArray(
                ("group", _SHORT), _by_topic(CompactArray(*_ROW_8)), ("error_code", Int16), _TAGS
            ),
        ),
        _TAGS,
    ],
    is_flexible=True,
)


class ListGroups(VersionedRequest):
    """Request the groups that a broker coordinates, each with its type of protocol.

    The type is "consumer" of consumer groups, of either protocol, and empty where only offsets were
    committed.
    """

    VERSIONS = (
        version(
            16,
            2,
            [],
            [
                ("throttle_time_ms", Int32),
                ("error_code", Int16),
                ("groups", Array(("group", _TEXT), ("protocol_type", _TEXT))),
            ],
        ),
    )

    def build(self, request_struct_class: Any) -> Any:
        """Return the request."""
        return request_struct_class()


def _describe(number: int, *name: Field) -> type[Any]:
    """Return a version of DescribeGroups whose members have these names."""
    member = (
        *name,
        ("client_id", _TEXT),
        ("client_host", _TEXT),
        ("metadata", Bytes),
        ("assignment", Bytes),
    )
    group = (
        ("error_code", Int16),
        ("group", _TEXT),
        ("state", _TEXT),
        ("protocol_type", _TEXT),
        ("protocol", _TEXT),
        ("members", Array(*member)),
        ("operations", Int32),
    )
    return version(
        15,
        number,
        [("groups", Array(_TEXT)), ("operations", Boolean)],
        [("throttle_time_ms", Int32), ("groups", Array(*group))],
    )


class DescribeGroups(VersionedRequest):
    """Request groups with their members, of their coordinator.

    Version 4, of Kafka 2.4, has the `group.instance.id` of each member behind its id.
    """

    VERSIONS: ClassVar[Sequence[type[Any]]] = (
        _describe(3, ("member_id", _TEXT)),
        _describe(4, ("member_id", _TEXT), ("group_instance_id", _TEXT)),
    )

    def __init__(self, groups: Sequence[str], *, operations: bool = False) -> None:
        """Ask for these groups, and if so for the operations that are permitted on each."""
        self._groups, self._operations = groups, operations

    def build(self, request_struct_class: Any) -> Any:
        """Return the request."""
        return request_struct_class(list(self._groups), self._operations)


_ASSIGNED = (
    "assigned",
    CompactArray(
        ("topic_id", Uuid()),
        ("topic", _SHORT),
        ("partitions", CompactArray(Int32)),
        _TAGS,
    ),
)
_CONSUMER = (
    ("member_id", _SHORT),
    ("group_instance_id", _SHORT),
    ("rack", _SHORT),
    ("member_epoch", Int32),
    ("client_id", _SHORT),
    ("client_host", _SHORT),
    ("topics", CompactArray(_SHORT)),
    ("topic_pattern", _SHORT),
    _ASSIGNED,  # what it may read now
    ("assigned_tags", TaggedFields),
    ("target", _ASSIGNED[1]),  # what it is to read once others have given it up
    ("target_tags", TaggedFields),
    _TAGS,
)
_CONSUMER_GROUP = (
    ("error_code", Int16),
    ("error_message", _SHORT),
    ("group", _SHORT),
    ("state", _SHORT),
    ("group_epoch", Int32),
    ("assignment_epoch", Int32),
    ("assignor", _SHORT),
    ("members", CompactArray(*_CONSUMER)),
    ("operations", Int32),
    _TAGS,
)


class DescribeConsumerGroups(VersionedRequest):
    """Request groups of the protocol "consumer" (KIP-848) with their members."""

    VERSIONS = (
        version(
            69,
            0,
            [("groups", CompactArray(_SHORT)), ("operations", Boolean), _TAGS],
            [("throttle_time_ms", Int32), ("groups", CompactArray(*_CONSUMER_GROUP)), _TAGS],
            is_flexible=True,
        ),
    )

    def __init__(self, groups: Sequence[str]) -> None:
        self._groups = groups

    def build(self, request_struct_class: Any) -> Any:
        """Return the request."""
        return request_struct_class(list(self._groups), False, {})  # noqa: FBT003


class ConsumerGroupHeartbeat(VersionedRequest):
    """Join a group of the protocol "consumer" (KIP-848) without a topic, or leave it.

    Of the response only what comes before the assignment is read.
    """

    JOIN, LEAVE = 0, -1

    VERSIONS = (
        version(
            68,
            1,
            [
                ("group", _SHORT),
                ("member_id", _SHORT),
                ("member_epoch", Int32),
                ("group_instance_id", _SHORT),
                ("rack", _SHORT),
                ("rebalance_timeout_ms", Int32),
                ("topics", CompactArray(_SHORT)),
                ("topic_pattern", _SHORT),
                ("assignor", _SHORT),
                ("owned", CompactArray(Int32)),  # empty, whatever the type
                _TAGS,
            ],
            [("throttle_time_ms", Int32), ("error_code", Int16), ("error_message", _SHORT)],
            is_flexible=True,
        ),
    )

    def __init__(self, group: str, member: str, epoch: int, rebalance_timeout_ms: int) -> None:
        """Join or leave, by the `epoch`, as the member of this id."""
        self._member = group, member, epoch
        self._rebalance_timeout_ms = rebalance_timeout_ms

    def build(self, request_struct_class: Any) -> Any:
        """Return the request."""
        nothing: list[Any] = []
        timeout_ms = self._rebalance_timeout_ms
        return request_struct_class(
            *self._member, None, None, timeout_ms, nothing, None, None, nothing, {}
        )


class FetchGroupOffsets(VersionedRequest):
    """Request all committed offsets of groups, of their coordinator."""

    VERSIONS = (_FETCH_3, _FETCH_8)

    def __init__(self, groups: Sequence[str]) -> None:
        self._groups = groups

    def build(self, request_struct_class: Any) -> Any:
        """Return the request; raise `IncompatibleBrokerVersion` if one group at a time is due."""
        if request_struct_class is _FETCH_8:
            return _FETCH_8([(group, None, {}) for group in self._groups], False, {})  # noqa: FBT003
        return _FETCH_3(_only(self._groups), None)


def group_offsets(
    groups: Sequence[str], response: Any
) -> Iterator[tuple[str, int, list[OffsetEntry]]]:
    """Yield each group with its error code and its offsets, from the response for these groups.

    Partitions without a committed offset are left out.
    """
    if not hasattr(response, "groups"):
        yield _only(groups), response.error_code, list(_offsets(response.topics))
        return
    for group, topics, code, _ in response.groups or ():
        yield group, code, list(_offsets(topics))


def _offsets(topics: Any) -> Iterator[OffsetEntry]:
    for topic, rows, *_tags in topics or ():
        for partition, offset, *_rest in rows or ():
            if offset >= 0:
                yield OffsetEntry(topic, partition, offset)


def _only(groups: Sequence[str]) -> str:
    if len(groups) != 1:
        raise IncompatibleBrokerVersion("this broker answers for one group at a time")
    return groups[0]
