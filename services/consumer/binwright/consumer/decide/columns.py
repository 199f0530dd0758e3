"""Columns of files that were staged under different settings, or by different schemas."""

from binwright.consumer.decide.widening import wider
from binwright.tables.columns import Array, Column, Columns, ColumnType, Map, Struct, folded


def united(
    one: Columns, other: Columns, *, first_wins: bool = False, widen: bool = False
) -> Columns:
    """Return the columns of both, those of `one` first; so with the fields of structs.

    Names are compared as Spark does, whatever their case; those of `one` stay.

    Args:
        one: Columns.
        other: Columns.
        first_wins: Whether a column with another type in each keeps that of `one`.
        widen: Whether such a column gets the wider type, where one holds all values of the other.

    Raises:
        ValueError: A column has another type in each, and neither of both decides.
    """
    added = {folded(column.name): column for column in other}
    both = []
    for column in one:
        same = added.pop(folded(column.name), column)
        kind = _united(column.name, column.type, same.type, (first_wins, widen))
        both.append(Column(column.name, kind, column.field))
    return (*both, *added.values())


def _united(
    name: str, one: ColumnType, other: ColumnType, decides: tuple[bool, bool]
) -> ColumnType:
    first_wins, widen = decides
    match one, other:
        case Struct(fields), Struct(more):
            return Struct(united(fields, more, first_wins=first_wins, widen=widen))
        case Array(item), Array(more_item):
            return Array(_united(name, item, more_item, decides))
        case Map(value), Map(more_value):
            return Map(_united(name, value, more_value, decides))
        case _ if widen and (wide := wider(one, other)):
            return wide
        case _ if one == other or first_wins:
            return one
    raise ValueError(f"{name} is {one} and {other}")
