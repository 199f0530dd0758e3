"""Topics named by their tests."""

import re
from collections.abc import AsyncIterator

import pytest
from tests.integration.intake.hands import (
    Hands,
    ready,
)


@pytest.fixture
async def hands(broker: str, request: pytest.FixtureRequest) -> AsyncIterator[Hands]:
    """Two partitions of a topic named by the test."""
    async with ready(broker, re.sub(r"\W", "-", request.node.name)) as hands:
        yield hands
