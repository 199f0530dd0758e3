"""Brokers made of dictionaries: replicas are copied on the loop's own clock."""

import asyncio
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace

from binwright.balancer.decide.throttles import FOLLOWER_LIST, LEADER_RATE
from binwright.balancer.ports import (
    ClusterState,
    ConfigChanges,
    ConfigResource,
    Configs,
    Disk,
    PartitionState,
    Reassignment,
    Replicas,
)
from binwright.protocol.model import TopicPartition

FREE_BYTES = 10**12
UNTHROTTLED = 10**9
"""Bytes/s of a copy without a throttle."""


@dataclass(slots=True)
class _Copying:
    """A reassignment under way."""

    under_way: Reassignment
    bytes_left: float
    seen_at: float


class FakeBrokers:
    """A `Brokers` of partitions of one size, all in sync.

    Attributes:
        alive: The rack of each broker that runs.
        partitions: Where each partition is.
        configs_set: Values that were set.
        fail_next: Raised by the next calls, one each; None: that call succeeds.
        calls: Names of the calls that change something, in order.
    """

    def __init__(
        self,
        partitions: Mapping[TopicPartition, Replicas],
        *,
        racks: Mapping[int, str | None] | None = None,
        partition_bytes: int = 1_000,
        min_in_sync: int = 1,
    ) -> None:
        brokers = {broker for replicas in partitions.values() for broker in replicas}
        self.alive = dict(racks or dict.fromkeys(sorted(brokers)))
        self.partitions = {
            partition: PartitionState(replicas[0], replicas, frozenset(replicas))
            for partition, replicas in partitions.items()
        }
        self.configs_set: dict[ConfigResource, dict[str, str]] = {}
        self.fail_next: list[BaseException | None] = []
        self.calls: list[str] = []
        self.most_copies = 0
        self._bytes, self._min_in_sync = partition_bytes, min_in_sync
        self._copying: dict[TopicPartition, _Copying] = {}

    async def state(self) -> ClusterState:
        """Return all partitions, after what the copies did meanwhile."""
        self._called()
        return ClusterState(
            dict(self.alive),
            dict(self.partitions),
            {partition: each.under_way for partition, each in self._copying.items()},
        )

    async def disks(self) -> Mapping[int, Disk]:
        """Return what is on each broker."""
        self._called()
        return {broker: Disk(FREE_BYTES, FREE_BYTES, self._on(broker)) for broker in self.alive}

    def _on(self, broker: int) -> dict[TopicPartition, int]:
        return {
            partition: self._bytes
            for partition, state in self.partitions.items()
            if broker in state.in_sync
        }

    async def configs(
        self, resources: Collection[ConfigResource], names: Collection[str]
    ) -> Configs:
        """Return values that were set, and `min.insync.replicas` of topics."""
        self._called()
        default = {"min.insync.replicas": str(self._min_in_sync)}
        found = {}
        for each in resources:
            known = {**(default if each.kind == "topic" else {}), **self.configs_set.get(each, {})}
            found[each] = {name: known[name] for name in names if name in known}
        return found

    async def set_configs(self, changes: ConfigChanges) -> None:
        """Set and remove values, one resource at a time: a failure leaves a part of them."""
        for resource, values in changes.items():
            self._called("set_configs")
            known = self.configs_set.setdefault(resource, {})
            for name, value in values.items():
                if value is None:
                    known.pop(name, None)
                else:
                    known[name] = value
            if not known:
                del self.configs_set[resource]

    async def reassign(self, targets: Mapping[TopicPartition, Replicas | None]) -> None:
        """Begin copies; partitions that need none are placed at once."""
        for partition, target in targets.items():
            self._called("reassign")
            if target is None:
                self._give_up(partition)
            else:
                self._begin(partition, target)
        self.most_copies = max(self.most_copies, len(self._copying))

    def _begin(self, partition: TopicPartition, target: Replicas) -> None:
        state = self.partitions[partition]
        adding = tuple(broker for broker in target if broker not in state.replicas)
        removing = tuple(broker for broker in state.replicas if broker not in target)
        if not adding:
            self._place(partition, target)
            return
        under_way = Reassignment((*target, *removing), adding, removing)
        now = asyncio.get_running_loop().time()
        self._copying[partition] = _Copying(under_way, self._bytes, now)
        self.partitions[partition] = replace(state, replicas=under_way.replicas)

    def _give_up(self, partition: TopicPartition) -> None:
        if (copying := self._copying.pop(partition, None)) is not None:
            kept = tuple(b for b in copying.under_way.replicas if b not in copying.under_way.adding)
            self.partitions[partition] = replace(self.partitions[partition], replicas=kept)

    def _place(self, partition: TopicPartition, target: Replicas) -> None:
        state = self.partitions[partition]
        leader = state.leader if state.leader in target else target[0]
        in_sync = frozenset(target) & self.alive.keys()
        self.partitions[partition] = PartitionState(leader, target, in_sync)

    async def elect_preferred(self, partitions: Collection[TopicPartition]) -> None:
        """Make first replicas leaders, where they are in sync."""
        self._called("elect_preferred")
        for partition in partitions:
            state = self.partitions[partition]
            if state.replicas[0] in state.in_sync:
                self.partitions[partition] = replace(state, leader=state.replicas[0])

    def kill_broker(self, broker: int) -> None:
        """End a broker: it is in sync with nothing, and leads nothing."""
        del self.alive[broker]
        for partition, state in self.partitions.items():
            in_sync = state.in_sync - {broker}
            leader = state.leader if state.leader != broker else min(in_sync, default=None)
            self.partitions[partition] = replace(state, in_sync=in_sync, leader=leader)

    def start_broker(self, broker: int) -> None:
        """Start a broker again: it is in sync at once."""
        self.alive[broker] = None
        for partition, state in self.partitions.items():
            added = {broker} & {*state.replicas}
            self.partitions[partition] = replace(state, in_sync=state.in_sync | added)

    def throttled(self) -> Iterable[ConfigResource]:
        """Return what has a throttle."""
        return sorted(self.configs_set)

    def _called(self, name: str | None = None) -> None:
        if self.fail_next and (failure := self.fail_next.pop(0)) is not None:
            raise failure
        if name:
            self.calls.append(name)
        now = asyncio.get_running_loop().time()
        for partition, copying in list(self._copying.items()):
            copying.bytes_left -= (now - copying.seen_at) * self._rate(partition)
            copying.seen_at = now
            if copying.bytes_left <= 0 and {*copying.under_way.adding} <= self.alive.keys():
                del self._copying[partition]
                self._place(partition, copying.under_way.target)

    def _rate(self, partition: TopicPartition) -> float:
        """Return how fast a partition is copied, bytes/s: limited where topic and brokers are."""
        listed = self.configs_set.get(ConfigResource("topic", partition.topic), {})
        if FOLLOWER_LIST not in listed:
            return float(UNTHROTTLED)
        # A value of a broker hides the default of all.
        default = self.configs_set.get(ConfigResource("broker", ""), {}).get(LEADER_RATE)
        limits = [
            self.configs_set.get(ConfigResource("broker", str(broker)), {}).get(
                LEADER_RATE, default
            )
            for broker in self.alive
        ]
        return min(UNTHROTTLED, *(float(limit) for limit in limits if limit is not None))


class FakeProbe:
    """A `Probe` that returns what `latency_s` is."""

    def __init__(self, latency_s: float = 0.01) -> None:
        self.latency_s = latency_s

    async def measure(self) -> float:
        """Return the latency of the moment, s."""
        return self.latency_s
