"""Columns of files that were staged under different settings, as one batch has them."""

from binwright.protocol.columns import Array, Column, Columns, ColumnType, Map, Struct


def united(one: Columns, other: Columns) -> Columns:
    """Return the columns of both, those of `one` first; so with the fields of structs.

    Names are compared as Spark does, whatever their case; those of `one` stay.

    Raises:
        ValueError: A column has another type in each.
    """
    added = {column.name.lower(): column for column in other}
    both = []
    for column in one:
        same = added.pop(column.name.lower(), column)
        both.append(Column(column.name, _united(column.name, column.type, same.type)))
    return (*both, *added.values())


def _united(name: str, one: ColumnType, other: ColumnType) -> ColumnType:
    match one, other:
        case Struct(fields), Struct(more):
            return Struct(united(fields, more))
        case Array(item), Array(more_item):
            return Array(_united(name, item, more_item))
        case Map(value), Map(more_value):
            return Map(_united(name, value, more_value))
        case _ if one == other:
            return one
    raise ValueError(f"{name} is {one} and {other}")
