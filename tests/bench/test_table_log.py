"""Commits of Delta and Iceberg tables, read from their logs, and the ages of their rows."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import fastavro
import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from bench.handover.ages import landed_rows
from bench.landing.table_log import DeltaLog, IcebergLog, within
from deltalake import DeltaTable, write_deltalake

MADE_MS = 1_760_000_000_000


def rows(count: int) -> pa.Table:
    return pa.table({"timestamp": pa.array([MADE_MS] * count, pa.timestamp("ms", "UTC"))})


def test_a_delta_table_has_commits_that_added_rows(tmp_path: Path) -> None:
    log = DeltaLog(tmp_path)
    assert log.read_new_commits() == 0
    write_deltalake(tmp_path, rows(2))
    assert log.read_new_commits() == 2
    write_deltalake(tmp_path, rows(3), mode="append")
    DeltaTable(tmp_path).optimize.compact()
    assert log.read_new_commits() == 5
    assert [commit.rows for commit in log.commits] == [2, 3]
    assert all(commit.bytes == commit.files[0].stat().st_size for commit in log.commits)


def avro(file: Path, fields: Mapping[str, Any], entries: Sequence[Mapping[str, Any]]) -> str:
    schema = {
        "type": "record",
        "name": file.stem,
        "fields": [{"name": name, "type": of} for name, of in fields.items()],
    }
    with file.open("wb") as out:
        fastavro.writer(out, schema, entries)
    return f"file:{file}"


def iceberg_version(table: Path, number: int, count: int) -> None:
    """Write a version that adds a file of rows, as a catalog on disk has it; none: adds nothing."""
    (table / "metadata").mkdir(exist_ok=True)
    snapshots = []
    if count:
        data = table / f"{number}.parquet"
        pq.write_table(rows(count), data)
        file = {"file_path": str(data), "record_count": count, "file_size_in_bytes": 7}
        of_file = {
            "type": "record",
            "name": "file",
            "fields": [
                {"name": "file_path", "type": "string"},
                {"name": "record_count", "type": "long"},
                {"name": "file_size_in_bytes", "type": "long"},
            ],
        }
        entries = [{"status": 1, "data_file": file}, {"status": 0, "data_file": file}]
        manifest = table / "metadata" / f"m{number}.avro"
        added = avro(manifest, {"status": "int", "data_file": of_file}, entries)
        listed = avro(
            table / "metadata" / f"s{number}.avro",
            {"manifest_path": "string", "added_snapshot_id": "long"},
            [{"manifest_path": added, "added_snapshot_id": number}],
        )
        snapshots = [{"snapshot-id": number, "timestamp-ms": number, "manifest-list": listed}]
    version = {
        "current-snapshot-id": number if count else -1,
        "last-updated-ms": number,
        "snapshots": snapshots,
    }
    (table / "metadata" / f"v{number}.metadata.json").write_bytes(orjson.dumps(version))


def test_an_iceberg_table_has_commits_that_added_rows(tmp_path: Path) -> None:
    log = IcebergLog(tmp_path)
    for number, count in ((1, 0), (9, 2), (10, 3)):
        iceberg_version(tmp_path, number, count)
    assert log.read_new_commits() == 5
    iceberg_version(tmp_path, 11, 4)
    assert log.read_new_commits() == 9
    assert [(commit.rows, commit.bytes) for commit in log.commits] == [(2, 7), (3, 7), (4, 7)]


@pytest.mark.parametrize("stored", ["timestamp[us, UTC]", "int64"])
def test_a_row_is_as_old_as_its_commit(stored: str, tmp_path: Path) -> None:
    values = [MADE_MS * 1000] if stored != "int64" else [MADE_MS]
    kind = pa.int64() if stored == "int64" else pa.timestamp("us", "UTC")
    place = pa.struct([("timestamp", kind)])
    table = pa.table({"_kafka": pa.array([{"timestamp": v} for v in values], place)})
    write_deltalake(tmp_path, table)
    log = DeltaLog(tmp_path)
    log.read_new_commits()
    (commit,) = log.commits
    (row,) = landed_rows(log.commits, "_kafka.timestamp")
    assert row.at == commit.at
    assert row.age_s == pytest.approx(commit.at - MADE_MS / 1e3)
    assert within(log.commits, commit.at, commit.at + 1) == [commit]
    assert within(log.commits, commit.at + 1, commit.at + 2) == []
