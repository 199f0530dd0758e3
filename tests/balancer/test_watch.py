"""The watch that proposes plans for brokers."""

import asyncio
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from structlog.testing import capture_logs

from binwright.balancer.cluster_model import Snapshot
from binwright.balancer.decide.constraints import UnmetConstraint
from binwright.balancer.decide.model import Cluster
from binwright.balancer.decide.planner import plan
from binwright.balancer.decide.plans import Goal, Infeasible, PlacementPlan, PlanOutcome
from binwright.balancer.decide.thresholds import Thresholds
from binwright.balancer.description import ClusterDescription
from binwright.balancer.ports import ClusterState, Disk, PartitionState
from binwright.balancer.watch import BrokerWatch, Observing
from binwright.protocol.errors import BrokerUnavailable, ReassignmentRefused
from binwright.protocol.model import BytesPerSecond, Rates, TopicPartition

THRESHOLDS = Thresholds(imbalance=1.3, within_days=7.0)
ORDERS = [TopicPartition("orders", number) for number in range(4)]
EVEN, UNEVEN = (1, 2, 1, 2), (1, 1, 1, 1)


def snapshot(brokers: tuple[int, ...], rate: float = 1.0) -> Snapshot:
    """Return brokers 1 and 2 of 1,000 bytes, and four partitions of 100 bytes on these of them."""
    placed = dict(zip(ORDERS, brokers, strict=True))
    return Snapshot(
        state=ClusterState(
            {1: None, 2: None},
            {
                p: PartitionState(broker, (broker,), frozenset({broker}))
                for p, broker in placed.items()
            },
        ),
        disks={
            broker: Disk(1_000, 500, {p: 100 for p, on in placed.items() if on == broker})
            for broker in (1, 2)
        },
        configs={},
        rates={p: BytesPerSecond(rate) for p in ORDERS},
    )


def watch(
    read: Callable[[], Snapshot], planner: Callable[[Cluster, Goal], PlanOutcome]
) -> BrokerWatch:
    async def reading() -> Snapshot:
        return read()

    return BrokerWatch(reading, planner, ClusterDescription(), THRESHOLDS, 60.0, Observing())


async def proposals(watching: BrokerWatch, seconds: float) -> list[dict[str, object]]:
    with capture_logs() as logs:
        running = asyncio.create_task(watching.run())
        await asyncio.sleep(seconds)
        running.cancel()
        await asyncio.wait({running})
    return [dict(each) for each in logs]


@pytest.mark.looptime
async def test_an_uneven_cluster_is_proposed_once() -> None:
    watching = watch(lambda: snapshot(UNEVEN), plan)
    (proposed,) = await proposals(watching, 500)
    assert proposed["event"] == "balance.proposed"
    assert proposed["partitions"]
    assert {each.name: each.value for each in watching.samples()} == {
        "binwright_brokers_dead_log_directories": 0,
        "binwright_brokers_imbalance_ratio": 2.0,
        "binwright_brokers_proposed_bytes": proposed["bytes"],
    }


@pytest.mark.looptime
async def test_a_proposal_goes_when_the_cluster_is_even() -> None:
    states = [snapshot(UNEVEN), snapshot(EVEN)]
    watching = watch(lambda: states.pop(0) if len(states) > 1 else states[0], plan)
    await proposals(watching, 100)
    assert "binwright_brokers_proposed_bytes" not in {each.name for each in watching.samples()}


@pytest.mark.looptime
async def test_a_cluster_that_cannot_be_read_is_read_again() -> None:
    calls = []

    def read() -> Snapshot:
        calls.append(1)
        if len(calls) < 3:
            raise BrokerUnavailable("away")
        return snapshot(UNEVEN)

    events = [each["event"] for each in await proposals(watch(read, plan), 500)]
    assert events == ["balance.failed", "balance.proposed"]


@pytest.mark.looptime
async def test_without_the_right_to_describe_it_logs_that_once_and_rests() -> None:
    calls = []

    def read() -> Snapshot:
        calls.append(asyncio.get_running_loop().time())
        raise ReassignmentRefused("grant DESCRIBE on the cluster")

    logs = await proposals(watch(read, plan), 8_000)
    assert [each["event"] for each in logs] == ["balance.refused"]
    assert len(calls) == 3


@pytest.mark.looptime
async def test_the_same_thresholds_are_planned_for_once_an_hour() -> None:
    planned = []

    def planner(cluster: Cluster, goal: Goal) -> PlanOutcome:
        planned.append(cluster)
        return plan(cluster, goal)

    await proposals(watch(lambda: snapshot(UNEVEN), planner), 3_900)
    assert len(planned) == 2


@pytest.mark.looptime
async def test_a_plan_that_moves_nothing_is_not_proposed() -> None:
    def planner(cluster: Cluster, goal: Goal) -> PlanOutcome:
        found = plan(cluster, goal)
        assert isinstance(found, PlacementPlan)
        return replace(found, moves=())

    assert await proposals(watch(lambda: snapshot(UNEVEN), planner), 100) == []


@pytest.mark.looptime
async def test_that_there_is_no_placement_is_logged() -> None:
    def planner(_: Cluster, goal: Goal) -> PlanOutcome:
        return Infeasible(goal, (UnmetConstraint("pin", "broker 9 is down"),), proved=True)

    (logged,) = await proposals(watch(lambda: snapshot(UNEVEN), planner), 100)
    assert (logged["event"], logged["reason"]) == ("balance.failed", "pin: broker 9 is down")


@pytest.mark.looptime
async def test_a_fault_of_its_own_does_not_end_it() -> None:
    faults = [ValueError("not a number")]

    def read() -> Snapshot:
        if faults:
            raise faults.pop()
        return snapshot(UNEVEN)

    logs = await proposals(watch(read, plan), 4_000)
    assert [each["event"] for each in logs] == ["balancer.crashed", "balance.proposed"]


class ThreadsOfReaders(dict[TopicPartition, BytesPerSecond]):
    """Rates that know which threads asked for one."""

    def __init__(self, rates: Rates) -> None:
        super().__init__(rates)
        self.threads: set[threading.Thread] = set()

    def get(self, *arguments: Any) -> Any:
        self.threads.add(threading.current_thread())
        return super().get(*arguments)


@pytest.mark.looptime
async def test_the_model_of_a_cluster_is_made_beside_the_loop() -> None:
    """It takes a second for 100,000 replicas, and heartbeats to Kafka are on the loop."""
    rates = ThreadsOfReaders(snapshot(EVEN).rates)
    await proposals(watch(lambda: replace(snapshot(EVEN), rates=rates), plan), 10)
    assert rates.threads
    assert threading.main_thread() not in rates.threads


@pytest.mark.looptime
async def test_a_dead_directory_is_a_metric_and_the_reason_why_nothing_is_proposed() -> None:
    seen = snapshot(UNEVEN)
    disks = {**seen.disks, 1: replace(seen.disks[1], dead=("/data/b",), sizes={})}
    lost = replace(seen, disks=disks, rates=snapshot(UNEVEN, 100.0).rates)
    watching = watch(lambda: lost, plan)
    (failed,) = await proposals(watching, 1)
    assert (failed["event"], "/data/b" in str(failed["reason"])) == ("balance.failed", True)
    metric = {
        one.labels["broker"]: one.value
        for one in watching.samples()
        if one.name == "binwright_brokers_dead_log_directories"
    }
    assert metric == {"1": 1, "2": 0}
