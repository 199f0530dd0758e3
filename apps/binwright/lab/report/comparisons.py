"""Published values beside ours, as tables: every one, and the differences of each figure."""

from collections.abc import Iterator, Sequence
from statistics import fmean

from binwright.lab.report.contents import Cell, PublishedComparison, ReportTable

DIGITS = 3
COLUMNS = ("figure", "what", "unit", "published", "ours", "difference")
MORE = ("tolerance", "within", "remark")
"""Columns that are shown if one of the comparisons has them."""
DIFFERENCES = ("unit", "values", "mean", "largest", "of")
"""Of the absolute differences; the largest one with its sign."""


def published_tables(
    name: str, comparisons: Sequence[PublishedComparison], note: str = ""
) -> list[ReportTable]:
    """Return the differences of each figure, and every comparison; none if there is none.

    Args:
        name: The first part of the tables' names.
        comparisons: In their order.
        note: Below the tables.
    """
    if not comparisons:
        return []
    rows: list[Sequence[Cell]] = [
        (figure, *row)
        for figure in dict.fromkeys(one.figure for one in comparisons)
        for row in differences([one for one in comparisons if one.figure == figure])
    ]
    return [
        ReportTable(
            name=f"{name}-differences",
            title="Differences: ours - published",
            columns=("figure", *DIFFERENCES),
            rows=rows,
            note=note,
        ),
        published_table(name, comparisons, note),
    ]


def published_table(
    name: str, comparisons: Sequence[PublishedComparison], note: str = ""
) -> ReportTable:
    """Return every comparison; arguments as of `published_tables`."""
    rows = [_row(one) for one in comparisons]
    shown = [
        at
        for at, column in enumerate((*COLUMNS, *MORE))
        if column not in MORE or any(row[at] not in {None, ""} for row in rows)
    ]
    return ReportTable(
        name=f"{name}-published",
        title="Published values beside ours",
        columns=[(*COLUMNS, *MORE)[at] for at in shown],
        rows=[[row[at] for at in shown] for row in rows],
        note=note,
    )


def differences(comparisons: Sequence[PublishedComparison]) -> Iterator[Sequence[Cell]]:
    """Yield for each unit: values, their mean absolute difference, the largest, and what has it."""
    for unit in dict.fromkeys(one.unit for one in comparisons):
        gaps = [
            (one.difference, one.what)
            for one in comparisons
            if one.unit == unit and one.difference is not None
        ]
        if gaps:
            largest, what = max(gaps, key=lambda gap: abs(gap[0]))
            mean = fmean(abs(gap) for gap, _ in gaps)
            yield unit, len(gaps), rounded(mean), rounded(largest), what


def rounded(value: float | None, digits: int = DIGITS) -> float | None:
    """Return a value as tables show it; a rounded -0.0 is 0.0."""
    return None if value is None else round(value, digits) + 0


def _row(one: PublishedComparison) -> Sequence[Cell]:
    known = one.published
    within = {None: None, True: "yes", False: "no"}[one.within]
    return (
        *(one.figure, one.what, one.unit),
        f"{known[0]:g} to {known[1]:g}" if isinstance(known, tuple) else rounded(known),
        *(rounded(one.ours), rounded(one.difference), rounded(one.tolerance), within, one.remark),
    )
