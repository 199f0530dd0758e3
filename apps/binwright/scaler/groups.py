"""Looks consumer groups up in Kafka: what they have committed, who their members are.

Many groups take few requests: one for each hundred groups of a broker.
"""

import asyncio
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from functools import partial
from typing import Any

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
    ListGroups,
    coordinators,
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
CONSUMER = "consumer"
"""The type of protocol of groups whose members say what they subscribe to, as consumers do."""
LISTED = frozenset({CONSUMER, ""})
"""The types of protocol of consumer groups; without members it is empty."""
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
        await self._find_coordinators(groups, committed.faults)
        by_broker = self._by_coordinator(groups)
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

    async def names(self) -> frozenset[str]:
        """Return the consumer groups that there are, those too that have only committed offsets.

        Raises:
            BrokerUnavailable: A broker does not answer, or none of them allows it.
        """
        named: set[str] = set()
        for broker in await self._cluster.broker_ids():
            response = await self._cluster.send_request(broker, ListGroups())
            error = for_code(response.error_code)
            if error is not NoError:
                raise BrokerUnavailable(f"list the groups of broker {broker}: {error.__name__}")
            named |= {name for name, kind in response.groups if kind in LISTED}
        return frozenset(named)

    async def describe(self, group: str) -> GroupDescription:
        """Return the members of a group; a group that does not exist is "Dead", without members.

        Raises:
            BrokerUnavailable: No broker answers, or it refuses.
        """
        described = (await self.described([group]))[group]
        if isinstance(described, str):
            raise BrokerUnavailable(described)
        return described

    async def described(self, groups: Collection[str]) -> dict[str, GroupDescription | str]:
        """Return the members of each of these groups, or why they are not known."""
        faults: dict[str, str] = {}
        await self._find_coordinators(groups, faults)
        described: dict[str, GroupDescription | str] = {}
        await asyncio.gather(
            *(
                self._describe_batch(broker, named[first : first + GROUPS_PER_REQUEST], described)
                for broker, named in self._by_coordinator(groups).items()
                for first in range(0, len(named), GROUPS_PER_REQUEST)
            )
        )
        return described | faults

    async def _describe_batch(
        self, broker: int, batch: Sequence[str], described: dict[str, GroupDescription | str]
    ) -> None:
        """Describe groups of one coordinator; each gets a description or a fault."""
        try:
            response = await self._cluster.send_request(broker, DescribeMembers(batch))
            for code, group, state, kind, protocol, members, _ in response.groups:
                if code or state != DEAD:
                    described[group] = self._described(code, group) or GroupDescription(
                        state, protocol, dict(map(_member, members)) if kind == CONSUMER else {}
                    )
            if others := [group for group in batch if group not in described]:
                await self._describe_consumers(broker, others, described)
        except BrokerUnavailable as exc:
            for group in batch:
                self._coordinators.pop(group, None)  # the broker may be gone
                described.setdefault(group, str(exc))

    async def _describe_consumers(
        self, broker: int, groups: Sequence[str], described: dict[str, GroupDescription | str]
    ) -> None:
        """Describe groups of type "consumer"; brokers before Kafka 4.0 have none."""
        dead = GroupDescription(DEAD, "")
        try:
            response = await self._cluster.send_request(broker, DescribeConsumerGroups(groups))
        except UnsupportedVersion:
            described |= dict.fromkeys(groups, dead)
            return
        for code, _, group, state, _, _, assignor, members, *_ in response.groups:
            described[group] = (
                dead
                if for_code(code) is GroupIdNotFound
                else self._described(code, group) or _by_broker(state, assignor, members or ())
            )

    def _described(self, code: int, group: str) -> str:
        """Return why a broker does not describe a group; empty: it does."""
        error = for_code(code)
        if error in MOVED:
            self._coordinators.pop(group, None)
        return "" if error is NoError else f"describe group {group}: {error.__name__}"

    def _by_coordinator(self, groups: Collection[str]) -> dict[int, list[str]]:
        """Return these groups by their coordinators, as far as they are known."""
        by_broker: defaultdict[int, list[str]] = defaultdict(list)
        for group in sorted(groups):
            if group in self._coordinators:
                by_broker[self._coordinators[group]].append(group)
        return by_broker

    async def _find_coordinators(self, groups: Collection[str], faults: dict[str, str]) -> None:
        unknown = sorted(group for group in groups if group not in self._coordinators)
        if not unknown:
            return
        try:
            async with asyncio.timeout(self._timeout_s):
                await self._cluster.brokers()  # the coordinator may be a broker that is new
                for batch in self._batches(unknown):
                    await self._find(batch, faults)
        except (BrokerUnavailable, TimeoutError) as exc:
            reason = str(exc) or f"no reply within {self._timeout_s:g} s"
            for group in unknown:
                if group not in self._coordinators:
                    faults.setdefault(group, f"its coordinator is not known: {reason}")

    async def _find(self, batch: Sequence[str], faults: dict[str, str]) -> None:
        try:
            response = await self._cluster.ask_any(FindCoordinators(batch))
        except UnsupportedVersion:
            if len(batch) == 1:
                raise
            self._one_by_one = True
            for group in batch:
                await self._find([group], faults)
            return
        for group, broker, code in coordinators(batch, response):
            error = for_code(code)
            if error is NoError:
                self._coordinators[group] = broker
            else:
                faults[group] = f"its coordinator is not known: {error.__name__}"

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


def _member(row: tuple[str, str | None, str, str, bytes, bytes]) -> tuple[str, GroupMember]:
    """Return a member of a classic group; during a rebalance it names no topics or partitions."""
    name, instance, client, host, metadata, assignment = row
    topics = ConsumerProtocolMemberMetadata.decode(metadata).subscription if metadata else ()
    owned = ConsumerProtocolMemberAssignment.decode(assignment).partitions() if assignment else ()
    return name, GroupMember(
        topics=frozenset(topics),
        owned=frozenset(TopicPartition(*each) for each in owned),
        generation=0,
        instance=instance,
        client=client,
        host=host.lstrip("/"),
    )


def _by_broker(state: str, assignor: str, rows: Sequence[Any]) -> GroupDescription:
    """Return a group of type "consumer", whose partitions a broker assigns."""
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
        for name, instance, _, _, client, host, topics, _, assigned, *_ in rows
    }
    patterns = {name: pattern for name, *_, pattern, _, _, _, _, _ in rows if pattern}
    return GroupDescription(state, assignor, with_matches(described, patterns), "consumer")
