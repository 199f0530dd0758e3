"""What schemas of values have in common: that they can be refused, and notes of fields."""

from collections.abc import Iterator

from binwright.tables.columns import Array, Column, Columns, ColumnType, Map, Simple, Struct

IS_PRESENT = Column("_present", Simple("boolean"))
"""The field of what has no other, which is true: Delta has no struct without any.

A struct it is, since later versions may give it fields.
"""


class SchemaRefused(Exception):
    """A schema cannot be read, or has no columns; says why."""


class NoColumn(SchemaRefused):
    """A schema is valid, and no column has its type."""


class SchemaTooLarge(SchemaRefused):
    """A schema is larger, or takes longer to read, than one may."""


def renamed(columns: Columns, path: str = "") -> Iterator[str]:
    """Yield which fields of values have columns of other names."""
    for column in columns:
        if column.named != column.name:
            yield f"{path}{column.named} is in the column {path}{column.name}"
        yield from renamed(_fields(column.type), f"{path}{column.name}.")


def _fields(kind: ColumnType) -> Columns:
    match kind:
        case Array(inner) | Map(inner):
            return _fields(inner)
        case _:
            return kind.fields if isinstance(kind, Struct) else ()
