"""Lets Spark servers learn to write tables: `python -m binwright.consumer.land.warm_up`.

A server compiles its code while it works: the first fifty appends cost three times as much as later
ones. So it takes commits of two throw-away tables, which are in the staging place, before it takes
those that people wait for: one of raw records, one of columns with some bad records.
"""

import argparse
import asyncio
import sys
from collections.abc import Sequence
from dataclasses import replace
from uuid import uuid4

from binwright.consumer.decide.land.append import can_be_added
from binwright.consumer.decode.json_values import JsonDecoder
from binwright.consumer.land.lake.creation import checkpoint_interval
from binwright.consumer.land.lake.spark_lake import SparkLake
from binwright.consumer.stage.file_staging import FileStaging
from binwright.protocol.errors import LakeUnavailable
from binwright.protocol.log_events import LogEvent
from binwright.protocol.model import TopicPartition
from binwright.protocol.names import TABLE_LAYOUT, lease_name
from binwright.protocol.ports.kafka import Record, Records
from binwright.runtime.clock import loop_s, wall_ms
from binwright.runtime.logs import log
from binwright.runtime.serve import serve
from binwright.runtime.settings.group import Settings
from binwright.runtime.storage_path import below
from binwright.tables.columns import parse_columns
from binwright.tables.ports import Batch, FileSlice, Footer, Table
from binwright.tables.stamp import Stamp

SPARK_WARMED_UP = LogEvent.info(
    "spark.warmed_up", "A Spark server has made its first commits, in throw-away tables."
)

TOPIC = "warm-up"
COMMITS = checkpoint_interval(TOPIC)
"""As many as bring the first checkpoint, which is slow, too."""
TABLE = Table(TOPIC, group=TOPIC, cluster=TOPIC)
OF_COLUMNS = Table(f"{TOPIC}-columns", TOPIC, TOPIC, parse_columns("id BIGINT, item STRING"))
DECODER = JsonDecoder(OF_COLUMNS.columns or ())
COLUMN_COMMITS = 8
"""After those of raw records: what they have in common is warm."""
IN_PLACE_COMMITS = 4
"""As many where files are committed as they are, which is little work to learn."""
FILES, ROWS = 2, 100  # of a commit, and of each file
VALUE = b'{"id": 7, "item": "tea", "price": 4.5, "at": "2026-11-25T10:00:00Z"}'
RETRY_S = 1.0


async def warm_up(settings: Settings, commits: int, wait_s: float = 0.0) -> None:
    """Let each server of `lake.spark` commit `commits` times, one server after the other.

    A server may take `wait_s` seconds to answer: one that starts beside this does not at once.

    Raises:
        ExternalError: The staging place cannot be written, or a server does not answer.
    """
    for server in settings.lake.servers:
        place = below(settings.staging_path, f"{TOPIC}-{uuid4().hex[:8]}")
        lake = settings.lake.model_copy(update={"path": f"{place}/lake", "spark": server})
        staged, in_place = f"{place}/staged", lake.commit == "auto"
        async with (
            FileStaging(place) as all_of_it,
            FileStaging(staged, in_place=in_place) as staging,
        ):
            await all_of_it.prepare()
            try:
                async with SparkLake(lake, staged, settings.consumer.write_timeout_s) as tables:
                    await _open(tables, TABLE, wait_s)
                    await _commit(tables, staging, TABLE, commits, in_place=in_place)
                    await tables.open(OF_COLUMNS)
                    await _commit(
                        tables, staging, OF_COLUMNS, COLUMN_COMMITS, DECODER, in_place=in_place
                    )
            finally:
                await all_of_it.delete_all()
        log(SPARK_WARMED_UP, commits=commits)


async def _open(tables: SparkLake, table: Table, wait_s: float) -> None:
    deadline = loop_s() + wait_s
    while True:
        try:
            await tables.open(table)
        except LakeUnavailable:
            if loop_s() >= deadline:
                raise
        else:
            return
        await asyncio.sleep(RETRY_S)


async def _commit(
    tables: SparkLake,
    staging: FileStaging,
    table: Table,
    commits: int,
    decoder: JsonDecoder | None = None,
    *,
    in_place: bool,
) -> None:
    """Claim a table and commit to it; with `decoder`, columns, and a bad record now and then."""
    topic, lease = table.topic, lease_name(uuid4().hex, 1)
    await staging.write_lease(topic, lease)
    await staging.keep(topic, TABLE_LAYOUT, b"read")
    await tables.claim(topic, lease, _stamp(lease, 0))
    await tables.history(topic, 1)
    await tables.highest_offsets(topic)
    await tables.commit_stamp(topic, lease, 1, _stamp(lease, 1))
    for number in range(commits):
        batch, stamp = await _staged(staging, topic, number, decoder), _stamp(lease, 2 + number)
        footers = await staging.footers(topic, batch.files)
        as_table = frozenset(file for file, each in footers.items() if each.as_table)
        beside = frozenset(file for file in as_table if footers[file].bad)
        batch = replace(batch, as_table=as_table, beside=beside)
        added = in_place and can_be_added(batch, footers)
        if added:
            added = in_place = await tables.add_files(topic, batch, lease, stamp) is None
        if batch.bad:
            await tables.append_bad(topic, batch, lease, stamp)
        if not added:
            await tables.append(topic, batch, lease, stamp)
        await staging.delete(topic, batch.files)
        if in_place and number + 1 >= IN_PLACE_COMMITS:
            break


def _stamp(writer: str, sequence: int) -> str:
    stamp = Stamp(group=TOPIC, cluster=TOPIC, writer=writer, sequence=sequence)
    return stamp.encode()


async def _staged(
    staging: FileStaging, topic: str, commit: int, decoder: JsonDecoder | None
) -> Batch:
    """Stage files as consumers do; every other one lands without its first row."""
    slices, whole = [], bool(commit % 2)
    for number in range(FILES):
        first = (commit * FILES + number) * ROWS
        values = [VALUE] * (ROWS - 1) + [VALUE if whole else b"no JSON"]
        records = Records.of(
            Record(first + n, wall_ms(), b"key", value) for n, value in enumerate(values)
        )
        name = f"0-{commit}-{number}-{uuid4().hex[:8]}.parquet"
        footer = Footer(None, ROWS, {0: (first, first + ROWS)})
        rows = {TopicPartition(topic, 0): [records]}
        size = await staging.write(topic, name, rows, footer, decoder)
        ranges = {0: (first if whole else first + 1, first + ROWS)}
        slices.append(FileSlice(name, ranges, whole, size, topic))
    return Batch(
        tuple(slices),
        rows=FILES * ROWS,
        bytes=sum(part.bytes for part in slices),
        columns=None if decoder is None else decoder.columns,
        bad=0 if decoder is None or whole else FILES,
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Warm up the servers of the settings."""
    parser = argparse.ArgumentParser(
        prog="python -m binwright.consumer.land.warm_up",
        description="Let the Spark servers of the settings learn on a throw-away table.",
    )
    parser.add_argument("--commits", type=int, default=COMMITS, help="for each server")
    parser.add_argument("--wait-s", type=float, default=0.0, help="for a server that starts")
    options = parser.parse_args(arguments)
    return serve(lambda settings: warm_up(settings, options.commits, options.wait_s), Settings)


if __name__ == "__main__":
    sys.exit(main())
