"""What schemas of values have in common: that they can be refused, and the names of columns."""

from collections import Counter

from binwright.protocol.columns import OF_RECORD, Columns


class SchemaRefused(Exception):
    """A schema cannot be read, or has no columns; says why."""


def check_names(columns: Columns) -> None:
    """Raise `SchemaRefused` if SQL would take two of these names for the same."""
    names = Counter(column.name.casefold() for column in columns)
    if doubled := sorted(name for name, count in names.items() if count > 1):
        raise SchemaRefused(f"has fields whose names differ in case only: {doubled[0]}")


def check_place(columns: Columns) -> None:
    """Raise `SchemaRefused` if a table's column would have the name of one of the record."""
    for name in (column.name.casefold() for column in columns):
        if name in OF_RECORD:
            raise SchemaRefused(f"has a field {name}, which is {OF_RECORD[name]}")
