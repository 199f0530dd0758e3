"""Spark Connect behind the proxy that `deploy/spark-tls` ships: the real proxy, a real server."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from tests.integration.lake.tables import TABLE
from tests.integration.landing import produce, rows, until
from tests.integration.security.certificates import Authority
from tests.integration.security.spark_proxy import WAIT_S, SparkProxy, spark_proxy
from tests.integration.security.test_spark_tls import one, ours, port_of, refusals, token_file
from tests.integration.topics import create_topic

from binwright.kafka.control_records import METADATA_CONFIG, METRICS_CONFIG
from binwright.kafka.control_topics import KafkaControlTopics
from binwright.lake.lake_reader import lake_reader, server_of
from binwright.local.server import HOST
from binwright.local.stack import services
from binwright.protocol.errors import LakeUnavailable
from binwright.runtime.run import background_tasks
from binwright.runtime.settings.consumer import LakeSettings
from binwright.runtime.settings.group import load_settings

__all__ = ["ours", "token_file"]  # fixtures

pytestmark = pytest.mark.integration

TOPIC, RECORDS = "behind-tls", 50
SYSTEM_S = 400.0  # monitor, controller and a consumer start, and commit


@pytest_asyncio.fixture
async def proxy(
    spark_url: str,
    token_file: Path,  # noqa: ARG001 - the token is nowhere else
    ours: Authority,
    tmp_path: Path,
) -> AsyncIterator[SparkProxy]:
    """The proxy, with a certificate of our authority for this machine."""
    ours.write_server(HOST, ours.directory)
    home = tmp_path / "proxy"
    home.mkdir()
    async with spark_proxy(home, ours.directory, port_of(spark_url)) as running:
        yield running


@pytest.fixture
def settings(proxy: SparkProxy, token_file: Path, ours: Authority, lake: Path) -> LakeSettings:
    """A client's, as the overlay `production` has them."""
    return LakeSettings(
        path=str(lake),
        spark=f"sc://{HOST}:{proxy.port}/;use_ssl=true",
        token_file=token_file,
        ca_file=ours.ca_file,
        freshness_s=2.0,
    )


async def answer(settings: LakeSettings) -> int:
    async with lake_reader(server_of(settings, TABLE.topic)) as reader:
        return await reader.run("ask", one)


@pytest.mark.nightly
async def test_consumers_land_rows_through_it(
    broker: str, settings: LakeSettings, lake: Path, tmp_path: Path
) -> None:
    chosen = load_settings(
        group=TOPIC,
        topics=(TOPIC,),
        kafka={"bootstrap_servers": broker},
        lake=settings.model_dump(),
        monitor={"window_s": 8.0, "topic": f"{TOPIC}.metrics"},
        controller={"process_logs": tmp_path / "logs", "max_slots": 1},
        consumer={"drain_timeout_s": 5.0},
    )
    assert not chosen.lake.allow_cleartext_token
    await create_topic(chosen.kafka, TOPIC, 1)
    await produce(broker, TOPIC, [b'{"id": %d}' % number for number in range(RECORDS)])
    async with KafkaControlTopics(chosen.kafka) as bus:
        await bus.ensure(chosen.metadata_topic, 1, METADATA_CONFIG)
        await bus.ensure(chosen.monitor.topic, 1, METRICS_CONFIG)
    async with (
        services(chosen, tmp_path / "logs") as stack,
        background_tasks(stack.wait_for_failure()),
    ):
        await until(lambda: len(rows(lake, TOPIC)) >= RECORDS, SYSTEM_S)
    assert len(rows(lake, TOPIC)) == RECORDS


async def test_clients_of_another_authority_send_it_nothing(
    settings: LakeSettings, tmp_path: Path
) -> None:
    other = settings.model_copy(update={"ca_file": Authority(tmp_path / "other").ca_file})
    for message in await refusals(other):
        assert "cannot be trusted" in message
        assert "lake.ca_file" in message
        assert "\n" not in message


async def test_it_wants_tls(settings: LakeSettings, proxy: SparkProxy) -> None:
    plain = {"spark": f"sc://{HOST}:{proxy.port}", "ca_file": None}
    with pytest.raises(LakeUnavailable):
        await answer(settings.model_copy(update=plain))


async def test_a_renewed_certificate_is_served_without_a_restart_and_connections_go_on(
    settings: LakeSettings, ours: Authority, tmp_path: Path
) -> None:
    other = Authority(tmp_path / "other")
    renewed = settings.model_copy(update={"ca_file": other.ca_file})
    async with lake_reader(server_of(settings, TABLE.topic)) as before:
        assert await before.run("ask", one) == 1
        other.write_server(HOST, ours.directory)
        await until_trusted(renewed)
        with pytest.raises(LakeUnavailable, match="cannot be trusted"):
            await answer(settings)
        assert await before.run("ask", one) == 1


async def test_a_certificate_that_cannot_be_loaded_changes_nothing(
    settings: LakeSettings, proxy: SparkProxy, ours: Authority, tmp_path: Path
) -> None:
    (ours.directory / "tls.crt").write_text("none")
    async with asyncio.timeout(WAIT_S):
        while "unable to load" not in proxy.log.read_text():  # noqa: ASYNC110 - another process
            await asyncio.sleep(0.1)
    assert await answer(settings) == 1
    other = Authority(tmp_path / "other")
    other.write_server(HOST, ours.directory)
    await until_trusted(settings.model_copy(update={"ca_file": other.ca_file}))


async def until_trusted(settings: LakeSettings) -> None:
    async with asyncio.timeout(WAIT_S):
        while True:
            try:
                assert await answer(settings) == 1
            except LakeUnavailable:
                await asyncio.sleep(0.1)
            else:
                return
