"""Control topics on a broker, each named by its test."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from tests.integration.control_topics.broker_helpers import DEADLINE_S, settings

from binwright.kafka.control_topics import KafkaControlTopics


@pytest.fixture
async def bus(broker: str) -> AsyncIterator[KafkaControlTopics]:
    async with asyncio.timeout(DEADLINE_S), KafkaControlTopics(settings(broker)) as opened:
        yield opened


@pytest.fixture
def topic(request: pytest.FixtureRequest) -> str:
    return str(request.node.name)
