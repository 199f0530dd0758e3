"""Makes a consumer group rebalance from outside, by the group's own protocol.

No client offers that: an assignor cannot ask for a rebalance, and `enforceRebalance` is a call of
the application. But a group rebalances whenever a member joins and whenever one leaves. So a guest
joins that subscribes to nothing, and leaves as soon as the group is stable. A cooperative group
needs two rebalances for a move in any case (give up, take over), and the guest makes just these
two; an eager one is stopped twice.

In a group of the protocol "consumer" (KIP-848) the broker assigns anew whenever a member leaves:
there a guest that joins and leaves is two requests, and nobody waits for it.
"""

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any
from uuid import uuid4, uuid5

from aiokafka import AIOKafkaConsumer
from aiokafka.cluster import ClusterMetadata
from aiokafka.coordinator.assignors.abstract import AbstractPartitionAssignor
from aiokafka.coordinator.protocol import (
    ConsumerProtocolMemberAssignment,
    ConsumerProtocolMemberMetadata,
)
from aiokafka.errors import InconsistentGroupProtocolError, NoError, for_code

from binwright.kafka.aiokafka_patches import keep_to_own_topics
from binwright.kafka.client import ClusterClient, stop_client, translate_errors
from binwright.kafka.group_requests import ConsumerGroupHeartbeat, find_coordinator
from binwright.protocol.errors import BrokerUnavailable

DEADLINE_S = 60.0
"""A member that works on what it polled for longer holds up every rebalance of its group."""
SESSION_S = 10.0
"""Session timeout of the guest in a classic group: a crashed guest leaves after this time."""
GIVE_UP_MS = 10_000
"""Within which the guest in a KIP-848 group would give up partitions, of which it never has any.

One that has crashed leaves after the broker's `group.consumer.session.timeout.ms`, 45 s by default.
"""
_PROCESS = uuid4()


class GuestElected(Exception):
    """The guest is to assign partitions, which it must not."""


class _Guest(AbstractPartitionAssignor):  # type: ignore[misc]  # aiokafka has no types
    """Subscribes to nothing. The class is the state, as for all of aiokafka's assignors."""

    name = ""
    elected: asyncio.Event

    @classmethod
    def metadata(cls, topics: Iterable[str]) -> ConsumerProtocolMemberMetadata:
        del topics
        return ConsumerProtocolMemberMetadata(0, [], b"")

    @classmethod
    def assign(
        cls, cluster: ClusterMetadata, members: Mapping[str, ConsumerProtocolMemberMetadata]
    ) -> dict[str, ConsumerProtocolMemberAssignment]:
        del cluster, members
        cls.elected.set()
        raise GuestElected

    @classmethod
    def on_assignment(cls, assignment: ConsumerProtocolMemberAssignment) -> None:
        del assignment


async def request_rebalance(
    options: Mapping[str, Any], group: str, protocol: str, topic: str
) -> None:
    """Have a stable group rebalance, and return when it has.

    Args:
        options: Connection settings for aiokafka.
        group: That has members.
        protocol: The name of its assignor, which every member must offer.
        topic: One of its topics; the guest reads nothing of it.

    Raises:
        BrokerUnavailable: Kafka does not answer, the group uses another assignor by now, or it did
            not become stable within `DEADLINE_S`.
    """
    elected = asyncio.Event()
    guest = AIOKafkaConsumer(
        **options,
        group_id=group,
        enable_auto_commit=False,
        session_timeout_ms=int(SESSION_S * 1000),
        heartbeat_interval_ms=int(SESSION_S * 1000 / 10),
        rebalance_timeout_ms=int(DEADLINE_S * 1000),
        partition_assignment_strategy=[
            type("G", (_Guest,), {"name": protocol, "elected": elected})
        ],
    )
    keep_to_own_topics(guest)  # or it would create the topic, were it deleted meanwhile
    guest.subscribe([topic])
    with translate_errors(f"ask group {group} to rebalance"):
        joining = asyncio.ensure_future(guest.start())
        leading = asyncio.ensure_future(elected.wait())
        try:
            async with asyncio.timeout(DEADLINE_S):
                await asyncio.wait({joining, leading}, return_when=asyncio.FIRST_COMPLETED)
            if elected.is_set():
                raise BrokerUnavailable(
                    f"ask group {group} to rebalance: all its members have left"
                )
            await joining
        except InconsistentGroupProtocolError as exc:
            reason = f"a member does not offer the assignor {protocol}"
            raise BrokerUnavailable(f"ask group {group} to rebalance: {reason}") from exc
        finally:
            for task in (joining, leading):
                task.cancel()
            await asyncio.gather(joining, leading, return_exceptions=True)
            await stop_client(guest)


async def request_assignment(cluster: ClusterClient, group: str) -> None:
    """Have the broker assign the partitions of a KIP-848 group anew; members learn of it later.

    Raises:
        BrokerUnavailable: Kafka does not answer, or refuses.
    """
    doing = f"ask for an assignment of group {group}"
    coordinator = await find_coordinator(group, cluster.ask_any)
    _check(coordinator.error_code, doing)
    # The same each time: one that could not leave is met again, and there are never two.
    guest = str(uuid5(_PROCESS, group))

    async def send(epoch: int) -> int:
        request = ConsumerGroupHeartbeat(group, guest, epoch, GIVE_UP_MS)
        code: int = (await cluster.send_request(coordinator.broker, request)).error_code
        return code

    try:
        _check(await send(ConsumerGroupHeartbeat.JOIN), doing)
    finally:  # it may have joined, though no reply tells so
        left = await asyncio.shield(send(ConsumerGroupHeartbeat.LEAVE))
    _check(left, doing)


def _check(code: int, doing: str) -> None:
    if (error := for_code(code)) is not NoError:
        raise BrokerUnavailable(f"{doing}: {error.__name__}")
