"""Committed offsets of many groups by few requests: one for each hundred groups of a broker."""

import asyncio
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from aiokafka.errors import (
    CoordinatorNotAvailableError,
    GroupLoadInProgressError,
    NoError,
    NotCoordinatorForGroupError,
    for_code,
)

from binwright.kafka.client import ClusterClient, UnsupportedVersion
from binwright.kafka.group_requests import (
    FetchGroupOffsets,
    FindCoordinators,
    coordinators,
    group_offsets,
)
from binwright.kafka.leaders import PendingReplies
from binwright.protocol.errors import BrokerUnavailable
from binwright.protocol.model import TopicPartition

GROUPS_PER_REQUEST = 100
MOVED = (NotCoordinatorForGroupError, CoordinatorNotAvailableError, GroupLoadInProgressError)

Committed = Mapping[TopicPartition, int]


@dataclass(frozen=True, slots=True)
class CommittedOffsets:
    """The committed offsets of groups; a group is in one of the two."""

    offsets: dict[str, Committed] = field(default_factory=dict)
    faults: dict[str, str] = field(default_factory=dict)  # group -> why its offsets are not known


class GroupOffsets:
    """Looks up the committed offsets of groups, again and again.

    The groups of a broker that is late (see `PendingReplies`) have a fault.
    """

    def __init__(self, cluster: ClusterClient, *, answer_s: float = 2.0) -> None:
        """Use this client; wait for replies up to `answer_s` seconds."""
        self._cluster, self._answer_s = cluster, answer_s
        self._coordinators: dict[str, int] = {}
        self._replies = PendingReplies[CommittedOffsets](answer_s)
        self._one_by_one = False  # brokers before Kafka 3.0

    async def close(self) -> None:
        """End what is pending."""
        await self._replies.close()

    async def look_up(self, groups: Collection[str]) -> CommittedOffsets:
        """Return what these groups have committed; no error, but a fault of each group."""
        found = CommittedOffsets()
        await self._find_coordinators(groups, found)
        by_broker: defaultdict[int, list[str]] = defaultdict(list)
        for group in sorted(groups):
            if group in self._coordinators:
                by_broker[self._coordinators[group]].append(group)
        await self._replies.round(
            {broker: partial(self._fetch, broker, named) for broker, named in by_broker.items()}
        )
        replies = self._replies.take()
        for broker, named in by_broker.items():
            late = f"broker {broker} has not replied within {self._answer_s:g} s"
            reply = replies.get(broker, CommittedOffsets())
            for group in named:
                if group in reply.offsets:
                    found.offsets[group] = reply.offsets[group]
                else:
                    found.faults[group] = reply.faults.get(group, late)
        return found

    async def _find_coordinators(self, groups: Collection[str], found: CommittedOffsets) -> None:
        unknown = sorted(group for group in groups if group not in self._coordinators)
        if not unknown:
            return
        try:
            async with asyncio.timeout(self._answer_s):
                await self._cluster.brokers()  # the coordinator may be a broker that is new
                for batch in self._batches(unknown):
                    await self._find(batch, found)
        except (BrokerUnavailable, TimeoutError) as exc:
            reason = str(exc) or f"no reply within {self._answer_s:g} s"
            for group in unknown:
                if group not in self._coordinators:
                    found.faults.setdefault(group, f"its coordinator is not known: {reason}")

    async def _find(self, batch: Sequence[str], found: CommittedOffsets) -> None:
        try:
            response = await self._cluster.ask_any(FindCoordinators(batch))
        except UnsupportedVersion:
            if len(batch) == 1:
                raise
            self._one_by_one = True
            for group in batch:
                await self._find([group], found)
            return
        for group, broker, code in coordinators(batch, response):
            error = for_code(code)
            if error is NoError:
                self._coordinators[group] = broker
            else:
                found.faults[group] = f"its coordinator is not known: {error.__name__}"

    async def _fetch(self, broker: int, groups: Sequence[str]) -> CommittedOffsets:
        """Return the offsets of groups of one coordinator; every group has offsets or a fault."""
        found = CommittedOffsets()
        try:
            for batch in self._batches(groups):
                await self._fetch_batch(broker, batch, found)
        except BrokerUnavailable as exc:
            for group in groups:
                if group not in found.offsets:
                    self._coordinators.pop(group, None)  # the broker may be gone
                    found.faults.setdefault(group, str(exc))
        return found

    async def _fetch_batch(
        self, broker: int, batch: Sequence[str], found: CommittedOffsets
    ) -> None:
        try:
            response = await self._cluster.send_request(broker, FetchGroupOffsets(batch))
        except UnsupportedVersion:
            if len(batch) == 1:
                raise
            self._one_by_one = True
            for group in batch:
                await self._fetch_batch(broker, [group], found)
            return
        for group, code, offsets in group_offsets(batch, response):
            error = for_code(code)
            if error is NoError:
                found.offsets[group] = {
                    TopicPartition(topic, number): at for topic, number, at in offsets
                }
                continue
            if error in MOVED:
                self._coordinators.pop(group, None)
            found.faults[group] = f"Kafka does not return its offsets: {error.__name__}"

    def _batches(self, groups: Sequence[str]) -> Iterator[Sequence[str]]:
        size = 1 if self._one_by_one else GROUPS_PER_REQUEST
        return (groups[first : first + size] for first in range(0, len(groups), size))
