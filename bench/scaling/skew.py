"""How even a skewed load is read, and how many partitions a change of members moves."""

import asyncio
import tempfile
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from tests.integration.assignor.java_members import (
    ASSIGNOR,
    COOPERATIVE,
    JavaMember,
    Programs,
    build_programs,
    consumer_settings,
    start_member,
)
from tests.integration.topics import create_topic

from binwright.kafka.client import ClusterClient
from binwright.kafka.control_topics import KafkaControlTopics
from binwright.lab.slo import workloads
from binwright.local.kafka import run_broker
from binwright.protocol.model import Slot, TopicPartition
from binwright.runtime.clock import loop_s, wall_ms
from binwright.runtime.settings.kafka import KafkaSettings
from binwright.scaler.decide.assigning import TOLERANCE
from binwright.scaler.decide.even_bins import BinsProposal, even_out, imbalance
from binwright.scaler.decide.members import in_order, owners
from binwright.scaler.decide.plan_publication import GroupState, PlanPublisher, Rebalance
from binwright.scaler.decide.policy import PartitionLoad, ReplicaCapacity
from binwright.scaler.groups import ConsumerGroups
from binwright.scaler.kafka_plans import KafkaPlans
from binwright.scaler.plans_topic import PLANS_CONFIG, PLANS_PARTITIONS, PLANS_TOPIC
from binwright.scaler.settings import ScalerSettings

RATE = 350.0  # records/s of the topic
CAPACITY = ReplicaCapacity(rate=100.0, sla_s=60.0)
MEMBERS = 4
DEADLINE_S = 40.0
SETTLED_S = 4.0  # several heartbeats without a change
RANGE = "org.apache.kafka.clients.consumer.RangeAssignor"

Replan = Callable[[], Awaitable[None]]


async def skew() -> dict[str, Any]:
    """Read the paper's skewed load with four members; then a fifth comes, and one goes."""
    shares = workloads.skewed(workloads.first()).shares
    async with AsyncExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="binwright-")))
        broker = await stack.enter_async_context(run_broker(directory / "broker"))
        kafka = KafkaSettings(bootstrap_servers=broker.bootstrap_servers)
        programs = await build_programs(directory)
        bus = await stack.enter_async_context(KafkaControlTopics(kafka))
        await bus.ensure(PLANS_TOPIC, PLANS_PARTITIONS, PLANS_CONFIG)
        cluster = await stack.enter_async_context(ClusterClient(kafka))
        plans = await stack.enter_async_context(KafkaPlans(kafka, ScalerSettings()))
        rows = []
        for name, assignor in (
            ("range", RANGE),
            ("cooperative-sticky", COOPERATIVE),
            ("binwright", ASSIGNOR),
        ):
            await create_topic(kafka, name, len(shares))
            replan = _replan(cluster, plans, name, shares)
            rows.append(
                await _changes(
                    programs,
                    consumer_settings(kafka.bootstrap_servers, name)
                    | {"partition.assignment.strategy": assignor},
                    shares,
                    replan if assignor == ASSIGNOR else None,
                )
            )
    return {"members": MEMBERS, "partitions": len(shares), "rows": rows}


def _replan(
    cluster: ClusterClient, plans: KafkaPlans, group: str, shares: Sequence[float]
) -> Replan:
    """Return what a controller does once: look at the group, decide, publish, rebalance."""
    publisher = PlanPublisher(capacity=CAPACITY, rebalance=Rebalance(pause_s=0.5, cooldown_s=0.0))
    loads = {
        TopicPartition(group, number): PartitionLoad(RATE * share)
        for number, share in enumerate(shares)
    }

    async def once() -> None:
        nonlocal publisher
        found = await ConsumerGroups(cluster).describe(group)
        order = in_order(found.members)
        reads = {p: Slot(order.index(name)) for p, name in owners(found.members).items()}
        rates = {partition: load.rate for partition, load in loads.items()}
        proposal = BinsProposal(even_out(rates, reads, len(order), TOLERANCE), "evened out")
        state = GroupState(
            group=group, members=found.members, loads=loads, now_s=loop_s(), now_ms=wall_ms()
        )
        done, publisher = publisher.decide(state, proposal)
        if done.plan is not None:
            await plans.publish(done.plan)
        if done.rebalances:
            await plans.rebalance(group, found.protocol, group)

    return once


async def _changes(
    programs: Programs, settings: dict[str, str], shares: Sequence[float], replan: Replan | None
) -> dict[str, Any]:
    group = settings["group.id"]
    running: list[tuple[JavaMember, asyncio.Task[None]]] = []
    left: list[JavaMember] = []

    async def start() -> None:
        name = f"{group}-{len(running)}"
        running.append(await start_member(programs, name, {**settings, "client.id": name}, group))

    async def settle() -> tuple[int, int]:
        """Return what members that go on give up by themselves, and then by a new plan."""
        await _settled([member for member, _ in running], len(shares))
        changed = moved()
        if replan:
            await replan()
            await _settled([member for member, _ in running], len(shares))
        return changed, moved()

    def moved() -> int:
        """Return what members that go on had to give up since the last call."""
        count = sum(len(member.revoked) for member, _ in running if member not in left)
        for member, _ in running:
            member.revoked.clear()
        return count

    try:
        for _ in range(MEMBERS):
            await start()
        await settle()
        four = _imbalance([member for member, _ in running], shares)
        await start()
        joined, replanned_joined = await settle()
        left.append(running[1][0])
        await running[1][0].stop()
        gone, replanned_gone = await settle()
        after = _imbalance([member for member, _ in running if member not in left], shares)
    finally:
        await asyncio.gather(*(member.stop() for member, _ in running))
        await asyncio.gather(*(task for _, task in running))
    return {
        "assignor": group,
        "largest load / mean": round(four, 2),
        "moved when a member joins": joined,
        "by the plan after the join": replanned_joined,
        "moved when one leaves": gone,
        "by the plan after the leave": replanned_gone,
        "largest load / mean after that": round(after, 2),
    }


def _imbalance(members: Sequence[JavaMember], shares: Sequence[float]) -> float:
    rates = {TopicPartition("t", number): share for number, share in enumerate(shares)}
    bins = [
        [TopicPartition("t", int(name.rpartition("-")[2])) for name in member.owned]
        for member in members
    ]
    return imbalance(bins, rates)


async def _settled(members: Sequence[JavaMember], partitions: int) -> None:
    """Wait until every partition is read, and nothing has changed for `SETTLED_S`."""
    async with asyncio.timeout(DEADLINE_S):
        since_s, before = loop_s(), -1
        while True:
            changes = sum(len(member.lines) for member in members)
            alive = [member for member in members if member.process.returncode is None]
            every = sum(len(member.owned) for member in alive)
            if changes != before or every != partitions:
                since_s, before = loop_s(), changes
            elif loop_s() - since_s > SETTLED_S:
                return
            await asyncio.sleep(0.1)
