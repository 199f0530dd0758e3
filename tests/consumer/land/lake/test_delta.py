"""SQL, paths and settings for Spark, tested without a server."""

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from binwright.consumer.land.lake.creation import checkpoint_interval
from binwright.consumer.land.lake.delta import COMPILED, append_batch, spark_path
from binwright.consumer.land.lake.staged_rows import (
    Frame,
    bad_records,
    condition,
    rows,
    tasks_for,
)
from binwright.lake.lake_reader import quoted
from binwright.tables.ports import Batch


def test_a_path_may_have_any_character() -> None:
    assert quoted("/a b/`c`") == "delta.`/a b/``c```"


def test_tables_that_begin_together_do_not_write_their_checkpoints_together() -> None:
    intervals = [checkpoint_interval(f"topic-{n}") for n in range(100)]
    assert {min(intervals), max(intervals)} == {40, 59}
    assert max(map(intervals.count, intervals)) < 15


def test_ranges_are_selected_without_their_ends() -> None:
    assert condition({1: (7, 9), 0: (0, 3)}) == (
        "(partition = 0 AND offset >= 0 AND offset < 3) OR "
        "(partition = 1 AND offset >= 7 AND offset < 9)"
    )


@pytest.mark.parametrize(
    ("size", "tasks"),
    [(0, 1), (1, 1), (128 << 20, 1), ((128 << 20) + 1, 2), (1 << 30, 8)],
)
def test_a_batch_is_written_by_as_few_tasks_as_its_bytes_need(size: int, tasks: int) -> None:
    assert tasks_for(size) == tasks


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ("/lake/_staging/g", "/lake/_staging/g"),
        ("s3://bucket/a", "s3a://bucket/a"),
        ("s3://bucket/a?region=eu-west-1&endpoint_override=http://minio:9000", "s3a://bucket/a"),
        ("s3a://bucket/a", "s3a://bucket/a"),
        ("gs://bucket/a", "gs://bucket/a"),
        ("file:///lake", "file:///lake"),
        ("/a?b", "/a?b"),
    ],
)
def test_a_path_is_named_as_sparks_file_systems_name_it(given: str, named: str) -> None:
    assert spark_path(given) == named


class Settings:
    """A session that fails when it reads files, and notes its settings then."""

    def __init__(self) -> None:
        self.values: dict[str, str] = {}
        self.conf = self
        self.when_read: Mapping[str, str] | None = None

    def set(self, key: str, value: str) -> None:
        self.values[key] = value

    def unset(self, key: str) -> None:
        del self.values[key]

    @property
    def read(self) -> object:
        self.when_read = dict(self.values)
        raise OSError("no server")


@pytest.mark.parametrize("frame", [rows, bad_records])
@pytest.mark.parametrize(("size", "wanted"), [(128 << 20, {}), ((128 << 20) + 1, COMPILED)])
def test_spark_compiles_large_appends_alone(
    frame: Callable[..., Frame], size: int, wanted: Mapping[str, str]
) -> None:
    session: Any = Settings()
    work = append_batch(
        frame(Batch(), "/staged", "lease.parquet", "/lake/bad"), size, "/lake/orders", "{}"
    )
    with pytest.raises(OSError, match="no server"):
        work(session)

    assert session.when_read == wanted
    assert session.values == {}
