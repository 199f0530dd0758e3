"""`make bench NAME=sweep`: a sweep as a Spark job on one executor, and on two, as JSON.

The same points (settings x loads) each time, on a standalone cluster of this machine whose workers
have one core each, after a job that warms Python and Java up. Of linear means: the time on one
executor over twice the time on two. The driver shares the cores, so the CPU that all other
processes of the machine took meanwhile is printed beside it: 1 means that nobody else ran.
"""

import argparse
import asyncio
import os
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import psutil

from bench import figures
from binwright.cli.console import to_stderr
from binwright.group.config import ControllerSettings
from binwright.lab.simulation.scenario import Timing
from binwright.lab.sweep.points import Point, PointResult, SweepLoad, run_points
from binwright.local.spark_size import SparkSize
from binwright.local.stack import servers
from binwright.protocol.model import BytesPerSecond
from binwright.runtime.settings.group_config import config_of
from binwright.streams.generated import Walk

LIMIT, CAPACITY = BytesPerSecond(2_400_000.0), BytesPerSecond(2_000_000.0)
REPLAN_INTERVAL_S = (15.0, 30.0, 60.0, 120.0)
HEAP = "1g"
EXECUTORS = (1, 2)


def points(loads: int, rows: int) -> list[Point]:
    """Return the product's controller under some settings on some random walks."""
    walks = [
        Walk(topics=("one", "two"), partitions=16, rows=rows, delta=5, seed=seed)
        for seed in range(loads)
    ]
    return [
        Point(
            label=f"replan_interval_s={replan_interval_s:g}",
            policy="binwright",
            load=SweepLoad(label=f"seed {walk.seed}", capacity=CAPACITY, walk=walk),
            config=config_of(
                ControllerSettings(
                    limit_bytes_per_s=LIMIT,
                    capacity_bytes_per_s=CAPACITY,
                    replan_interval_s=replan_interval_s,
                    catch_up_s=0.0,
                )
            ),
            packing="sticky",
            timing=Timing(),
            sustained=None,
            sla_s=5.0,
        )
        for replan_interval_s in REPLAN_INTERVAL_S
        for walk in walks
    ]


async def on_executors(executors: int, wanted: Sequence[Point]) -> tuple[dict[str, Any], Any]:
    """Run the points on so many executors; return what that took, and the results."""
    with tempfile.TemporaryDirectory(prefix="binwright-bench-") as name:
        async with servers(
            Path(name),
            lambda _: None,
            bootstrap_servers="not needed",
            embedded=SparkSize(heap=HEAP, workers=executors),
        ) as found:
            warm = points(2 * executors, 10)[: 2 * executors]
            await asyncio.to_thread(run_points, warm, lambda _: None, 1, found.spark_url)
            began, cpu = time.monotonic(), _cpu()
            results = await asyncio.to_thread(
                run_points, wanted, lambda _: None, 1, found.spark_url
            )
            took_s = time.monotonic() - began
            return {
                "executors": executors,
                "took_s": took_s,
                "others": _others(cpu, took_s),
            }, results


def _cpu() -> tuple[float, float]:
    """Return the CPU seconds of the whole machine, and of this process with its descendants."""
    whole = psutil.cpu_times()
    own = psutil.Process()
    mine = 0.0
    for process in (own, *own.children(recursive=True)):
        try:
            mine += sum(process.cpu_times()[:4])  # with those of its ended children
        except psutil.NoSuchProcess:
            continue  # ended since it was listed
    return whole.user + whole.nice + whole.system, mine


def _others(before: tuple[float, float], took_s: float) -> float:
    """Return how many cores were busy with other work meanwhile."""
    whole, mine = (after - begin for after, begin in zip(_cpu(), before, strict=True))
    return max(0.0, whole - mine) / took_s


def sweep(wanted: Sequence[Point]) -> dict[str, Any]:
    """Run the points here and on each number of executors."""
    began = time.process_time()
    here: list[PointResult] = run_points(wanted, lambda _: None, 1)
    alone_s = time.process_time() - began
    runs, same = list[dict[str, Any]](), True
    for executors in EXECUTORS:
        run, results = asyncio.run(on_executors(executors, wanted))
        runs.append(run)
        same = same and results == here
    one, two = (run["took_s"] for run in runs)
    return {
        "points": len(wanted),
        "cores": os.cpu_count(),
        "cpu_s_in_one_process": alone_s,
        "runs": runs,
        "of_linear": one / (2 * two),
        "same_numbers": same,
    }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="make bench NAME=sweep", description=__doc__)
    parser.add_argument("--loads", type=int, default=6, help="random walks, for each setting")
    parser.add_argument("--rows", type=int, default=2_880, help="of 30 s, of each load")
    figures.add_option(parser)
    wanted = parser.parse_args()
    with to_stderr():
        found = sweep(points(wanted.loads, wanted.rows))
    figures.progress("sweep", found, wanted.figures)


if __name__ == "__main__":
    main()
