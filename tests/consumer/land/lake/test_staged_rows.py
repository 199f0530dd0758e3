"""What each commit reads besides its rows, whatever the batch: without it a loser would land."""

from collections.abc import Sequence
from typing import Any, Self

import pytest

from binwright.consumer.land.lake import staged_rows
from binwright.consumer.land.lake.table_columns import RECORD_COLUMNS
from binwright.tables.ports import Batch, FileSlice

LEASE = f"lease-{'a' * 32}-1.parquet"
WHOLE = FileSlice("a.parquet", {0: (0, 9)}, whole=True, bytes=1, topic="orders")
PART = FileSlice("b.parquet", {0: (3, 5)}, whole=False, bytes=1, topic="orders")


class Reading:
    """A Spark session, and the frames that it reads: each knows its files and options."""

    def __init__(self) -> None:
        self.given: dict[str, str] = {}
        self.files: list[tuple[str, ...]] = []

    @property
    def read(self) -> Self:
        return self

    def schema(self, _: str) -> Self:
        return self

    def options(self, **given: str) -> Self:
        self.given |= given
        return self

    def parquet(self, *paths: str) -> Self:
        self.files.append(paths)
        return self

    def where(self, _: str) -> Self:
        return self

    def unionAll(self, _: Self) -> Self:  # noqa: N802 - Spark's name
        return self


@pytest.mark.parametrize("slices", [(), (WHOLE,), (PART,), (WHOLE, PART)])
def test_a_commit_reads_its_lease_and_no_file_is_passed_over(slices: Sequence[FileSlice]) -> None:
    spark: Any = Reading()
    staged_rows._staged(spark, Batch(tuple(slices)), "/staged/orders", LEASE, RECORD_COLUMNS)
    read = {path for paths in spark.files for path in paths}
    assert read == {f"/staged/orders/{name}" for name in (LEASE, *(each.file for each in slices))}
    assert spark.given == {"ignoreCorruptFiles": "false", "ignoreMissingFiles": "false"}
