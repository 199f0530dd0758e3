"""A class archive is really made, and really used."""

import asyncio
from pathlib import Path

import psutil
import pytest

from binwright.embedded.broker import Broker, run_broker
from binwright.embedded.cache import cache_dir

pytestmark = pytest.mark.integration

DEADLINE_S = 300.0  # made at the lowest priority, beside whatever else runs


def archives(broker: Broker) -> list[str]:
    maps = psutil.Process(broker.pid).memory_maps()
    return [item.path for item in maps if item.path.endswith(".jsa") and "broker-" in item.path]


async def test_the_first_run_makes_an_archive_and_the_next_starts_from_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    jars = cache_dir() / "jars"
    monkeypatch.setenv("BINWRIGHT_CACHE", str(tmp_path / "cache"))
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / "jars").symlink_to(jars)
    async with run_broker(tmp_path / "broker") as broker:
        assert archives(broker) == []
        async with asyncio.timeout(DEADLINE_S):
            while not list((tmp_path / "cache").glob("classes/*.jsa")):  # noqa: ASYNC110, ASYNC240
                await asyncio.sleep(0.1)
    async with run_broker(tmp_path / "broker") as broker:
        assert archives(broker) != []
