"""The scaler beside KEDA's lag rule, in replica-minutes at the same share of records in time."""

from collections.abc import Iterator, Mapping, Sequence

from binwright.lab.report.section import Cell, Table
from binwright.lab.slo.cases import FRONTIER
from binwright.lab.slo.frontier import least_minutes, minutes_at
from binwright.lab.slo.results import Result, TableResult

TARGET = 0.85
"""Of the lag rule's replica-minutes: what the scaler is expected to need at most."""
USUAL = "KEDA, lag 90"
COLUMNS = (
    *("workload", "setting", "SLA, %", "scaler's replica-minutes", "lag rule's"),
    *("ratio", "least possible", "least / lag rule's"),
)


def equal_sla(results: Sequence[TableResult]) -> Table | None:
    """Return the comparison; None: no table for it was run."""
    rows = [row for one in results if one.case.name.endswith(FRONTIER) for row in _rows(one)]
    if not rows:
        return None
    return Table(
        name="slo-equal-sla",
        title="The scaler beside KEDA's lag rule at the same SLA",
        columns=COLUMNS,
        rows=rows,
        note="Of the side that is not the setting's: on a line between its own settings, empty "
        "where none has that share. The least possible is of a scaler that knows each second "
        "beforehand and waits for nothing.",
    )


def verdict(table: Table) -> str:
    """Return where the scaler needs at most `TARGET` of the lag rule's minutes, and where not."""
    rows = [dict(zip(table.columns, row, strict=True)) for row in table.rows]
    missed = [row for row in rows if isinstance(row["ratio"], float) and row["ratio"] > TARGET]
    none = sum(row["lag rule's"] is None for row in rows)
    met = (
        f"Scaler beside lag rule at the same SLA: at most {TARGET} of its replica-minutes, or a "
        f"share that no threshold has ({none}), at {len(rows) - len(missed)} of {len(rows)} "
        "settings"
    )
    return f"{'; '.join([met, *map(_missed, missed)])}."


def _missed(row: Mapping[str, Cell]) -> str:
    least = row["least / lag rule's"]
    bound = f", and {least} is the least possible"
    return f"{row['workload']} {row['setting']}: {row['ratio']}{bound}"


def _rows(found: TableResult) -> Iterator[list[Cell]]:
    scaler = [one for one in found.results if one.contender.is_ours]
    rule = [one for one in found.results if not one.contender.is_ours]
    for one in scaler:
        yield _row(found, one, one.minutes, minutes_at(one.sla, _points(rule)))
    for one in rule:
        if one.contender.name == USUAL:
            yield _row(found, one, minutes_at(one.sla, _points(scaler)), one.minutes)


def _points(results: Sequence[Result]) -> list[tuple[float, float]]:
    return [(one.sla, one.minutes) for one in results]


def _row(found: TableResult, at: Result, ours: float | None, theirs: float | None) -> list[Cell]:
    workload, settings = found.case.workload, at.contender.settings
    least = least_minutes(workload, settings.sla_s / settings.service_s, at.sla)
    return [
        *(workload.name, at.contender.name, round(at.sla, 2)),
        *(_rounded(ours), _rounded(theirs), _ratio(ours, theirs)),
        *(round(least, 2), _ratio(least, theirs)),
    ]


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 2)


def _ratio(value: float | None, by: float | None) -> float | None:
    return None if value is None or by is None else round(value / by, 3)
