"""Plans for brokers that are approved, or carried out at once; on fakes and virtual time."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from copy import deepcopy
from itertools import pairwise

import pytest
from structlog.testing import capture_logs
from tests.balancer.fake_brokers import FakeBrokers

from binwright.balancer.acting import Acting
from binwright.balancer.cluster_model import Snapshot
from binwright.balancer.decide.model import Cluster
from binwright.balancer.decide.planner import plan
from binwright.balancer.decide.plans import Balance, Goal, Infeasible, PlanOutcome
from binwright.balancer.decide.proposals import (
    BrokerMode,
    BrokerPlan,
    BrokerPlanRecord,
    BrokersApproved,
    BrokersEnded,
    BrokersProposed,
    CopiesStarted,
    decode_record,
)
from binwright.balancer.decide.reassignment import CopyLimits
from binwright.balancer.decide.thresholds import Thresholds
from binwright.balancer.description import ClusterDescription
from binwright.balancer.plan_topic import PlanTopic
from binwright.balancer.ports import Probe, Targets
from binwright.balancer.watch import BrokerWatch
from binwright.protocol.errors import BrokerUnavailable, ReassignmentRefused
from binwright.protocol.model import BytesPerSecond, TopicPartition
from binwright.testing.control_topics import FakeControlTopics

pytestmark = pytest.mark.looptime

TOPIC, GROUP = "binwright.brokers", "orders"
SIZE = 3_000
PARTITIONS = [TopicPartition("orders", number) for number in range(8)]
HOUR_S, DEADLINE_S = 3_600.0, 40_000.0


def uneven() -> FakeBrokers:
    """Return eight partitions, all on broker 1 of two."""
    return FakeBrokers(
        dict.fromkeys(PARTITIONS, (1,)), racks={1: None, 2: None}, partition_bytes=SIZE
    )


def held(fake: FakeBrokers, broker: int) -> int:
    return sum(broker in state.replicas for state in fake.partitions.values())


def now_ms() -> int:
    return round(1000 * asyncio.get_running_loop().time())


def watch(
    fake: FakeBrokers,
    bus: FakeControlTopics,
    mode: BrokerMode,
    limits: CopyLimits | None = None,
    find: Callable[[Cluster, Goal], PlanOutcome] = plan,
) -> BrokerWatch:
    """Return the watch of one leader."""

    async def read() -> Snapshot:
        rates = dict.fromkeys(PARTITIONS, BytesPerSecond(1.0))
        return Snapshot(await fake.state(), await fake.disks(), {}, rates)

    @asynccontextmanager
    async def connect() -> AsyncIterator[FakeBrokers]:
        yield fake

    @asynccontextmanager
    async def no_probe(_: Targets) -> AsyncIterator[Probe | None]:
        yield None

    reaction = Acting(
        PlanTopic(bus, TOPIC),
        connect,
        group=GROUP,
        mode=mode,
        limits=limits or CopyLimits(rate=1_000, paused_rate=1_000),
        probe=no_probe,
        now_ms=now_ms,
    )
    thresholds = Thresholds(imbalance=1.3, within_days=7.0)
    return BrokerWatch(read, find, ClusterDescription(), thresholds, 300.0, reaction)


@asynccontextmanager
async def running(watching: BrokerWatch) -> AsyncIterator[None]:
    task = asyncio.create_task(watching.run())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait({task})


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(DEADLINE_S):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.5)


def records(bus: FakeControlTopics) -> list[BrokerPlanRecord]:
    return [decode_record(record.value) for record in bus.records(TOPIC)]


def of_kind(bus: FakeControlTopics, kind: type) -> int:
    return sum(isinstance(each, kind) for each in records(bus)) if TOPIC in bus.configs else 0


async def waiting(bus: FakeControlTopics) -> BrokerPlan:
    """Return the plan that waits, as soon as there is one."""
    await until(lambda: of_kind(bus, BrokersProposed) > 0)
    (found,) = (await PlanTopic(bus, TOPIC).read()).by_group.values()
    return found


async def approve(bus: FakeControlTopics, number: int) -> None:
    await PlanTopic(bus, TOPIC).publish(BrokersApproved(plan=number, by="ann"))


async def test_a_plan_that_waits_moves_nothing_and_keeps_its_number() -> None:
    fake, bus = uneven(), FakeControlTopics()
    async with running(watch(fake, bus, "approve")):
        await waiting(bus)
        await asyncio.sleep(2_000)
    assert (fake.calls, len(records(bus))) == ([], 1)


async def test_an_approved_plan_is_carried_out_at_once() -> None:
    fake, bus = uneven(), FakeControlTopics()
    async with running(watch(fake, bus, "approve")):
        number = (await waiting(bus)).number
        began = asyncio.get_running_loop().time()
        await approve(bus, number)
        await until(lambda: of_kind(bus, CopiesStarted) > 0)
        assert asyncio.get_running_loop().time() - began < 10
        await until(lambda: of_kind(bus, BrokersEnded) > 0)
    assert held(fake, 2) >= 3
    assert fake.throttled() == []
    assert records(bus)[-1] == BrokersEnded(plan=number, done=True, reason="all is in place")


async def test_the_approval_of_another_number_moves_nothing() -> None:
    fake, bus = uneven(), FakeControlTopics()
    async with running(watch(fake, bus, "approve")):
        await approve(bus, (await waiting(bus)).number + 7)
        await asyncio.sleep(1_000)
    assert fake.calls == []


async def test_in_mode_act_a_plan_is_carried_out_without_approval() -> None:
    fake, bus = uneven(), FakeControlTopics()
    async with running(watch(fake, bus, "act")):
        await until(lambda: of_kind(bus, BrokersEnded) > 0)
    assert held(fake, 2) >= 3


async def test_no_hour_begins_to_copy_more_than_the_budget_also_under_another_leader() -> None:
    fake, bus = uneven(), FakeControlTopics()
    limits = CopyLimits(rate=1_000, paused_rate=1_000, hourly_bytes=SIZE)
    async with running(watch(fake, bus, "act", limits)):
        await until(lambda: held(fake, 2) == 1 and not fake.throttled())
    began = asyncio.get_running_loop().time()
    async with running(watch(fake, bus, "act", limits)):
        await until(lambda: of_kind(bus, BrokersEnded) > 0)
    assert asyncio.get_running_loop().time() - began > HOUR_S
    copies = [each for each in records(bus) if isinstance(each, CopiesStarted) and each.bytes]
    starts = [each.at_ms for each in copies]
    assert all(b - a >= 1000 * HOUR_S for a, b in pairwise(starts))
    assert len(copies) >= 3


async def test_a_leader_that_is_stopped_takes_back_and_the_next_one_continues() -> None:
    fake, bus = uneven(), FakeControlTopics()
    slow = CopyLimits(rate=10, paused_rate=10)
    async with running(watch(fake, bus, "approve", slow)):
        await approve(bus, (await waiting(bus)).number)
        await until(lambda: "reassign" in fake.calls)
        await asyncio.sleep(5)
    assert fake.throttled() == []
    assert (await fake.state()).reassignments == {}
    async with running(watch(fake, bus, "approve")):
        await until(lambda: of_kind(bus, BrokersEnded) > 0)
    assert held(fake, 2) >= 3
    assert of_kind(bus, BrokersProposed) == 1


async def test_a_plan_that_a_person_withdraws_is_stopped_and_taken_back() -> None:
    fake, bus = uneven(), FakeControlTopics()
    slow = CopyLimits(rate=10, paused_rate=10)
    async with running(watch(fake, bus, "act", slow)):
        await until(lambda: "reassign" in fake.calls)
        proposal = await waiting(bus)
        await PlanTopic(bus, TOPIC).end(proposal, done=False, reason="withdrawn by ann")
        await until(lambda: not fake.throttled())
        assert (await fake.state()).reassignments == {}
        count = len(fake.calls)
        await asyncio.sleep(1_000)
        assert len(fake.calls) == count


async def test_a_leader_that_is_stopped_while_it_takes_back_does_so_to_the_end() -> None:
    fake, bus = uneven(), FakeControlTopics()
    with capture_logs() as logs:
        async with running(watch(fake, bus, "act", CopyLimits(rate=10, paused_rate=10))):
            await until(lambda: "reassign" in fake.calls)
            await PlanTopic(bus, TOPIC).end(await waiting(bus), done=False, reason="by ann")
            async with asyncio.timeout(DEADLINE_S):
                while "reassignment.stopped" not in [each["event"] for each in logs]:  # noqa: ASYNC110
                    await asyncio.sleep(0)  # no later: it takes back now
        assert fake.throttled() == []
        assert (await fake.state()).reassignments == {}


async def test_a_plan_that_is_out_of_date_is_withdrawn() -> None:
    fake, bus = uneven(), FakeControlTopics()
    async with running(watch(fake, bus, "approve")):
        proposal = await waiting(bus)
        moved = dict.fromkeys(proposal.proposed.before, (2,))
        moved |= dict.fromkeys(PARTITIONS[: 4 - len(moved)], (2,))
        await fake.reassign(moved)
        await until(lambda: of_kind(bus, BrokersEnded) > 0)
    (ended,) = (each for each in records(bus) if isinstance(each, BrokersEnded))
    assert (ended.done, ended.reason) == (False, "no threshold is crossed by now")


async def test_a_plan_of_another_mode_is_withdrawn_and_another_proposed() -> None:
    fake, bus = uneven(), FakeControlTopics()
    async with running(watch(fake, bus, "approve")):
        await waiting(bus)
    async with running(watch(fake, bus, "act")):
        await until(lambda: held(fake, 2) >= 3)
    first, ended, second, *_ = records(bus)
    assert isinstance(first, BrokersProposed)
    assert isinstance(second, BrokersProposed)
    assert (first.waits, second.waits) == (True, False)
    assert isinstance(ended, BrokersEnded)


async def test_what_a_killed_leader_has_under_way_is_taken_back_when_its_plan_is_withdrawn() -> (
    None
):
    fake, bus = uneven(), FakeControlTopics()
    async with running(watch(fake, bus, "act", CopyLimits(rate=10, paused_rate=10))):
        await until(lambda: "reassign" in fake.calls)
        killed = deepcopy(fake)  # as if this leader did nothing any more
    assert killed.throttled()
    async with running(watch(killed, bus, "approve")):
        await until(lambda: of_kind(bus, BrokersProposed) == 2)
    assert killed.throttled() == []
    assert (await killed.state()).reassignments == {}


async def test_a_plan_that_cannot_be_taken_back_is_not_over_and_the_next_look_tries_again() -> None:
    fake, bus = uneven(), FakeControlTopics()
    async with running(watch(fake, bus, "act", CopyLimits(rate=10, paused_rate=10))):
        await until(lambda: "reassign" in fake.calls)
        killed = deepcopy(fake)

    async def refuse(_: object) -> None:
        raise BrokerUnavailable("no controller")

    allowed, killed.set_configs = killed.set_configs, refuse  # type: ignore[method-assign, assignment]
    with capture_logs() as logs:
        async with running(watch(killed, bus, "approve")):
            await until(lambda: "balance.failed" in [each["event"] for each in logs])
            assert of_kind(bus, BrokersEnded) == 0
            killed.set_configs = allowed  # type: ignore[method-assign]
            await until(lambda: of_kind(bus, BrokersEnded) == 1)
    assert killed.throttled() == []


async def test_a_refusal_of_kafka_is_logged_and_the_plan_is_continued_after_a_rest() -> None:
    fake, bus = uneven(), FakeControlTopics()
    started = False

    async def refuse(_: object) -> None:
        nonlocal started
        started = True
        raise ReassignmentRefused("grant ALTER on the cluster")

    allowed, fake.reassign = fake.reassign, refuse  # type: ignore[method-assign, assignment]
    with capture_logs() as logs:
        async with running(watch(fake, bus, "act")):
            await until(lambda: started)
            fake.reassign = allowed  # type: ignore[method-assign]
            await until(lambda: held(fake, 2) >= 3)
    refused = [each["reason"] for each in logs if each["event"] == "balance.refused"]
    assert refused == ["grant ALTER on the cluster"]


ONE_ALONE = BrokersProposed(
    group=GROUP,
    reasons=("as eve wants it",),
    bytes=SIZE,
    before={PARTITIONS[7]: (1,)},
    after={PARTITIONS[7]: (2,)},
    waits=True,
)
"""It is safe and helps; a planner moves more."""


@pytest.mark.parametrize("started", [False, True])
async def test_a_plan_that_no_planner_finds_is_refused_although_it_is_approved(
    started: bool,
) -> None:
    fake, bus = uneven(), FakeControlTopics()
    topic = PlanTopic(bus, TOPIC)
    number = await topic.publish(ONE_ALONE)
    await approve(bus, number)
    if started:
        await topic.publish(CopiesStarted(plan=number, bytes=0, at_ms=0))
    async with running(watch(fake, bus, "approve")):
        await until(lambda: of_kind(bus, BrokersProposed) == 2)
        await asyncio.sleep(1_000)
    (ended,) = (each for each in records(bus) if isinstance(each, BrokersEnded))
    assert (ended.plan, ended.done) == (number, False)
    assert ended.reason == "the planner of this leader finds a better one"
    assert of_kind(bus, CopiesStarted) == int(started), "the plan that replaces it waits"


async def test_a_plan_of_an_earlier_leader_is_carried_out_once_it_is_approved() -> None:
    fake, bus = uneven(), FakeControlTopics()
    async with running(watch(fake, bus, "approve")):
        number = (await waiting(bus)).number
    async with running(watch(fake, bus, "approve")):
        await asyncio.sleep(1_000)
        await approve(bus, number)
        await until(lambda: of_kind(bus, BrokersEnded) > 0)
    assert records(bus)[-1] == BrokersEnded(plan=number, done=True, reason="all is in place")


async def test_a_leader_without_a_plan_of_its_own_refuses_those_of_others() -> None:
    fake, bus = uneven(), FakeControlTopics()
    async with running(watch(fake, bus, "approve")):
        number = (await waiting(bus)).number

    def no_plan(*_: object) -> Infeasible:
        return Infeasible(Balance(), (), proved=True)

    async with running(watch(fake, bus, "approve", find=no_plan)):
        await approve(bus, number)
        await until(lambda: of_kind(bus, BrokersEnded) > 0)
    ended = records(bus)[-1]
    assert isinstance(ended, BrokersEnded)
    assert ended.reason.startswith("the planner of this leader finds no plan")
    assert fake.calls == []


async def test_metrics_have_what_is_proposed_and_what_is_left() -> None:
    fake, bus = uneven(), FakeControlTopics()
    watching = watch(fake, bus, "act", CopyLimits(rate=10, paused_rate=10))
    async with running(watching):
        await until(lambda: "reassign" in fake.calls)
        found = {each.name: each.value for each in watching.samples()}
    assert found["binwright_brokers_left_partitions"] >= 3
    assert found["binwright_brokers_proposed_bytes"] >= 3 * SIZE
    assert "binwright_brokers_left_partitions" not in {each.name for each in watching.samples()}
