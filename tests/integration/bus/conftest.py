"""A bus, and topics named by their tests."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from tests.integration.bus.broker_helpers import DEADLINE_S, settings

from binwright.kafka.bus import KafkaBus


@pytest.fixture
async def bus(broker: str) -> AsyncIterator[KafkaBus]:
    async with asyncio.timeout(DEADLINE_S), KafkaBus(settings(broker)) as opened:
        yield opened


@pytest.fixture
def topic(request: pytest.FixtureRequest) -> str:
    return str(request.node.name)
