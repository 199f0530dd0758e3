"""Trimming a table's log on a local disk."""

import os
from pathlib import Path

import pytest

from binwright.consumer.land.lake.log_trim import MIN_AGE_S, local_path, trim_log

NOW = 1_000_000.0


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Return a table of 100 commits, an hour old, with a checkpoint every 10 commits."""
    log = tmp_path / "_delta_log"
    log.mkdir()
    names = ["_last_checkpoint"]
    for version in range(101):
        names += [f"{version:020}.json", f".{version:020}.json.crc"]
        if version and version % 10 == 0:
            names.append(f"{version:020}.checkpoint.parquet")
    for name in names:
        (log / name).touch()
        os.utime(log / name, (NOW - 3600, NOW - 3600))
    return tmp_path


def versions(table: Path) -> list[int]:
    return sorted(int(file.stem) for file in (table / "_delta_log").glob("*.json"))


def test_a_trimmed_log_begins_with_a_checkpoint_and_keeps_enough_commits(
    table: Path,
) -> None:
    deleted = trim_log(table, 25, NOW)

    assert versions(table) == list(range(70, 101))
    assert deleted == 2 * 70 + 6
    assert (table / "_delta_log" / f"{70:020}.checkpoint.parquet").exists()
    assert (table / "_delta_log" / "_last_checkpoint").exists()


def test_without_an_old_enough_checkpoint_nothing_is_deleted(table: Path) -> None:
    assert trim_log(table, 91, NOW) == 0


def test_young_files_are_kept(table: Path) -> None:
    """A query may be reading an older version."""
    young = table / "_delta_log" / f"{3:020}.json"
    os.utime(young, (NOW - MIN_AGE_S / 2, NOW - MIN_AGE_S / 2))
    trim_log(table, 25, NOW)

    assert young.exists()


@pytest.mark.parametrize(
    ("lake", "path"),
    [("/lake", Path("/lake")), ("file:///lake", Path("/lake")), ("s3a://lake/landing", None)],
)
def test_only_a_local_disk_has_a_path(lake: str, path: Path | None) -> None:
    assert local_path(lake) == path
