"""Kafka and workloads for the tests of the scaler, made of dictionaries."""

import asyncio
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from binwright.protocol.errors import ExternalError
from binwright.protocol.model import TopicPartition
from binwright.runtime.clock import loop_s
from binwright.scaler.decide.assigning import Replica
from binwright.scaler.decide.lags import LogEnds
from binwright.scaler.decide.members import GroupDescription, Members
from binwright.scaler.decide.sizing import WorkloadStatus
from binwright.scaler.ports import CommittedOffsets


@dataclass
class FakeKafka:
    """Offsets and ends of groups that read a topic of their own, named like the group.

    Attributes:
        rates: Group -> records/s of each partition.
        lags: Group -> lag of each partition; unset: none.
        expired: Groups that have no offsets any more.
        faults: Groups whose offsets cannot be looked up, and why.
        descriptions: Group -> its members.
        asked: The groups of each look-up of offsets.
        ended: The topics of each look-up of ends.
    """

    rates: dict[str, list[float]] = field(default_factory=dict)
    lags: dict[str, list[int]] = field(default_factory=dict)
    expired: set[str] = field(default_factory=set)
    faults: dict[str, str] = field(default_factory=dict)
    descriptions: dict[str, GroupDescription] = field(default_factory=dict)
    asked: list[set[str]] = field(default_factory=list)
    ended: list[set[str]] = field(default_factory=list)
    windows: dict[str, float] = field(default_factory=dict)

    async def committed(self, groups: Collection[str]) -> CommittedOffsets:
        """Return 0 for all partitions."""
        self.asked.append(set(groups))
        faults = {group: self.faults[group] for group in groups if group in self.faults}
        offsets = {
            group: {TopicPartition(group, n): 0 for n in range(len(self.rates[group]))}
            for group in groups
            if group not in faults
        } | {group: {} for group in self.expired}
        return CommittedOffsets(dict(offsets), faults)

    async def describe(self, group: str) -> GroupDescription:
        return self.descriptions[group]

    async def look_up(
        self, topics: Collection[str], windows: Mapping[str, float] | None = None
    ) -> Mapping[str, LogEnds]:
        """Return the group's lag as the end of each log."""
        self.windows.update(windows or {})
        self.ended.append(set(topics))
        ends = {}
        for topic in topics:
            rates = self.rates[topic]
            lags = self.lags.get(topic, [0] * len(rates))
            ends[topic] = LogEnds(
                loop_s(), dict(enumerate(lags)), dict(enumerate(rates)), len(rates)
            )
        return ends


@dataclass
class FakeWorkload:
    """A number of replicas; `slow_s` passes before an order is carried out."""

    replicas: int = 1
    slow_s: float = 0.0
    refuses: str = ""
    missing: bool = False
    unknown: str = ""
    orders: list[int] = field(default_factory=list)
    ended: list[str] = field(default_factory=list)

    async def replicas_of(self, members: Members) -> Mapping[str, Replica]:
        """Return a replica of the member's name, any of which may end."""
        return {name: Replica(f"pod-{name}") for name in members}

    def status(self) -> WorkloadStatus | None:
        if self.unknown:
            raise ExternalError(self.unknown)
        return None if self.missing else WorkloadStatus(replicas=self.replicas, ready=self.replicas)

    async def scale(self, replicas: int, ending: Collection[str] = ()) -> None:
        self.orders.append(replicas)
        self.ended += ending
        await asyncio.sleep(self.slow_s)
        if self.refuses:
            raise ExternalError(self.refuses)
        self.replicas = replicas
