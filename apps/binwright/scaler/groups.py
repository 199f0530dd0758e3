"""Looks consumer groups up in Kafka: what they have committed, who their members are.

Committed offsets of many groups take few requests: one for each hundred groups of a broker.
"""

import asyncio
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from functools import partial

from aiokafka.coordinator.protocol import (
    ConsumerProtocolMemberAssignment,
    ConsumerProtocolMemberMetadata,
)
from aiokafka.errors import (
    CoordinatorNotAvailableError,
    GroupIdNotFound,
    GroupLoadInProgressError,
    NoError,
    NotCoordinatorForGroupError,
    for_code,
)

from binwright.kafka.client import ClusterClient, UnsupportedVersion
from binwright.kafka.group_requests import (
    DescribeConsumerGroups,
    DescribeGroups,
    FetchGroupOffsets,
    FindCoordinators,
    coordinators,
    find_coordinator,
    group_offsets,
)
from binwright.kafka.leaders import PendingReplies
from binwright.protocol.errors import BrokerUnavailable
from binwright.protocol.model import TopicPartition
from binwright.scaler.decide.members import GroupDescription, GroupMember, with_matches
from binwright.scaler.ports import CommittedOffsets

GROUPS_PER_REQUEST = 100
DEAD = "Dead"
"""What brokers call the state of a group that does not exist, or is not of the classic type."""
MOVED = (NotCoordinatorForGroupError, CoordinatorNotAvailableError, GroupLoadInProgressError)


class DescribeMembers(DescribeGroups):
    """Request the members of groups with their `group.instance.id`, which older versions lack."""

    VERSIONS = DescribeGroups.VERSIONS[-1:]


class ConsumerGroups:
    """Looks groups up, again and again; fits `ports.GroupLookup`.

    The groups of a broker that is late (see `PendingReplies`) have a fault.
    """

    def __init__(self, cluster: ClusterClient, *, timeout_s: float = 2.0) -> None:
        """Use this client; wait for committed offsets up to `timeout_s` seconds."""
        self._cluster, self._timeout_s = cluster, timeout_s
        self._coordinators: dict[str, int] = {}
        self._replies = PendingReplies[CommittedOffsets](timeout_s)
        self._one_by_one = False  # brokers before Kafka 3.0

    async def close(self) -> None:
        """End what is pending."""
        await self._replies.close()

    async def committed(self, groups: Collection[str]) -> CommittedOffsets:
        """Return what these groups have committed; no error, but a fault of each group."""
        committed = CommittedOffsets()
        await self._find_coordinators(groups, committed)
        by_broker: defaultdict[int, list[str]] = defaultdict(list)
        for group in sorted(groups):
            if group in self._coordinators:
                by_broker[self._coordinators[group]].append(group)
        await self._replies.round(
            {broker: partial(self._fetch, broker, named) for broker, named in by_broker.items()}
        )
        replies = self._replies.take()
        for broker, named in by_broker.items():
            late = f"broker {broker} has not replied within {self._timeout_s:g} s"
            reply = replies.get(broker, CommittedOffsets())
            for group in named:
                if group in reply.offsets:
                    committed.offsets[group] = reply.offsets[group]
                else:
                    committed.faults[group] = reply.faults.get(group, late)
        return committed

    async def describe(self, group: str) -> GroupDescription:
        """Return the members of a group; a group that does not exist is "Dead", without members.

        Raises:
            BrokerUnavailable: No broker answers, or it refuses.
        """
        coordinator = await find_coordinator(group, self._cluster.ask_any)
        _check(coordinator.error_code, f"find the coordinator of group {group}")
        response = await self._cluster.send_request(coordinator.broker, DescribeMembers([group]))
        ((code, _, state, _, protocol, members, _),) = response.groups
        _check(code, f"describe group {group}")
        if state == DEAD:  # or of the other type
            return await self._describe_consumers(group, coordinator.broker)
        described = {
            name: _member(instance, client, host, metadata, assignment)
            for name, instance, client, host, metadata, assignment in members
        }
        return GroupDescription(state, protocol, described)

    async def _describe_consumers(self, group: str, broker: int) -> GroupDescription:
        """Return the members of a group of type "consumer"; brokers before Kafka 4.0 have none."""
        try:
            response = await self._cluster.send_request(broker, DescribeConsumerGroups([group]))
        except UnsupportedVersion:
            return GroupDescription(DEAD, "")
        ((code, _, _, state, _, _, assignor, members, *_),) = response.groups
        if for_code(code) is GroupIdNotFound:
            return GroupDescription(DEAD, "")
        _check(code, f"describe group {group}")
        described = {
            name: GroupMember(
                topics=frozenset(topics or ()),
                owned=frozenset(
                    TopicPartition(topic, number)
                    for _, topic, numbers, _ in assigned or ()
                    for number in numbers
                ),
                generation=0,
                instance=instance,
                client=client,
                host=host.lstrip("/"),
            )
            for name, instance, _, _, client, host, topics, _, assigned, *_ in members or ()
        }
        patterns = {name: pattern for name, *_, pattern, _, _, _, _, _ in members or () if pattern}
        return GroupDescription(state, assignor, with_matches(described, patterns), "consumer")

    async def _find_coordinators(
        self, groups: Collection[str], committed: CommittedOffsets
    ) -> None:
        unknown = sorted(group for group in groups if group not in self._coordinators)
        if not unknown:
            return
        try:
            async with asyncio.timeout(self._timeout_s):
                await self._cluster.brokers()  # the coordinator may be a broker that is new
                for batch in self._batches(unknown):
                    await self._find(batch, committed)
        except (BrokerUnavailable, TimeoutError) as exc:
            reason = str(exc) or f"no reply within {self._timeout_s:g} s"
            for group in unknown:
                if group not in self._coordinators:
                    committed.faults.setdefault(group, f"its coordinator is not known: {reason}")

    async def _find(self, batch: Sequence[str], committed: CommittedOffsets) -> None:
        try:
            response = await self._cluster.ask_any(FindCoordinators(batch))
        except UnsupportedVersion:
            if len(batch) == 1:
                raise
            self._one_by_one = True
            for group in batch:
                await self._find([group], committed)
            return
        for group, broker, code in coordinators(batch, response):
            error = for_code(code)
            if error is NoError:
                self._coordinators[group] = broker
            else:
                committed.faults[group] = f"its coordinator is not known: {error.__name__}"

    async def _fetch(self, broker: int, groups: Sequence[str]) -> CommittedOffsets:
        """Return the offsets of groups of one coordinator; every group has offsets or a fault."""
        committed = CommittedOffsets()
        try:
            for batch in self._batches(groups):
                await self._fetch_batch(broker, batch, committed)
        except BrokerUnavailable as exc:
            for group in groups:
                if group not in committed.offsets:
                    self._coordinators.pop(group, None)  # the broker may be gone
                    committed.faults.setdefault(group, str(exc))
        return committed

    async def _fetch_batch(
        self, broker: int, batch: Sequence[str], committed: CommittedOffsets
    ) -> None:
        try:
            response = await self._cluster.send_request(broker, FetchGroupOffsets(batch))
        except UnsupportedVersion:
            if len(batch) == 1:
                raise
            self._one_by_one = True
            for group in batch:
                await self._fetch_batch(broker, [group], committed)
            return
        for group, code, offsets in group_offsets(batch, response):
            error = for_code(code)
            if error is NoError:
                committed.offsets[group] = {
                    TopicPartition(topic, number): at for topic, number, at in offsets
                }
                continue
            if error in MOVED:
                self._coordinators.pop(group, None)
            committed.faults[group] = f"Kafka does not return its offsets: {error.__name__}"

    def _batches(self, groups: Sequence[str]) -> Iterator[Sequence[str]]:
        size = 1 if self._one_by_one else GROUPS_PER_REQUEST
        return (groups[first : first + size] for first in range(0, len(groups), size))


def _check(code: int, doing: str) -> None:
    error = for_code(code)
    if error is not NoError:
        raise BrokerUnavailable(f"{doing}: {error.__name__}")


def _member(
    instance: str | None, client: str, host: str, metadata: bytes, assignment: bytes
) -> GroupMember:
    """Read what a member subscribes to and reads; both are empty during a rebalance."""
    topics = ConsumerProtocolMemberMetadata.decode(metadata).subscription if metadata else ()
    owned = ConsumerProtocolMemberAssignment.decode(assignment).partitions() if assignment else ()
    return GroupMember(
        topics=frozenset(topics),
        owned=frozenset(TopicPartition(*each) for each in owned),
        generation=0,
        instance=instance,
        client=client,
        host=host.lstrip("/"),
    )
