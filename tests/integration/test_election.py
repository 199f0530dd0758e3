"""One of several controllers leads; when it goes, the next one does."""

import asyncio

import pytest
from aiokafka.admin import AIOKafkaAdminClient
from tests.waiting import until

from binwright.kafka.client import client_options
from binwright.kafka.control_topics import KafkaControlTopics
from binwright.kafka.election import LeadershipLost, run_election
from binwright.protocol.errors import BrokerUnavailable
from binwright.runtime.settings.group import load_settings

pytestmark = pytest.mark.integration


class Candidate:
    """A controller that only records when it leads."""

    def __init__(self, broker: str, topic: str) -> None:
        self.leaderships, self.leading = 0, False
        self.end = asyncio.Event()
        self.ends_by: BaseException = LeadershipLost("for the test")
        options = client_options(load_settings(kafka={"bootstrap_servers": broker}).kafka)
        self.task = asyncio.create_task(
            run_election(options, topic, f"{topic}.controllers", self.lead)
        )

    async def lead(self) -> None:
        self.leaderships, self.leading = self.leaderships + 1, True
        try:
            await self.end.wait()
            self.end.clear()
            raise self.ends_by
        finally:
            self.leading = False

    async def leave(self) -> None:
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)


async def made(broker: str, topic: str) -> None:
    async with KafkaControlTopics(load_settings(kafka={"bootstrap_servers": broker}).kafka) as bus:
        await bus.ensure(topic, 1, {})


async def members(broker: str, group: str, number: int) -> None:
    """Wait until the group has agreed with so many members."""
    admin = AIOKafkaAdminClient(bootstrap_servers=broker)
    await admin.start()
    try:
        async with asyncio.timeout(40):
            while True:
                (answer,) = await admin.describe_consumer_groups([group])
                ((_, _, state, _, _, found, *_),) = answer.groups
                if state == "Stable" and len(found) == number:
                    return
                await asyncio.sleep(0.1)
    finally:
        await admin.close()


async def test_one_leads_and_the_next_takes_over_when_it_leaves(broker: str) -> None:
    await made(broker, "lead-two")
    first = Candidate(broker, "lead-two")
    await until(lambda: first.leading)
    second = Candidate(broker, "lead-two")
    await until(lambda: first.leading or second.leading)
    leader, other = (first, second) if first.leading else (second, first)
    await leader.leave()
    assert not leader.leading
    await until(lambda: other.leading)
    await other.leave()


async def test_a_leadership_that_is_cancelled_from_inside_is_followed_by_another(
    broker: str,
) -> None:
    """A member that owns the partition and does not lead would keep all others from leading."""
    await made(broker, "lead-cut")
    leader = Candidate(broker, "lead-cut")
    leader.ends_by = asyncio.CancelledError()
    await until(lambda: leader.leading)
    leader.end.set()
    await until(lambda: leader.leaderships == 2)
    await leader.leave()


async def test_the_leader_continues_when_other_members_come_and_go(broker: str) -> None:
    """Each new leadership would begin with Synchronize, and discard the plan under way."""
    await made(broker, "lead-on")
    leader = Candidate(broker, "lead-on")
    await until(lambda: leader.leading)
    for _ in range(3):
        other = Candidate(broker, "lead-on")
        await members(broker, "lead-on.controllers", 2)
        await other.leave()
        await members(broker, "lead-on.controllers", 1)
    assert leader.leading
    assert leader.leaderships == 1
    await leader.leave()


async def test_a_leader_that_stepped_down_and_is_still_elected_leads_again(broker: str) -> None:
    """Two that both believe to lead: the later claim wins, and the group decides who goes on."""
    await made(broker, "lead-again")
    only = Candidate(broker, "lead-again")
    await until(lambda: only.leaderships == 1)
    only.end.set()
    await until(lambda: only.leaderships == 2)
    await only.leave()


async def test_without_a_broker_it_is_reported() -> None:
    nothing_leads = Candidate("127.0.0.1:1", "none")
    with pytest.raises(BrokerUnavailable):
        await asyncio.wait_for(nothing_leads.task, 60)
