"""Topics named by their tests."""

import re
from collections.abc import AsyncIterator

import pytest
from tests.integration.intake.data_topic import DataTopic, new_data_topic


@pytest.fixture
async def data_topic(broker: str, request: pytest.FixtureRequest) -> AsyncIterator[DataTopic]:
    """Two partitions of a topic named by the test."""
    async with new_data_topic(broker, re.sub(r"\W", "-", request.node.name)) as data_topic:
        yield data_topic
