"""Trials on a real Spark give what they give here."""

import asyncio
import socket

import pytest

from binwright.lab.commands.packing import run_parallel
from binwright.lab.packing.experiments import Experiment, PackingStream
from binwright.protocol.errors import LakeUnavailable

pytestmark = pytest.mark.integration

SOURCES = [PackingStream(label=f"{n}", partitions=8, rows=10, delta=10, seed=n) for n in range(2)]
TRIALS = [Experiment(name, source) for source in SOURCES for name in ("nf", "mwf", "sticky")]


async def test_spark_gives_what_one_process_gives(spark_url: str) -> None:
    result: list[int] = []
    there = await asyncio.to_thread(run_parallel, TRIALS, result.append, 1, spark_url)

    assert there == run_parallel(TRIALS, lambda _: None, 1)
    assert sum(result) == len(TRIALS)


def test_a_spark_that_does_not_exist_is_reported() -> None:
    with socket.create_server(("localhost", 0)) as taken:
        port = taken.getsockname()[1]
    with pytest.raises(LakeUnavailable, match="no Spark Connect server at"):
        run_parallel(TRIALS[:1], lambda _: None, 1, f"sc://localhost:{port}")
