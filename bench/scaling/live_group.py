"""A consumer group whose replicas are processes that a policy adds and takes away."""

import asyncio
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import structlog
from tests.integration.assignor.java_members import JavaMember, Programs, start_member

from bench.scaling.steering import Steering
from binwright.kafka.client import LATEST, ClusterClient
from binwright.lab.slo.policies import ScaledGroupPolicy
from binwright.protocol.errors import BrokerUnavailable
from binwright.protocol.model import Slot, TopicPartition
from binwright.runtime.clock import loop_s, wall_ms
from binwright.scaler.decide.policy import Decision, Loads, Observation, PartitionLoad, Policy
from binwright.scaler.decide.publication import GroupState, PlanPublisher
from binwright.scaler.decide.sizing import WorkloadStatus
from binwright.scaler.decide.steering_policies import BinsProposal
from binwright.scaler.ends import TopicEnds
from binwright.scaler.groups import ConsumerGroups
from binwright.scaler.passes import Scaler, Target
from binwright.scaler.ports import GroupDescription

log = structlog.get_logger()

WINDOW = 3  # looks, one each second: what a rate is averaged over
STABLE = "Stable"


@dataclass
class Replica:
    """One process of the group."""

    name: str  # its client.id
    member: JavaMember
    listening: asyncio.Task[None]
    began_s: float
    ended_s: float | None = None


@dataclass
class LiveGroup:
    """One group under one policy.

    Attributes:
        policy: Decides on replicas, and on who reads what where there is a publisher.
        publisher: Decides which plans are published; None: Kafka's assignor assigns.
        replicas: Those that run, oldest first; `gone` those that ran before.
        steps: How often the number of replicas grew, and shrank.
    """

    name: str
    topic: str
    partitions: int
    programs: Programs
    settings: Mapping[str, str]
    cluster: ClusterClient
    policy: Policy
    interval_s: float
    service_us: int
    sla_ms: int
    steering: Steering | None = None
    publisher: PlanPublisher | None = None
    replicas: list[Replica] = field(default_factory=list)
    gone: list[Replica] = field(default_factory=list)
    ending: set[asyncio.Task[None]] = field(default_factory=set)
    rebalances: int = 0
    moved: int = 0
    steps: list[int] = field(default_factory=lambda: [0, 0])
    started: int = 0
    scaled_s: float | None = None
    _ends: deque[tuple[float, dict[TopicPartition, int]]] = field(
        default_factory=lambda: deque(maxlen=WINDOW + 1)
    )

    async def scale(self, wanted: int) -> None:
        """Start replicas, or stop the ones that read nothing, then the newest."""
        grown = wanted - len(self.replicas)
        if grown:
            self.steps[grown < 0] += 1
            self.scaled_s = loop_s()
            log.info("group.scaled", group=self.name, replicas=wanted)
        for _ in range(grown):
            name = f"{self.name}-{self.started}"
            self.started += 1
            member, listening = await start_member(
                *(self.programs, name, {**self.settings, "client.id": name}, self.topic),
                service_us=self.service_us,
                sla_ms=self.sla_ms,
            )
            self.replicas.append(Replica(name, member, listening, loop_s()))
        for _ in range(-grown):
            idle = [one for one in self.replicas if not one.member.owned]
            replica = (idle or self.replicas)[-1]
            self.replicas.remove(replica)
            self.gone.append(replica)
            ending = asyncio.create_task(_end(replica))
            self.ending.add(ending)
            ending.add_done_callback(self.ending.discard)

    def status(self) -> WorkloadStatus:
        """Fit `ScaledWorkload`, as `scale` does."""
        ready = sum(bool(one.member.owned) for one in self.replicas)
        return WorkloadStatus(replicas=len(self.replicas), ready=ready)

    async def run(self) -> None:
        """Look at the group and decide, for ever: by the scaler itself where it is its group."""
        if isinstance(self.policy, ScaledGroupPolicy):
            await self._run_scaler(self.policy)
        else:
            await self._run_policy()

    async def _run_scaler(self, policy: ScaledGroupPolicy) -> None:
        target = Target(self.name, policy.config, self)
        ends = TopicEnds(self.cluster, None, window_s=policy.history.window_s)
        groups = ConsumerGroups(self.cluster)
        every = {self.name: target}
        try:
            await Scaler(lambda: every, groups, ends, self.interval_s, self.interval_s).run()
        finally:
            await asyncio.gather(ends.close(), groups.close())

    async def _run_policy(self) -> None:
        groups = ConsumerGroups(self.cluster)
        next_s, decided_s = loop_s(), loop_s()
        while True:
            next_s = max(next_s + 1.0, loop_s())
            await asyncio.sleep(next_s - loop_s())
            try:
                loads = await self._loads(groups)
                if loads is None or loop_s() - decided_s < self.interval_s - 0.01:
                    continue
                found = await groups.describe(self.name)
                decided_s = loop_s()
                await self._decide(loads, found)
            except BrokerUnavailable as exc:
                log.warning("group.undecided", group=self.name, reason=str(exc))

    async def _decide(self, loads: Loads, found: GroupDescription) -> None:
        order = sorted(self.replicas, key=lambda one: not one.member.owned)  # idle ones last
        slots = {one.name: Slot(number) for number, one in enumerate(order)}
        reads = {
            partition: slots[client]
            for name, member in found.members.items()
            if (client := client_id(name)) in slots
            for partition in member.owned
        }
        observation = Observation(
            time_s=loop_s(),
            loads=loads,
            replicas=len(order),
            assignment=reads,
            scaled_s=self.scaled_s,
        )
        is_stable = found.state == STABLE and len(found.members) == len(order)
        if self.publisher and not is_stable:
            return  # what is decided now would be about a group that is about to change
        decision, self.policy = self.policy.decide(observation)
        if decision.assignment is not None and self.publisher:
            await self._publish(decision, loads, found)
        await self.scale(decision.replicas)

    async def _publish(self, decision: Decision, loads: Loads, found: GroupDescription) -> None:
        assert decision.assignment is not None
        assert self.publisher
        assert self.steering
        count = 1 + max(decision.assignment.values())
        bins = tuple(
            tuple(sorted(p for p, slot in decision.assignment.items() if slot == number))
            for number in range(count)
        )
        state = GroupState(
            group=self.name,
            members=found.members,
            loads=loads,
            now_s=loop_s(),
            now_ms=wall_ms(),
        )
        done, self.publisher = self.publisher.decide(
            state, BinsProposal(bins, decision.reason), is_required=True
        )
        if done.plan is None:
            return
        grows = decision.replicas > len(self.replicas)
        log.info("plan.published", group=self.name, moved=done.moved, reason=done.reason)
        await self.steering.publish(done.plan)
        if done.rebalances:
            self.rebalances += 1
            self.moved += done.moved
        if done.rebalances and not grows:  # a replica that joins is a rebalance of its own
            await self.steering.rebalance(self.name, self.topic)

    async def _loads(self, groups: ConsumerGroups) -> Loads | None:
        numbers = range(self.partitions)
        leader = (await self.cluster.leaders(self.topic))[0]
        found = await self.cluster.offsets(leader, {self.topic: numbers}, LATEST)
        ends = {TopicPartition(*each): end for each, end in found.items()}
        self._ends.append((loop_s(), ends))
        committed = (await groups.committed([self.name])).offsets.get(self.name, {})
        (first_s, first), (last_s, last) = self._ends[0], self._ends[-1]
        if len(self._ends) <= WINDOW:
            return None
        return {
            p: PartitionLoad(
                (last[p] - first[p]) / (last_s - first_s),
                max(0, end - committed.get(p, 0)),  # more may have come since the ends were read
            )
            for p, end in ends.items()
        }

    async def stop(self) -> None:
        """End all processes."""
        self.gone += self.replicas
        await asyncio.gather(*(_end(one) for one in self.replicas), *self.ending)

    def result(self) -> dict[str, Any]:
        """Return what came of it."""
        served = sum(one.member.served for one in self.gone)
        late = sum(one.member.late for one in self.gone)
        minutes = sum((one.ended_s or loop_s()) - one.began_s for one in self.gone) / 60
        return {
            "group": self.name,
            "records": served,
            "within the SLA, %": round(100 * (1 - late / max(1, served)), 2),
            "replica-minutes": round(minutes, 2),
            "up": self.steps[0],
            "down": self.steps[1],
            "rebalances asked for": self.rebalances,
            "partitions moved by them": self.moved,
        }


def client_id(member: str) -> str:
    """Return the `client.id` in a member id: Kafka puts 36 characters behind it."""
    return member[:-37]


async def _end(replica: Replica) -> None:
    await replica.member.stop()
    replica.ended_s = loop_s()
    await replica.listening
