"""Two real controllers: the leader dies, or freezes and wakes; the other one rules."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from binwright.kafka.control_records import (
    CONTROLLER_PARTITION,
    METADATA_CONFIG,
    METRICS_CONFIG,
    messages,
)
from binwright.kafka.control_topics import KafkaControlTopics
from binwright.local.child import Child, Command
from binwright.protocol.metadata import Claim, decode_inbound
from binwright.runtime.settings.group import load_settings
from binwright.runtime.settings.loading import settings_environment

pytestmark = pytest.mark.integration

PATIENCE_S = 60.0  # a session lasts 6 s; the rest is for a machine that is busy


class Controller:
    """A controller process of a group whose consumers somebody else starts."""

    def __init__(self, broker: str, group: str, directory: Path) -> None:
        settings = load_settings(
            group=group,
            topics=["orders"],
            kafka={"bootstrap_servers": broker},
            controller={"fleet": "fixed", "max_slots": 2},
            monitor={"topic": f"{group}.metrics"},
        )
        self.log = directory / "controller.log"
        self.child = Child(
            Command(
                title="a controller",
                argv=(sys.executable, "-m", "binwright.controller"),
                directory=directory,
                log=self.log,
                environment={**os.environ, **settings_environment(settings)},
            )
        )

    def sent(self, event: str) -> int:
        return self.log.read_text().count(event) if self.log.exists() else 0

    def signal(self, number: signal.Signals) -> None:
        os.kill(self.child.pid, number)


class Pair:
    """Two controllers of one group, and what stands in its metadata partition 0."""

    def __init__(self, broker: str, group: str, directory: Path) -> None:
        self.bus = KafkaControlTopics(load_settings(kafka={"bootstrap_servers": broker}).kafka)
        self.topic, self.claims = f"{group}.metadata", 0
        self.both = [Controller(broker, group, directory / name) for name in ("one", "two")]
        self.listening: asyncio.Task[None] | None = None

    async def begin(self) -> None:
        await self.until(lambda: sum(c.sent("controller.leading") for c in self.both) == 1)
        self.listening = asyncio.create_task(self._listen())
        await self.until(lambda: self.claims == 1)
        await self.until(lambda: all(c.sent("controller.waiting") for c in self.both))

    async def _listen(self) -> None:
        await self.bus.ensure(self.topic, 1, METADATA_CONFIG)
        reader = await self.bus.reader(self.topic, CONTROLLER_PARTITION, 0)
        try:
            async for _, message in messages(reader, decode_inbound):
                self.claims += isinstance(message, Claim)
        finally:
            await reader.close()

    def leader(self) -> tuple[Controller, Controller]:
        """Return who leads, and the other."""
        one, two = self.both
        return (one, two) if one.sent("controller.leading") else (two, one)

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while not condition():  # noqa: ASYNC110 - a log tells nobody
                await asyncio.sleep(0.05)


@pytest.fixture
async def pair(broker: str, tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[Pair]:
    group = f"failover-{request.node.name.replace('_', '-')}"
    made = Pair(broker, group, tmp_path)
    async with made.bus as bus:
        await bus.ensure(f"{group}.metrics", 1, METRICS_CONFIG)
        try:
            await made.begin()
            yield made
        finally:
            if made.listening:
                made.listening.cancel()
                await asyncio.gather(made.listening, return_exceptions=True)
            for controller in made.both:
                await controller.child.kill()


async def test_a_standby_leads_when_the_leader_is_killed(pair: Pair) -> None:
    leader, standby = pair.leader()
    leader.signal(signal.SIGKILL)
    await pair.until(lambda: pair.claims == 2)
    assert standby.sent("controller.leading") == 1
    await pair.until(lambda: standby.sent("group.synchronized") == 1)


async def test_a_leader_that_froze_steps_down_when_it_wakes(pair: Pair) -> None:
    """Both believe to lead then; the log of partition 0 tells them who does."""
    leader, standby = pair.leader()
    await pair.until(lambda: leader.sent("group.synchronized") == 1)
    leader.signal(signal.SIGSTOP)
    await pair.until(lambda: pair.claims == 2)
    assert standby.sent("controller.leading") == 1
    leader.signal(signal.SIGCONT)
    await pair.until(lambda: leader.sent("controller.stepped_down") == 1)
    await pair.until(lambda: leader.sent("controller.waiting") == 2)
    assert pair.claims == 2
    assert standby.child.returncode is None
