"""A group by pattern, and a monitor that follows it, on a real broker: topics come and go."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from aiokafka import AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient
from tests.integration.topics import create_topic

from binwright.consumer.__main__ import consume
from binwright.controller.__main__ import control
from binwright.controller.settings import ControllerProgramSettings
from binwright.kafka.client import client_options
from binwright.kafka.control_records import (
    CONTROLLER_PARTITION,
    LANDING_PARTITIONS,
    METADATA_CONFIG,
    messages,
)
from binwright.kafka.control_topics import KafkaControlTopics
from binwright.kafka.topics import selected_topics
from binwright.monitor.__main__ import run
from binwright.protocol.errors import SettingsError
from binwright.protocol.landing import decode_staged
from binwright.protocol.metadata import Report, decode_inbound
from binwright.protocol.metrics import decode_measurement
from binwright.protocol.model import Slot
from binwright.protocol.patterns import compile_pattern
from binwright.protocol.selection import Selection
from binwright.runtime.run import background_tasks
from binwright.runtime.settings.kafka import KafkaSettings
from binwright.runtime.settings.loading import load
from binwright.runtime.settings.programs import TopicSettings

pytestmark = pytest.mark.integration

DEADLINE_S = 120.0
GROUP = "by-pattern"
METRICS = f"{GROUP}.metrics"


@dataclass
class System:
    """A monitor, a controller and a consumer."""

    settings: ControllerProgramSettings
    bus: KafkaControlTopics
    reading: set[str] = field(default_factory=set)  # topics, as last reported

    async def listen(self) -> None:
        reader = await self.bus.reader(self.settings.metadata_topic, CONTROLLER_PARTITION, 0)
        async for _, message in messages(reader, decode_inbound):
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
                found |= {decode_staged(record.value).topic for record in records}
                await reader.close()
        return found

    async def measured(self) -> set[str]:
        reader = await self.bus.reader(METRICS, 0, 0)
        found, end = set(), await self.bus.end(METRICS, 0)
        while reader.position < end:
            found |= {decode_measurement(r.value).topic for r in await reader.read(1.0)}
        await reader.close()
        return found


@pytest.fixture
async def system(broker: str, tmp_path: Path) -> AsyncIterator[System]:
    common = {
        "kafka": {"bootstrap_servers": broker},
        "monitor": {"topic": METRICS, "interval_s": 0.5, "window_s": 2},
    }
    settings = load(
        ControllerProgramSettings,
        group=GROUP,
        topic_patterns=[f"{GROUP}.*"],
        controller={"fleet": "fixed", "max_slots": 1},
        consumer={"batch_wait_s": 0.5, "drain_timeout_s": 1},
        lake={"path": str(tmp_path), "spark": "sc://127.0.0.1:1"},  # nothing needs to land
        **common,
    )
    async with asyncio.timeout(DEADLINE_S), KafkaControlTopics(settings.kafka) as bus:
        await bus.ensure(settings.metadata_topic, 1, METADATA_CONFIG)
        made = System(settings, bus)
        services = (
            run(load(TopicSettings, **common)),
            control(settings),
            consume(settings, Slot(0)),
        )
        async with background_tasks(made.listen(), *services):
            yield made


async def test_a_topic_that_is_created_later_is_read_without_new_settings(system: System) -> None:
    kafka = system.settings.kafka
    old, new = f"{GROUP}-old", f"{GROUP}-new"
    await create_topic(kafka, f"not-{GROUP}", 1)
    await create_topic(kafka, old, 1)
    await system.until_read(old)
    await create_topic(kafka, new, 2)
    async with AIOKafkaProducer(**client_options(kafka)) as producer:
        await producer.send_and_wait(new, b"{}", partition=1)
    await system.until_read(old, new)
    assert system.settings.landed_topics is not None
    assert await selected_topics(kafka, system.settings.landed_topics) == (
        new,
        old,
    )  # what is audited
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


async def test_patterns_that_match_no_topic_are_an_error(broker: str) -> None:
    kafka = KafkaSettings(bootstrap_servers=broker)
    nothing = Selection(patterns=(compile_pattern("no-such-.*"), compile_pattern("nor-.*")))
    with pytest.raises(SettingsError, match=r"no topic at .* matches no-such-\.\*, nor-\.\*"):
        await selected_topics(kafka, nothing)
    named = nothing.including({"orders"})
    assert await selected_topics(kafka, named) == ("orders",)
