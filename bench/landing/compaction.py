"""What it costs to merge the small files of a side, by binwright's rule, whoever wrote them."""

import asyncio
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path

from bench.landing.connect_server import RunningSpark, spark_for
from bench.landing.cpu_usage import CpuUsage
from binwright.consumer.decide.land.compaction import CompactionConfig, next_portion
from binwright.consumer.land.lake.spark_lake import SparkLake
from binwright.local.server import ProgressCallback
from binwright.runtime.settings.consumer import LakeSettings

COPIES = 8  # of a table, on which a server learns to merge
LIMIT_S = 600.0


async def compact(spark: RunningSpark, tables: Iterable[Path]) -> tuple[float, int]:
    """Merge small files until no two can be merged; return the CPU-s, and how many they were."""
    usage, files = CpuUsage(spark.pids), 0
    before = usage.seconds()
    for table in tables:
        lake = LakeSettings(path=str(table.parent), spark=spark.url)
        config = CompactionConfig(1, lake.compact_below_bytes, lake.target_file_bytes)
        async with SparkLake(lake, str(table.parent / "_staging"), LIMIT_S) as merging:
            while portion := next_portion(await merging.small_files(table.name) or (), config):
                files += (await merging.compact(table.name, portion)).removed
    return usage.seconds() - before, files


async def cpu_s_a_file(
    server: str, directory: Path, tables: Mapping[str, Path], progress: ProgressCallback
) -> float:
    """Return what it takes a server of this name to merge a file of these tables of Delta.

    It learns on copies: the first merges compile code, the others run it.
    """
    of_delta = [table for table in tables.values() if (table / "_delta_log").is_dir()]
    if not of_delta:
        return 0.0
    async with spark_for(server, directory, progress) as spark:
        for number in range(COPIES):
            copy = of_delta[0].with_name(f"{of_delta[0].name}-copy-{number}")
            await asyncio.to_thread(shutil.copytree, of_delta[0], copy)
            await compact(spark, [copy])
            await asyncio.to_thread(shutil.rmtree, copy)
        cpu_s, files = await compact(spark, of_delta)
    progress(f"{files} files are merged for {cpu_s:.2f} CPU-s")
    return cpu_s / max(files, 1)
