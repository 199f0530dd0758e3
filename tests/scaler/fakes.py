"""Kafka and workloads for the tests of the scaler, made of dictionaries."""

import asyncio
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

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
        rates: Group -> records/s of each partition; None: not known.
        lags: Group -> lag of each partition; unset: none.
        expired: Groups that have no offsets any more, or none yet.
        starts: Topic -> the first offset of each partition; unset: 0.
        ids: Topic -> its id.
        faults: Groups whose offsets cannot be looked up, and why.
        descriptions: Group -> its members.
        undescribed: Why no group can be described; empty: they can.
        asked: The groups of each look-up of offsets.
        ended: The topics of each look-up of ends.
    """

    rates: dict[str, list[Any]] = field(default_factory=dict)
    lags: dict[str, list[int]] = field(default_factory=dict)
    expired: set[str] = field(default_factory=set)
    starts: dict[str, int] = field(default_factory=dict)
    ids: dict[str, str] = field(default_factory=dict)
    faults: dict[str, str] = field(default_factory=dict)
    descriptions: dict[str, GroupDescription] = field(default_factory=dict)
    undescribed: str = ""
    asked: list[set[str]] = field(default_factory=list)
    ended: list[set[str]] = field(default_factory=list)
    windows: dict[str, float] = field(default_factory=dict)

    async def committed(self, groups: Collection[str]) -> CommittedOffsets:
        """Return 0 for all partitions of groups whose topic exists."""
        self.asked.append(set(groups))
        faults = {group: self.faults[group] for group in groups if group in self.faults}
        offsets = {
            group: {}
            if group in self.expired
            else {TopicPartition(group, n): 0 for n in range(len(self.rates.get(group, ())))}
            for group in groups
            if group not in faults
        }
        return CommittedOffsets(dict(offsets), faults)

    async def described(self, groups: Collection[str]) -> dict[str, GroupDescription | str]:
        dead = GroupDescription("Dead", "", {})
        return {g: self.undescribed or self.descriptions.get(g, dead) for g in groups}

    async def look_up(
        self, topics: Collection[str], windows: Mapping[str, float] | None = None
    ) -> Mapping[str, LogEnds]:
        """Return the group's lag as the end of each log; no partitions of an unknown topic."""
        self.windows.update(windows or {})
        self.ended.append(set(topics))
        ends = {}
        for topic in topics:
            rates = self.rates.get(topic, [])
            lags = self.lags.get(topic, [0] * len(rates))
            ends[topic] = LogEnds(
                loop_s(),
                dict(enumerate(lags)),
                {number: rate for number, rate in enumerate(rates) if rate is not None},
                len(rates),
                starts=dict.fromkeys(range(len(rates)), self.starts.get(topic, 0)),
                topic_id=self.ids.get(topic, ""),
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
