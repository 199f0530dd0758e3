"""Columns of files that were staged under different settings, or by different schemas."""

from binwright.protocol.columns import Array, Column, Columns, ColumnType, Map, Struct


def united(one: Columns, other: Columns, *, first_wins: bool = False) -> Columns:
    """Return the columns of both, those of `one` first; so with the fields of structs.

    Names are compared as Spark does, whatever their case; those of `one` stay.

    Args:
        one: Columns.
        other: Columns.
        first_wins: Whether a column with another type in each keeps that of `one`.

    Raises:
        ValueError: A column has another type in each, and `first_wins` is not set.
    """
    added = {column.name.lower(): column for column in other}
    both = []
    for column in one:
        same = added.pop(column.name.lower(), column)
        kind = _united(column.name, column.type, same.type, first_wins=first_wins)
        both.append(Column(column.name, kind))
    return (*both, *added.values())


def _united(name: str, one: ColumnType, other: ColumnType, *, first_wins: bool) -> ColumnType:
    match one, other:
        case Struct(fields), Struct(more):
            return Struct(united(fields, more, first_wins=first_wins))
        case Array(item), Array(more_item):
            return Array(_united(name, item, more_item, first_wins=first_wins))
        case Map(value), Map(more_value):
            return Map(_united(name, value, more_value, first_wins=first_wins))
        case _ if one == other or first_wins:
            return one
    raise ValueError(f"{name} is {one} and {other}")
