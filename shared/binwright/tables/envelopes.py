"""Change events of databases: what their values have in them, and which columns a table gets."""

from binwright.tables.columns import Column, Columns, Simple, Struct, folded, parse_row

OP = Column("_op", Simple("string"))
"""The column of what was done to a row: `c` created, `u` updated, `d` deleted, `r` read by a
snapshot; of a table without an envelope `u` and `d`. Sources have more, as `t` for a truncation.
"""
SOURCE = "_source"
"""The column of where a change stands in its source."""
OF_SOURCE = parse_row(
    "ts_ms BIGINT, db STRING, schema STRING, `table` STRING, lsn BIGINT, file STRING, pos BIGINT, "
    "row INT, scn STRING, commit_lsn STRING, change_lsn STRING, event_serial_no BIGINT"
)
"""What Debezium's connectors say of that, each some of it, as far as `columns` are named."""
BEFORE, AFTER, EVENT_OP, EVENT_SOURCE, PAYLOAD = "before", "after", "op", "source", "payload"
DELETED = "d"
OF_ROW = frozenset(["c", "u", DELETED, "r"])
"""Values of `OP` that are of one row."""


def event_columns(columns: Columns, *, with_schema: bool) -> Columns:
    """Return the columns of an event whose rows have these.

    Args:
        columns: Of the rows.
        with_schema: Whether the event may be the payload beside its schema, as JSON of Connect is.
    """
    row = Struct(columns)
    source = Column(EVENT_SOURCE, Struct(OF_SOURCE))
    event = (Column(BEFORE, row), Column(AFTER, row), Column(EVENT_OP, OP.type), source)
    return (*event, Column(PAYLOAD, Struct(event))) if with_schema else event


def landed_columns(event: Columns) -> Columns:
    """Return the columns of a table of such events.

    Raises:
        ValueError: These are none of change events.
    """
    parts = {column.named: column.type for column in event}
    row, op = parts.get(AFTER), parts.get(EVENT_OP)
    if not isinstance(row, Struct) or parts.get(BEFORE) != row or op != OP.type:
        raise ValueError("has no `before` and `after` of the same fields, and `op` beside them")
    taken = {OP.name, SOURCE}
    if names := [column.name for column in row.fields if folded(column.name) in taken]:
        raise ValueError(f"has a field {names[0]}, which is a column of the change itself")
    source = parts.get(EVENT_SOURCE)
    return (*row.fields, OP, *(() if source is None else (Column(SOURCE, source),)))
