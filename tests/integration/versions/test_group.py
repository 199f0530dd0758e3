"""A group of the services on other servers than the embedded ones: each record lands once."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from tests.deploy.upgrade.group import CONSUMERS, RollingGroup, rolling_group
from tests.deploy.upgrade.versions import Version, install, unpack_present
from tests.integration.examination import examined
from tests.integration.versions.servers import KAFKAS, SPARKS, kafka_jars, named, spark_jars

from binwright.local.kafka import run_broker
from binwright.local.spark import TOKEN_VARIABLE, run_spark

pytestmark = pytest.mark.integration

DEADLINE_S = 600.0
JAR = "its binwright-landing.jar is for Delta 4.4.0"
COLUMNS = "id BIGINT, customer STRING, amount DOUBLE, note STRING"


@pytest.fixture(scope="session")
def present(tmp_path_factory: pytest.TempPathFactory) -> Version:
    """This checkout, as it is."""
    return install(unpack_present(tmp_path_factory.mktemp("present") / "tree"), "present")


@pytest.fixture
async def group(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[RollingGroup]:
    """A group on the servers that the environment names; where it names none, on the oldest."""
    kafka, spark = named() if any(named()) else (KAFKAS[0], SPARKS[0])
    jars, of_spark = await kafka_jars(kafka), await spark_jars(spark)
    async with AsyncExitStack() as stack:
        broker = await stack.enter_async_context(run_broker(tmp_path / "kafka", kafka=jars))
        server = await stack.enter_async_context(run_spark(tmp_path / "spark", spark=of_spark))
        monkeypatch.setenv(TOKEN_VARIABLE, server.token_file.read_text())
        group = rolling_group(
            "versions", tmp_path, broker.bootstrap_servers, server.address, COLUMNS
        )
        yield await stack.enter_async_context(group)


async def test_it_lands_each_record_once_while_services_are_replaced(
    group: RollingGroup, present: Version
) -> None:
    async with asyncio.timeout(DEADLINE_S):
        await group.start(present)
        await group.roll(present, ("controller", CONSUMERS[0]))  # it hands over, and takes over
        result = await group.audit()
    assert result.clean, result.faults()
    assert result.rows == group.rows() > 0
    table = await group.table()
    assert table is not None
    assert table.report.bad == 0

    kafka, lake = group.settings.kafka, group.settings.lake
    report = await examined(kafka, Path(lake.path), str(lake.spark), topics=[group.topic])
    assert report.code == 0, report.of("fault")
    commits = f"spark {lake.spark} commits"
    _, spark = named() if any(named()) else ("", SPARKS[0])
    if spark and not spark.endswith("+4.4.0"):
        assert JAR in report.of("warning")[commits]
        assert JAR in table.report.appended
    else:
        assert commits in report.of("ok")
        assert JAR not in table.report.appended
