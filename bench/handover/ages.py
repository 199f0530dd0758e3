"""How old rows were when they could be read: from Kafka's timestamp to the commit that has them."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from bench.landing.table_log import Commit
from binwright.look.group_view import percentile

Window = tuple[float, float]
"""From when to when, seconds since the epoch."""


class LandedRow(NamedTuple):
    """One row: when it landed, seconds since the epoch, and how old it was then, s."""

    at: float
    age_s: float


def landed_rows(commits: Iterable[Commit], timestamp: str = "timestamp") -> Iterator[LandedRow]:
    """Yield every row, by the column or field that has Kafka's timestamp."""
    for commit in commits:
        for file in commit.files:
            (column,) = pq.ParquetFile(file).read(columns=[timestamp]).flatten().columns
            if not pa.types.is_integer(column.type):
                column = pc.cast(column, pa.timestamp("ms", column.type.tz), safe=False)
            for made_ms in pc.cast(column, pa.int64()).to_numpy().tolist():
                yield LandedRow(commit.at, commit.at - made_ms / 1e3)


def ages(
    rows: Sequence[LandedRow], when: Mapping[str, Window]
) -> dict[str, dict[str, float | None]]:
    """Return the ages of what landed in each window, s; None where nothing did."""
    by_phase = {}
    for phase, (begin, end) in when.items():
        within = [row.age_s for row in rows if begin <= row.at < end]
        by_phase[phase] = {f"p{q}": percentile(within, q / 100) for q in (50, 99, 100)}
    return by_phase
