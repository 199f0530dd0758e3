"""A person approves a plan for brokers, or ends it."""

import asyncio

import pytest

from binwright.balancer.commands.approve import approve_plan, withdraw_plan
from binwright.balancer.commands.status import plan_lines
from binwright.balancer.decide.proposals import (
    BrokerPlanRecord,
    BrokersEnded,
    BrokersProposed,
    CopiesStarted,
)
from binwright.balancer.plan_topic import PlanTopic
from binwright.protocol.errors import ExternalError, UserError
from binwright.protocol.model import TopicPartition
from binwright.testing.control_topics import FakeControlTopics

pytestmark = pytest.mark.looptime

TOPIC, PARTITION = "binwright.brokers", TopicPartition("orders", 0)
STARTED = CopiesStarted(plan=0, bytes=0, at_ms=0)
OUTDATED = BrokersEnded(plan=0, done=False, reason="no threshold is crossed by now")


async def proposed(bus: FakeControlTopics, *, waits: bool = True) -> PlanTopic:
    topic = PlanTopic(bus, TOPIC)
    message = BrokersProposed(
        group="orders",
        reasons=("disk of broker 1 is 2.00 of the mean",),
        bytes=100,
        before={PARTITION: (1,)},
        after={PARTITION: (2,)},
        waits=waits,
    )
    await topic.publish(message)
    return topic


async def answered(topic: PlanTopic, answer: BrokerPlanRecord) -> None:
    """Do as a controller does when the plan is approved."""
    while (found := topic.proposals.numbered(0)) is not None and not found.approved:
        await topic.follow()
    await topic.publish(answer)


async def test_an_approval_ends_when_a_controller_carries_the_plan_out() -> None:
    bus = FakeControlTopics()
    topic = await proposed(bus)
    async with asyncio.timeout(60), asyncio.TaskGroup() as tasks:
        tasks.create_task(answered(topic, STARTED))
        tasks.create_task(approve_plan(bus, TOPIC, 0, 30))
    found = topic.proposals.numbered(0)
    assert found is not None
    assert (found.approved, found.started) == (True, True)


async def test_a_plan_that_is_out_of_date_is_not_approved() -> None:
    bus = FakeControlTopics()
    answering = asyncio.create_task(answered(await proposed(bus), OUTDATED))
    with pytest.raises(UserError, match="plan 0 is out of date"):
        await approve_plan(bus, TOPIC, 0, 30)
    await answering


async def test_without_a_controller_an_approval_ends_in_time() -> None:
    bus = FakeControlTopics()
    await proposed(bus)
    with pytest.raises(ExternalError, match="no balancer carries out plan 0 after 30 s"):
        await approve_plan(bus, TOPIC, 0, 30)


async def test_another_number_is_refused() -> None:
    bus = FakeControlTopics()
    await proposed(bus)
    with pytest.raises(UserError, match="there is no plan 7"):
        await approve_plan(bus, TOPIC, 7, 30)


async def test_a_plan_that_does_not_wait_is_not_approved() -> None:
    bus = FakeControlTopics()
    await proposed(bus, waits=False)
    with pytest.raises(UserError, match="waits for no approval"):
        await approve_plan(bus, TOPIC, 0, 30)


async def test_without_a_topic_there_is_no_plan_and_none_is_made() -> None:
    bus = FakeControlTopics()
    with pytest.raises(UserError, match="there is no plan 0"):
        await withdraw_plan(bus, TOPIC, 0)
    assert await bus.partitions(TOPIC) == 0


async def test_a_withdrawn_plan_is_over() -> None:
    bus = FakeControlTopics()
    topic = await proposed(bus)
    await withdraw_plan(bus, TOPIC, 0)
    assert (await topic.read()).numbered(0) is None


async def test_status_shows_what_waits_and_what_is_carried_out() -> None:
    topic = await proposed(FakeControlTopics())
    (waiting,) = plan_lines(topic.proposals)
    await topic.publish(STARTED)
    (running,) = plan_lines(topic.proposals)
    text = "1 partitions, 100 bytes; disk of broker 1 is 2.00 of the mean"
    assert waiting == f"plan 0 of the balancer of orders waits: {text}"
    assert running == f"plan 0 of the balancer of orders is carried out: {text}"
