"""Topics with their tables."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.connect.session import SparkSession
from tests.integration.audit.place import Place


@pytest.fixture(scope="module")
def spark(spark_url: str) -> Iterator[Any]:
    session = SparkSession.builder.remote(spark_url).create()
    yield session
    session.stop()


@pytest.fixture
def fresh(broker: str, spark: Any, spark_url: str, lake: Path, request: Any) -> Place:
    """A topic of the test's own, not made yet."""
    name = request.node.name.removeprefix("test_")[:80]
    return Place(broker, spark, spark_url, lake, f"audit.{name}")
