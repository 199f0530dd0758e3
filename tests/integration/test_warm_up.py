"""Spark learns on a throw-away table of which nothing is left."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import urlparse

import pytest
from structlog.testing import capture_logs
from tests.chaos.proxy import Proxy

from binwright.consumer.land.warm_up import warm_up
from binwright.protocol.errors import ExternalError
from binwright.runtime.settings.group import load_settings

pytestmark = pytest.mark.integration


def left(staging: str) -> list[Path]:
    return list(Path(staging).iterdir())


async def test_a_warm_up_commits_and_leaves_nothing(lake: Path, spark_url: str) -> None:
    settings = load_settings(lake={"path": str(lake), "spark": spark_url})
    with capture_logs() as logs:
        await warm_up(settings, commits=3)

    assert [(log["event"], log["commits"]) for log in logs if "commits" in log] == [
        ("spark.warmed_up", 3)
    ]
    assert left(settings.staging_path) == []


async def test_a_server_that_does_not_answer_is_named_and_nothing_is_left(lake: Path) -> None:
    settings = load_settings(lake={"path": str(lake), "spark": "sc://127.0.0.1:9"})
    with pytest.raises(ExternalError, match=r"127\.0\.0\.1:9"):
        await warm_up(settings, commits=3)

    assert left(settings.staging_path) == []


STARTS_S = 5.0  # longer than a call retries a server that does not answer


@asynccontextmanager
async def server_that_starts(spark_url: str) -> AsyncIterator[str]:
    """Give the URL of a server that closes its connections until `STARTS_S` after the first one."""
    loop, behind = asyncio.get_running_loop(), Proxy(urlparse(spark_url).port or 0)
    first: list[float] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        first.append(loop.time())
        if loop.time() < first[0] + STARTS_S:
            writer.close()
            return
        await behind.serve(reader, writer)

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield f"sc://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()
        behind.close()


async def test_a_server_that_still_starts_is_waited_for(lake: Path, spark_url: str) -> None:
    async with server_that_starts(spark_url) as url:
        settings = load_settings(lake={"path": str(lake), "spark": url})
        with capture_logs() as logs:
            await warm_up(settings, commits=1, wait_s=60.0)

    assert "spark.warmed_up" in {log["event"] for log in logs}
    assert left(settings.staging_path) == []
