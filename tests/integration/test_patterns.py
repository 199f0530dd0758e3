"""A group by pattern, and a monitor that follows it, on a real broker: topics come and go."""

import asyncio
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from aiokafka import AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient
from tests.integration.topics import created

from binwright.consumer.__main__ import consume
from binwright.controller.__main__ import control
from binwright.core import wire
from binwright.core.errors import SettingsError
from binwright.core.messages import Report
from binwright.core.model import Slot
from binwright.core.selection import Selection
from binwright.monitor.__main__ import run
from binwright.shell.broker import client_options
from binwright.shell.bus import KafkaBus
from binwright.shell.letters import INBOX, LANDING_PARTITIONS, METADATA_CONFIG, inbound
from binwright.shell.run import meanwhile
from binwright.shell.settings import KafkaSettings, Settings, load_settings
from binwright.shell.topics import selected_topics

pytestmark = pytest.mark.integration

DEADLINE_S = 120.0
GROUP = "by-pattern"
METRICS = f"{GROUP}.metrics"


@dataclass
class System:
    """A monitor, a controller and a consumer."""

    settings: Settings
    bus: KafkaBus
    reading: set[str] = field(default_factory=set)  # topics, as last reported

    async def listen(self) -> None:
        reader = await self.bus.reader(self.settings.metadata_topic, INBOX, 0)
        async for _, message in inbound(reader):
            if isinstance(message, Report):
                self.reading = {p.topic for p in message.reading}

    async def until_read(self, *topics: str) -> None:
        while self.reading != set(topics):  # noqa: ASYNC110 - the deadline is the test's
            await asyncio.sleep(0.1)

    async def staged(self) -> set[str]:
        """Return the topics of which records are announced."""
        found = set()
        for partition in range(LANDING_PARTITIONS):
            if await self.bus.end(self.settings.landing_topic, partition):
                reader = await self.bus.reader(self.settings.landing_topic, partition, 0)
                records = await reader.read(1.0)
                found |= {wire.decode_staged(record.value).topic for record in records}
                await reader.close()
        return found

    async def measured(self) -> set[str]:
        reader = await self.bus.reader(METRICS, 0, 0)
        found, end = set(), await self.bus.end(METRICS, 0)
        while reader.position < end:
            found |= {wire.decode_measurement(r.value).topic for r in await reader.read(1.0)}
        await reader.close()
        return found


@pytest.fixture
async def system(broker: str, tmp_path: Path) -> AsyncIterator[System]:
    common = {
        "kafka": {"bootstrap_servers": broker},
        "monitor": {"topic": METRICS, "interval_s": 0.5, "window_s": 2},
    }
    settings = load_settings(
        group=GROUP,
        topic_patterns=[f"{GROUP}.*"],
        controller={"fleet": "fixed", "max_slots": 1},
        consumer={"batch_wait_s": 0.5, "drain_timeout_s": 1},
        lake={"path": str(tmp_path), "spark": "sc://127.0.0.1:1"},  # nothing needs to land
        **common,
    )
    async with asyncio.timeout(DEADLINE_S), KafkaBus(settings.kafka) as bus:
        await bus.ensure(settings.metadata_topic, 2, METADATA_CONFIG)
        made = System(settings, bus)
        services = (run(load_settings(**common)), control(settings), consume(settings, Slot(0)))
        async with meanwhile(made.listen(), *services):
            yield made


async def test_a_topic_that_is_created_later_is_read_and_nobody_is_told(system: System) -> None:
    kafka = system.settings.kafka
    old, new = f"{GROUP}-old", f"{GROUP}-new"
    await created(kafka, f"not-{GROUP}", 1)
    await created(kafka, old, 1)
    await system.until_read(old)
    await created(kafka, new, 2)
    async with AIOKafkaProducer(**client_options(kafka)) as producer:
        await producer.send_and_wait(new, b"{}", partition=1)
    await system.until_read(old, new)
    assert system.settings.landed is not None
    assert await selected_topics(kafka, system.settings.landed) == (new, old)  # what is audited
    while new not in await system.staged():  # noqa: ASYNC110 - as above
        await asyncio.sleep(0.2)
    admin = AIOKafkaAdminClient(**client_options(kafka))
    await admin.start()
    try:
        await admin.delete_topics([old])
    finally:
        await admin.close()
    await system.until_read(new)
    # Our own topics fit, too.
    assert await system.measured() == {old, new}


async def test_patterns_that_no_topic_fits_are_told_to_who_asks_for_the_topics(broker: str) -> None:
    kafka = KafkaSettings(bootstrap_servers=broker)
    nothing = Selection(patterns=(re.compile("no-such-.*"), re.compile("nor-.*")))
    with pytest.raises(SettingsError, match=r"no topic at .* fits no-such-\.\*, nor-\.\*"):
        await selected_topics(kafka, nothing)
    named = nothing.including({"orders"})
    assert await selected_topics(kafka, named) == ("orders",)
