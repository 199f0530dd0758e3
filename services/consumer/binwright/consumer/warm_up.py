"""Lets Spark servers learn to write tables: `python -m binwright.consumer.warm_up`.

A server compiles its code while it works: the first fifty commits cost three times as much as later
ones. So it takes commits of a throw-away table, which is in the staging place, before it takes
those that people wait for.
"""

import argparse
import asyncio
import sys
from collections.abc import Sequence
from uuid import uuid4

import structlog

from binwright.consumer.lake.delta import checkpoint_interval
from binwright.consumer.lake.spark_lake import SparkLake
from binwright.consumer.staging.file_staging import FileStaging
from binwright.protocol.errors import LakeUnavailable
from binwright.protocol.model import TopicPartition
from binwright.protocol.names import lease_name
from binwright.protocol.ports.kafka import Record, Records
from binwright.protocol.ports.lake import Batch, FileSlice, Footer, Table
from binwright.protocol.stamp import Stamp
from binwright.runtime.clock import loop_s, wall_ms
from binwright.runtime.serve import serve
from binwright.runtime.settings import Settings

log = structlog.get_logger()

TOPIC = "warm-up"
COMMITS = checkpoint_interval(TOPIC)
"""As many as bring the first checkpoint, which is slow, too."""
TABLE = Table(TOPIC, group=TOPIC, cluster=TOPIC)
FILES, ROWS = 2, 100  # of a commit, and of each file
RETRY_S = 1.0


async def warm_up(settings: Settings, commits: int, wait_s: float = 0.0) -> None:
    """Let each server of `lake.spark` commit `commits` times, one server after the other.

    A server may take `wait_s` seconds to answer: one that starts beside this does not at once.

    Raises:
        ExternalError: The staging place cannot be written, or a server does not answer.
    """
    for server in settings.lake.servers:
        place = f"{settings.staging_path}/{TOPIC}-{uuid4().hex[:8]}"
        lake = settings.lake.model_copy(update={"path": place, "spark": server})
        async with FileStaging(place) as staging:
            await staging.prepare()
            try:
                async with SparkLake(lake, place, settings.consumer.write_timeout_s) as tables:
                    await _open(tables, wait_s)
                    await _commit(tables, staging, commits)
            finally:
                await staging.delete_all()
        log.info("spark.warmed_up", commits=commits)


async def _open(tables: SparkLake, wait_s: float) -> None:
    deadline = loop_s() + wait_s
    while True:
        try:
            return await tables.open(TABLE)
        except LakeUnavailable:
            if loop_s() >= deadline:
                raise
        await asyncio.sleep(RETRY_S)


async def _commit(tables: SparkLake, staging: FileStaging, commits: int) -> None:
    lease = lease_name(uuid4().hex, 1)
    await staging.write_lease(TOPIC, lease)
    await tables.claim(TOPIC, lease, _stamp(lease, 0))
    await tables.history(TOPIC, 1)
    await tables.highest_offsets(TOPIC)
    await tables.commit_stamp(TOPIC, lease, 1, _stamp(lease, 1))
    for number in range(commits):
        batch = await _staged(staging, number)
        await tables.append(TOPIC, batch, lease, _stamp(lease, 2 + number))
        await staging.delete(TOPIC, batch.files)
    await tables.compact(TOPIC)


def _stamp(writer: str, sequence: int) -> str:
    stamp = Stamp(group=TOPIC, cluster=TOPIC, writer=writer, sequence=sequence)
    return stamp.encode()


async def _staged(staging: FileStaging, commit: int) -> Batch:
    """Stage files as consumers do; every other one lands without its first row."""
    slices = []
    for number in range(FILES):
        first = (commit * FILES + number) * ROWS
        records = Records.of(
            Record(first + n, wall_ms(), b"key", b"value" * 20) for n in range(ROWS)
        )
        name = f"0-{commit}-{number}-{uuid4().hex[:8]}.parquet"
        footer = Footer(None, ROWS, {0: (first, first + ROWS)})
        size = await staging.write(TOPIC, name, {TopicPartition(TOPIC, 0): [records]}, footer)
        whole = bool(commit % 2)
        ranges = {0: (first if whole else first + 1, first + ROWS)}
        slices.append(FileSlice(name, ranges, whole, size))
    return Batch(tuple(slices), rows=FILES * ROWS, bytes=sum(part.bytes for part in slices))


def main(arguments: Sequence[str] | None = None) -> int:
    """Warm up the servers of the settings."""
    parser = argparse.ArgumentParser(
        prog="python -m binwright.consumer.warm_up",
        description="Let the Spark servers of the settings learn on a throw-away table.",
    )
    parser.add_argument("--commits", type=int, default=COMMITS, help="for each server")
    parser.add_argument("--wait-s", type=float, default=0.0, help="for a server that starts")
    found = parser.parse_args(arguments)
    return serve(lambda settings: warm_up(settings, found.commits, found.wait_s), Settings)


if __name__ == "__main__":
    sys.exit(main())
