"""Trials on a real Spark give what they give here."""

import asyncio
import socket

import pytest

from binwright.core.errors import LakeUnavailable
from binwright.lab.spread import spread
from binwright.lab.trials import Source, Trial

pytestmark = pytest.mark.integration

SOURCES = [Source(label=f"{n}", partitions=8, rows=10, delta=10, seed=n) for n in range(2)]
TRIALS = [Trial(name, source) for source in SOURCES for name in ("nf", "mwf", "sticky")]


async def test_spark_gives_what_one_process_gives(spark_url: str) -> None:
    told: list[int] = []
    there = await asyncio.to_thread(spread, TRIALS, told.append, 1, spark_url)

    assert there == spread(TRIALS, lambda _: None, 1)
    assert sum(told) == len(TRIALS)


def test_a_spark_that_is_not_there_is_told() -> None:
    with socket.create_server(("localhost", 0)) as taken:
        port = taken.getsockname()[1]
    with pytest.raises(LakeUnavailable, match="no Spark Connect server at"):
        spread(TRIALS[:1], lambda _: None, 1, f"sc://localhost:{port}")
