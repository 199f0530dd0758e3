"""A group to be steered, without Kafka."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from binwright.protocol.model import TopicPartition
from binwright.runtime.clock import loop_s
from binwright.scaler.decide.lags import LogEnds
from binwright.scaler.decide.members import GroupDescription, GroupMember
from binwright.scaler.decide.policy import ReplicaCapacity
from binwright.scaler.decide.publication import PlanPublisher, Rebalance
from binwright.scaler.decide.steering_policies import StickyEven
from binwright.scaler.ports import CommittedOffsets
from binwright.scaler.steered_group import SteeredGroup
from binwright.testing.control_topics import FakeControlTopics

TOPIC = "binwright.plans"
PARTITIONS = [TopicPartition("orders", number) for number in range(4)]
RATES = {0: 80.0, 1: 20.0, 2: 20.0, 3: 20.0}


@dataclass
class World:
    """A group of two members; the first of them has too much to read."""

    description: GroupDescription = field(
        default_factory=lambda: GroupDescription(
            "Stable",
            "binwright",
            {
                "x": GroupMember(topics=frozenset({"orders"}), owned=frozenset(PARTITIONS[:3])),
                "y": GroupMember(topics=frozenset({"orders"}), owned=frozenset(PARTITIONS[3:])),
            },
        )
    )
    fault: str = ""
    rates: Mapping[int, float] = field(default_factory=lambda: RATES)
    lag: int = 10  # of each partition
    requests: list[tuple[str, str, str]] = field(default_factory=list)
    bus: FakeControlTopics = field(default_factory=lambda: FakeControlTopics({TOPIC: 8}))

    async def describe(self, group: str) -> GroupDescription:
        assert group == "shop"
        return self.description

    async def committed(self, groups: Collection[str]) -> CommittedOffsets:
        if self.fault:
            return CommittedOffsets(faults=dict.fromkeys(groups, self.fault))
        return CommittedOffsets(
            {group: dict.fromkeys(PARTITIONS, 100 - self.lag) for group in groups}
        )

    async def look_up(
        self, topics: Collection[str], windows: Mapping[str, float] | None = None
    ) -> Mapping[str, LogEnds]:
        assert not windows
        ends = {partition.partition: 100 for partition in PARTITIONS}
        known = LogEnds(loop_s(), ends, self.rates, len(ends))
        return {topic: known for topic in topics if topic == "orders"}

    async def request(self, group: str, protocol: str, topic: str) -> None:
        self.requests.append((group, protocol, topic))

    def steered(self) -> SteeredGroup:
        return SteeredGroup(
            name="shop",
            policy=StickyEven(),
            publisher=PlanPublisher(
                capacity=ReplicaCapacity(rate=100, sla_s=1.0), rebalance=Rebalance(pause_s=3.0)
            ),
            bus=self.bus,
            topic=TOPIC,
            groups=self,
            ends=self,
            request_rebalance=self.request,
        )
