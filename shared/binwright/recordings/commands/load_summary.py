"""What a load has written, beside what was due by its rates."""

from collections.abc import Sequence
from itertools import groupby
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table

from binwright.recordings.load import LoadResult, Sent
from binwright.views.commands.terminal import megabytes


def to_json(result: LoadResult) -> dict[str, Any]:
    """Return the figures of every partition, with units in their names."""
    return {
        "elapsed_s": result.elapsed_s,
        "rows": result.rows,
        "shed_bytes": result.shed_bytes,
        "partitions": {
            str(partition): {
                "records": sent.records,
                "bytes": sent.bytes,
                "due_bytes": sent.due_bytes,
            }
            for partition, sent in result.partitions.items()
        },
    }


def show(result: LoadResult) -> RenderableType:
    """Return a table with a line for each topic, and the total."""
    table = Table(title_justify="left", title=_title(result))
    table.add_column("topic")
    for name in ("partitions", "records", "due", "written", "least of a partition"):
        table.add_column(name, justify="right")
    for topic, members in groupby(result.partitions.items(), lambda item: item[0].topic):
        sent = [each for _, each in members]
        table.add_row(
            topic,
            f"{len(sent):,}",
            f"{sum(one.records for one in sent):,}",
            megabytes(sum(one.due_bytes for one in sent)),
            megabytes(sum(one.bytes for one in sent)),
            _least(sent),
        )
    if not result.shed_bytes:
        return table
    return Group(
        table,
        f"{megabytes(result.shed_bytes)} were due and not written: the brokers or this machine "
        "were too slow",
    )


def _title(result: LoadResult) -> str:
    records = sum(sent.records for sent in result.partitions.values())
    size = megabytes(sum(sent.bytes for sent in result.partitions.values()))
    return f"{records:,} records in {result.elapsed_s:.0f} s: {size}"


def _least(sent: Sequence[Sent]) -> str:
    """Return the smallest share of what was due that a partition got."""
    shares = [one.bytes / one.due_bytes for one in sent if one.due_bytes]
    return f"{100 * min(shares):.1f} %" if shares else ""
