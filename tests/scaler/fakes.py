"""Kafka and workloads for the tests of the scaler, made of dictionaries."""

import asyncio
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from binwright.protocol.errors import ExternalError
from binwright.protocol.model import TopicPartition
from binwright.runtime.clock import loop_s
from binwright.scaler.decide.log_ends import LogEnds
from binwright.scaler.decide.machine import WorkloadSeen
from binwright.scaler.groups.offsets import CommittedOffsets


@dataclass
class FakeKafka:
    """Offsets and ends of groups that read a topic of their own, named like the group.

    Attributes:
        rates: Group -> records/s of each partition.
        lags: Group -> lag of each partition; unset: none.
        expired: Groups that have no offsets any more.
        faults: Groups whose offsets cannot be looked up, and why.
        asked: The groups of each look-up of offsets.
        ended: The topics of each look-up of ends.
    """

    rates: dict[str, list[float]] = field(default_factory=dict)
    lags: dict[str, list[int]] = field(default_factory=dict)
    expired: set[str] = field(default_factory=set)
    faults: dict[str, str] = field(default_factory=dict)
    asked: list[set[str]] = field(default_factory=list)
    ended: list[set[str]] = field(default_factory=list)

    @property
    def offsets(self) -> "FakeOffsets":
        """Return the port `Offsets`."""
        return FakeOffsets(self)

    @property
    def ends(self) -> "FakeEnds":
        """Return the port `Ends`."""
        return FakeEnds(self)


@dataclass(frozen=True)
class FakeOffsets:
    """Every group has committed 0 in all partitions."""

    kafka: FakeKafka

    async def look_up(self, groups: Collection[str]) -> CommittedOffsets:
        self.kafka.asked.append(set(groups))
        faults = {group: self.kafka.faults[group] for group in groups if group in self.kafka.faults}
        offsets = {
            group: {TopicPartition(group, n): 0 for n in range(len(self.kafka.rates[group]))}
            for group in groups
            if group not in faults
        } | {group: {} for group in self.kafka.expired}
        return CommittedOffsets(dict(offsets), faults)


@dataclass(frozen=True)
class FakeEnds:
    """The end of a log is the group's lag."""

    kafka: FakeKafka

    async def look_up(self, topics: Collection[str]) -> Mapping[str, LogEnds]:
        self.kafka.ended.append(set(topics))
        found = {}
        for topic in topics:
            rates = self.kafka.rates[topic]
            lags = self.kafka.lags.get(topic, [0] * len(rates))
            ends, speeds = dict(enumerate(lags)), dict(enumerate(rates))
            found[topic] = LogEnds(loop_s(), ends, speeds, len(rates))
        return found


@dataclass
class FakeWorkload:
    """A number of replicas; `slow_s` passes before an order is carried out."""

    replicas: int = 1
    slow_s: float = 0.0
    refuses: str = ""
    missing: bool = False
    unknown: str = ""
    orders: list[int] = field(default_factory=list)

    def seen(self) -> WorkloadSeen | None:
        if self.unknown:
            raise ExternalError(self.unknown)
        return None if self.missing else WorkloadSeen(replicas=self.replicas, ready=self.replicas)

    async def scale(self, replicas: int) -> None:
        self.orders.append(replicas)
        await asyncio.sleep(self.slow_s)
        if self.refuses:
            raise ExternalError(self.refuses)
        self.replicas = replicas
