"""How old rows were when they landed: from Kafka's timestamp to the file that has them.

A file is written a moment before its commit; the same moment in every phase.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from binwright.lake.lake_reader import lake_reader, quoted
from binwright.look.group_view import percentile

Window = tuple[float, float]
"""From when to when, seconds since the epoch."""


class LandedRow(NamedTuple):
    """One row: when it landed, seconds since the epoch, and how old it was then, s."""

    at: float
    age_s: float


async def landed_rows(spark: str, table: Path, timestamp: str = "timestamp") -> list[LandedRow]:
    """Return every row of the table; raise `LakeUnavailable` if Spark does not answer."""

    def work(session: Any) -> list[LandedRow]:
        frame = session.sql(
            "SELECT unix_millis(_metadata.file_modification_time) AS at, "  # noqa: S608 - our own
            f"unix_millis({timestamp}) AS made FROM {quoted(str(table))}"
        )
        columns = frame.toArrow().to_pydict()
        pairs = zip(columns["at"], columns["made"], strict=True)
        return [LandedRow(at / 1e3, (at - made) / 1e3) for at, made in pairs]

    async with lake_reader(spark) as reader:
        return await reader.run(f"read {table}", work)


def ages(
    rows: Sequence[LandedRow], when: Mapping[str, Window]
) -> dict[str, dict[str, float | None]]:
    """Return the ages of what landed in each window, s; None where nothing did."""
    by_phase = {}
    for phase, (begin, end) in when.items():
        within = [row.age_s for row in rows if begin <= row.at < end]
        by_phase[phase] = {f"p{q}": percentile(within, q / 100) for q in (50, 99, 100)}
    return by_phase
