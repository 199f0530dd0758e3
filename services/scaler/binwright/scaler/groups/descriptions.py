"""The members of a consumer group, and what each of them reads."""

from dataclasses import dataclass, field
from typing import Any

from aiokafka.coordinator.protocol import (
    ConsumerProtocolMemberAssignment,
    ConsumerProtocolMemberMetadata,
)
from aiokafka.errors import NoError, for_code
from aiokafka.protocol.types import Array, Boolean, Bytes, Int16, Int32, String

from binwright.kafka.client import ClusterClient
from binwright.kafka.frames import VersionedRequest, version
from binwright.kafka.group_requests import find_coordinator
from binwright.protocol.errors import BrokerUnavailable
from binwright.protocol.model import TopicPartition
from binwright.scaler.decide.assignor.members import Member, Members

_TEXT = String("utf-8")


_MEMBER = (
    ("member_id", _TEXT),
    ("group_instance_id", _TEXT),
    ("client_id", _TEXT),
    ("client_host", _TEXT),
    ("member_metadata", Bytes),
    ("member_assignment", Bytes),
)
_DESCRIBED = (
    ("error_code", Int16),
    ("group", _TEXT),
    ("state", _TEXT),
    ("protocol_type", _TEXT),
    ("protocol", _TEXT),
    ("members", Array(*_MEMBER)),
    ("authorized_operations", Int32),
)


class DescribeGroup(VersionedRequest):
    """Request the members of a group with their `group.instance.id`, which aiokafka's lacks."""

    VERSIONS = (
        version(
            15,
            4,
            [("groups", Array(_TEXT)), ("include_authorized_operations", Boolean)],
            [("throttle_time_ms", Int32), ("groups", Array(*_DESCRIBED))],
        ),
    )

    def __init__(self, group: str) -> None:
        self._group = group

    def build(self, request_struct_class: Any) -> Any:
        """Return the request."""
        return request_struct_class([self._group], False)  # noqa: FBT003 - as on the wire


@dataclass(frozen=True, slots=True)
class GroupDescription:
    """A consumer group of the classic protocol."""

    state: str  # by Kafka's names: "Stable", "PreparingRebalance", "Empty", ...
    protocol: str  # the assignor's name; empty while there is none
    members: Members = field(default_factory=dict)


class ConsumerGroups:
    """Looks groups up; each call asks for the group's coordinator anew."""

    def __init__(self, cluster: ClusterClient) -> None:
        """Use this client."""
        self._cluster = cluster

    async def describe(self, group: str) -> GroupDescription:
        """Return the members of a group; a group that does not exist is "Dead", without members.

        Raises:
            BrokerUnavailable: No broker answers, or it refuses.
        """
        found = await find_coordinator(group, self._cluster.ask_any)
        _check(found.error_code, f"find the coordinator of group {group}")
        response = await self._cluster.send_request(found.broker, DescribeGroup(group))
        ((code, _, state, _, protocol, members, _),) = response.groups
        _check(code, f"describe group {group}")
        known = {
            name: _member(instance, metadata, assignment)
            for name, instance, _client, _host, metadata, assignment in members
        }
        return GroupDescription(state, protocol, known)


def _check(code: int, doing: str) -> None:
    error = for_code(code)
    if error is not NoError:
        raise BrokerUnavailable(f"{doing}: {error.__name__}")


def _member(instance: str | None, metadata: bytes, assignment: bytes) -> Member:
    """Read what a member subscribes to and reads; both are empty during a rebalance."""
    topics = ConsumerProtocolMemberMetadata.decode(metadata).subscription if metadata else ()
    owned = ConsumerProtocolMemberAssignment.decode(assignment).partitions() if assignment else ()
    return Member(
        topics=frozenset(topics),
        owned=frozenset(TopicPartition(*each) for each in owned),
        generation=0,
        instance=instance,
    )
