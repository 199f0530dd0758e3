"""What the user of a connection may do: requests that read, and how their replies are understood.

Brokers name the operations since Kafka 2.3, with an authorizer or without.
"""

import asyncio
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from aiokafka.errors import (
    GroupAuthorizationFailedError,
    LeaderNotAvailableError,
    NoError,
    TopicAuthorizationFailedError,
    UnknownTopicOrPartitionError,
    for_code,
)
from aiokafka.protocol.types import Array, Boolean, Int16, Int32, String

from binwright.kafka.client import NO_LEADER, ClusterClient
from binwright.kafka.frames import METADATA, VersionedRequest, version
from binwright.kafka.group_requests import DescribeGroups, find_coordinator
from binwright.protocol.errors import BrokerUnavailable

OPERATIONS = {
    3: "Read",
    4: "Write",
    5: "Create",
    6: "Delete",
    7: "Alter",
    8: "Describe",
    10: "DescribeConfigs",
    11: "AlterConfigs",
}
"""Kafka's numbers of the operations that some service needs."""

_TEXT = String("utf-8")
_UNKNOWN = -(1 << 31)  # the broker names no operations
RETRY_S = 0.2

Operations = frozenset[str] | None
"""What is permitted; None: the broker does not say."""


def operations(bits: int) -> Operations:
    """Return what a bit field of operations means."""
    if bits == _UNKNOWN:
        return None
    return frozenset(name for number, name in OPERATIONS.items() if bits & (1 << number))


_PARTITION = (
    ("error_code", Int16),
    ("partition", Int32),
    ("leader", Int32),
    ("leader_epoch", Int32),
    ("replicas", Array(Int32)),
    ("isr", Array(Int32)),
    ("offline", Array(Int32)),
)
_TOPIC = (
    ("error_code", Int16),
    ("topic", _TEXT),
    ("is_internal", Boolean),
    ("partitions", Array(*_PARTITION)),
    ("operations", Int32),
)


class PermittedMetadata(VersionedRequest):
    """Request topics by name, with what is permitted on each and on the cluster; creates none."""

    VERSIONS = (
        version(
            METADATA,
            8,
            [
                ("topics", Array(_TEXT)),
                ("create", Boolean),
                ("cluster_operations", Boolean),
                ("topic_operations", Boolean),
            ],
            [
                ("throttle_time_ms", Int32),
                (
                    "brokers",
                    Array(("node_id", Int32), ("host", _TEXT), ("port", Int32), ("rack", _TEXT)),
                ),
                ("cluster_id", _TEXT),
                ("controller_id", Int32),
                ("topics", Array(*_TOPIC)),
                ("cluster_operations", Int32),
            ],
        ),
    )

    def __init__(self, topics: Sequence[str]) -> None:
        self._topics = topics

    def build(self, request_struct_class: Any) -> Any:
        """Return the request."""
        return request_struct_class(list(self._topics), False, True, True)  # noqa: FBT003


@dataclass(frozen=True, slots=True)
class PermittedTopic:
    """A topic as this user may see it."""

    leaders: Mapping[int, int]  # partition -> broker, or `NO_LEADER`; empty: there is none
    replicas: int  # the fewest of any partition; 0 without a topic
    permitted: Operations
    is_hidden: bool = False  # this user may not know whether it exists
    error: str = ""  # why else Kafka does not describe it

    @property
    def leaderless(self) -> tuple[int, ...]:
        """Return the partitions without a leader."""
        return tuple(sorted(p for p, leader in self.leaders.items() if leader == NO_LEADER))


@dataclass(frozen=True, slots=True)
class PermittedCluster:
    """The cluster as this user may see it."""

    brokers: Mapping[int, tuple[str, int]]  # the addresses that they advertise
    topics: Mapping[str, PermittedTopic]  # each that was asked for
    permitted: Operations


async def permitted_cluster(cluster: ClusterClient, topics: Collection[str]) -> PermittedCluster:
    """Return the brokers, these topics, and what is permitted.

    Raises:
        BrokerUnavailable: No broker answers, or all are older than Kafka 2.3.
    """
    reply: Any = await cluster.ask_any(PermittedMetadata(sorted(topics)))
    return PermittedCluster(
        {number: (host, port) for number, host, port, _ in reply.brokers},
        dict(_topics(reply)),
        operations(reply.cluster_operations),
    )


def _topics(reply: Any) -> Iterator[tuple[str, PermittedTopic]]:
    for code, topic, _, partitions, bits in reply.topics:
        error = for_code(code)
        if error in (NoError, LeaderNotAvailableError):
            leaders = {number: leader for _, number, leader, *_ in partitions}
            replicas = min((len(row[4]) for row in partitions), default=0)
            yield topic, PermittedTopic(leaders, replicas, operations(bits))
        else:
            hidden = error is TopicAuthorizationFailedError
            known = hidden or error is UnknownTopicOrPartitionError
            yield topic, PermittedTopic({}, 0, None, hidden, "" if known else error.__name__)


async def permitted_on_group(cluster: ClusterClient, group: str) -> Operations:
    """Return what is permitted on a group, whether or not it exists; wait for its coordinator.

    Raises:
        BrokerUnavailable: Kafka does not answer, or refuses for another reason.
    """
    while True:
        coordinator = await find_coordinator(group, cluster.ask_any)
        code, permitted = coordinator.error_code, None
        if for_code(code) is NoError:
            reply: Any = await cluster.send_request(
                coordinator.broker, DescribeGroups([group], operations=True)
            )
            ((code, *_, bits),) = reply.groups
            permitted = operations(bits)
        error = for_code(code)
        if error is NoError:
            return permitted
        if error is GroupAuthorizationFailedError:
            return frozenset()
        if not error.retriable:
            raise BrokerUnavailable(f"group {group}: {error.__name__}: {error.description}")
        await asyncio.sleep(RETRY_S)
