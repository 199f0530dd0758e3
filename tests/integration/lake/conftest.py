"""A lake on the real Spark, and somebody else who looks at its tables."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from pyspark.sql.connect.client import DefaultChannelBuilder
from pyspark.sql.connect.session import SparkSession
from tests.integration.lake.tables import LEASE, TABLE, new_lake

from binwright.consumer.land.lake.spark_lake import SparkLake
from binwright.consumer.stage.file_staging import FileStaging


@pytest.fixture
async def tables(lake: Path, spark_url: str) -> AsyncIterator[SparkLake]:
    """The lake under test; its table of `orders` is open."""
    async with new_lake(lake, spark_url) as tables:
        await tables.open(TABLE)
        yield tables


@pytest.fixture
async def staging(lake: Path) -> AsyncIterator[FileStaging]:
    """Where the tests stage what the tables take, under one lease."""
    async with FileStaging(str(lake / "_staging")) as staging:
        for topic in ("orders", "clicks"):
            await staging.write_lease(topic, LEASE)
        yield staging


@pytest.fixture(scope="module")
def spark(spark_url: str) -> Iterator[SparkSession]:
    """Somebody else who looks at the tables."""
    session = SparkSession(DefaultChannelBuilder(spark_url))
    yield session
    session.client.release_session()
    session.client.close()
