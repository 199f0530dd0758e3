"""A consumer group whose replicas are processes that a policy adds and takes away."""

import asyncio
from collections import deque
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

import structlog
from tests.integration.assignor.java_members import JavaMember, Programs, start_member

from binwright.kafka.client import LATEST, ClusterClient
from binwright.lab.slo.policies import ScaledGroupPolicy
from binwright.protocol.errors import BrokerUnavailable
from binwright.protocol.model import Slot, TopicPartition
from binwright.runtime.clock import loop_s
from binwright.scaler.assigning import Assigner, Plans
from binwright.scaler.decide.assigning import Replica
from binwright.scaler.decide.members import GroupDescription, Members
from binwright.scaler.decide.policy import Loads, Observation, PartitionLoad, Policy
from binwright.scaler.decide.sizing import WorkloadStatus
from binwright.scaler.ends import TopicEnds
from binwright.scaler.groups import ConsumerGroups
from binwright.scaler.passes import ScaledTarget, Scaler

log = structlog.get_logger()

WINDOW = 3  # looks, one each second: what a rate is averaged over


@dataclass
class LiveReplica:
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
        policy: Decides on replicas.
        plans: How its plans are published if the scaler assigns its partitions.
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
    plans: Plans | None = None
    replicas: list[LiveReplica] = field(default_factory=list)
    gone: list[LiveReplica] = field(default_factory=list)
    ending: set[asyncio.Task[None]] = field(default_factory=set)
    steps: list[int] = field(default_factory=lambda: [0, 0])
    started: int = 0
    scaled_s: float | None = None
    _ends: deque[tuple[float, dict[TopicPartition, int]]] = field(
        default_factory=lambda: deque(maxlen=WINDOW + 1)
    )

    async def replicas_of(self, members: Members) -> dict[str, Replica]:
        """Fit `ScaledWorkload.replicas_of`: any replica may end, as of a Deployment."""
        return {name: Replica(client_id(name)) for name in members}

    async def scale(self, wanted: int, ending: Collection[str] = ()) -> None:
        """Start replicas, or stop these, then ones that read nothing, then the newest."""
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
            self.replicas.append(LiveReplica(name, member, listening, loop_s()))
        for _ in range(-grown):
            marked = [one for one in self.replicas if one.name in ending]
            idle = [one for one in self.replicas if not one.member.owned]
            replica = (marked or idle or self.replicas)[-1]
            self.replicas.remove(replica)
            self.gone.append(replica)
            task = asyncio.create_task(_end(replica))
            self.ending.add(task)
            task.add_done_callback(self.ending.discard)

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
        target = ScaledTarget(self.name, policy.config, self)
        ends = TopicEnds(self.cluster, None, window_s=policy.history.window_s)
        groups = ConsumerGroups(self.cluster)
        every = {self.name: target}
        try:
            scaler = Scaler(lambda: every, groups, ends, self.interval_s, self.interval_s)
            scaler.assigner = Assigner(self.plans) if self.plans else None
            await scaler.run()
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
        decision, self.policy = self.policy.decide(observation)
        await self.scale(decision.replicas)

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

    def result(self, sent: int) -> dict[str, Any]:
        """Return what came of so many records."""
        served = sum(one.member.served for one in self.gone)
        late = sum(one.member.late for one in self.gone)
        minutes = sum((one.ended_s or loop_s()) - one.began_s for one in self.gone) / 60
        return {
            "group": self.name,
            "records": served,
            "read again": max(0, served - sent),
            "within the SLA, %": round(100 * (1 - late / max(1, served)), 2),
            "replica-minutes": round(minutes, 2),
            "up": self.steps[0],
            "down": self.steps[1],
        }


def client_id(member: str) -> str:
    """Return the `client.id` in a member id: Kafka puts 36 characters behind it."""
    return member[:-37]


async def _end(replica: LiveReplica) -> None:
    await replica.member.stop()
    replica.ended_s = loop_s()
    await replica.listening
