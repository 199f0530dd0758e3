"""One of several controllers leads; when it goes, the next one does."""

import asyncio
from collections.abc import Callable

import pytest
from aiokafka.admin import AIOKafkaAdminClient

from binwright.controller.lead import lead
from binwright.controller.steer import Deposed
from binwright.core.errors import BrokerUnavailable
from binwright.shell.broker import client_options
from binwright.shell.bus import KafkaBus
from binwright.shell.settings import load_settings

pytestmark = pytest.mark.integration


class Candidate:
    """A controller that only notes when it reigns."""

    def __init__(self, broker: str, topic: str) -> None:
        self.reigns, self.reigning = 0, False
        self.end = asyncio.Event()
        self.ends_by: BaseException = Deposed("for the test")
        options = client_options(load_settings(kafka={"bootstrap_servers": broker}).kafka)
        self.task = asyncio.create_task(lead(options, topic, f"{topic}.controllers", self.reign))

    async def reign(self) -> None:
        self.reigns, self.reigning = self.reigns + 1, True
        try:
            await self.end.wait()
            self.end.clear()
            raise self.ends_by
        finally:
            self.reigning = False

    async def leave(self) -> None:
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)


async def until(condition: Callable[[], bool], patience_s: float = 40.0) -> None:
    async with asyncio.timeout(patience_s):
        while not condition():  # noqa: ASYNC110 - the group tells nobody
            await asyncio.sleep(0.05)


async def made(broker: str, topic: str) -> None:
    async with KafkaBus(load_settings(kafka={"bootstrap_servers": broker}).kafka) as bus:
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
    await until(lambda: first.reigning)
    second = Candidate(broker, "lead-two")
    await until(lambda: first.reigning or second.reigning)
    leader, other = (first, second) if first.reigning else (second, first)
    await leader.leave()
    assert not leader.reigning
    await until(lambda: other.reigning)
    await other.leave()


async def test_a_reign_that_is_cut_off_from_within_is_followed_by_another(broker: str) -> None:
    """A member that owns the partition and does not reign would keep everybody else from it."""
    await made(broker, "lead-cut")
    leader = Candidate(broker, "lead-cut")
    leader.ends_by = asyncio.CancelledError()
    await until(lambda: leader.reigning)
    leader.end.set()
    await until(lambda: leader.reigns == 2)
    await leader.leave()


async def test_who_leads_goes_on_when_others_come_and_go(broker: str) -> None:
    """Each new reign would begin with Synchronize, and throw its plan away."""
    await made(broker, "lead-on")
    leader = Candidate(broker, "lead-on")
    await until(lambda: leader.reigning)
    for _ in range(3):
        other = Candidate(broker, "lead-on")
        await members(broker, "lead-on.controllers", 2)
        await other.leave()
        await members(broker, "lead-on.controllers", 1)
    assert leader.reigning
    assert leader.reigns == 1
    await leader.leave()


async def test_who_is_deposed_and_still_chosen_reigns_again(broker: str) -> None:
    """Two that both believe to lead: the later claim wins, and the group decides who goes on."""
    await made(broker, "lead-again")
    only = Candidate(broker, "lead-again")
    await until(lambda: only.reigns == 1)
    only.end.set()
    await until(lambda: only.reigns == 2)
    await only.leave()


async def test_without_a_broker_it_is_told() -> None:
    nobody = Candidate("127.0.0.1:1", "none")
    with pytest.raises(BrokerUnavailable):
        await asyncio.wait_for(nobody.task, 60)
