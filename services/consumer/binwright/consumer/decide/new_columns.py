"""Which columns a table gets for fields of JSON that it has no column for.

Consumers propose them, each by the records that it reads, and the table's writer decides: so a
column has one type whatever else others saw. What does not fit it stays among the rest.
"""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from binwright.tables.columns import (
    OF_RECORD,
    REST,
    Column,
    Columns,
    Simple,
    column_names,
    folded,
)

ADDED = "A new field of JSON, added by binwright"
"""The comment of such a column in the table: it takes what fits it, and no other of a person's."""
MOST_ADDED = 200
"""Such columns of a table: fields with more names are keys of a map, rather than fields."""
LONGEST_NAME = 128
_KINDS = ("boolean", "bigint", "double", "string")
"""The types of such columns, each preferred to those before it."""
EXACT_IN_DOUBLE = 1 << 53
BIGINT_END = 1 << 63
_OF_DELTA = frozenset(["_metadata", "_change_type", "_commit_version", "_commit_timestamp"])
_TAKEN = frozenset(folded(name) for name in (*OF_RECORD, REST.name, *_OF_DELTA))


@dataclass(frozen=True, slots=True)
class Growth:
    """What a table gets."""

    columns: Columns
    left: int = 0  # fields for which it has no room


def type_of(value: object) -> Simple | None:
    """Return the type of the column that takes a value of JSON; None: none takes it exactly."""
    match value:
        case bool():
            return Simple("boolean")
        case int() if -BIGINT_END <= value < BIGINT_END:
            return Simple("bigint")
        case float() if fits_double(value):
            return Simple("double")
        case str():
            return Simple("string")
        case _:
            return None


def fits_double(value: float) -> bool:
    """Return whether a number was surely no integer that a double rounds."""
    return -EXACT_IN_DOUBLE < value < EXACT_IN_DOUBLE


def may_be_added(name: str) -> bool:
    """Return whether a table may get a column of this name, which is that of the field."""
    fits = len(name) <= LONGEST_NAME and folded(name) not in _TAKEN
    return fits and column_names([name]) == (name,)


def proposed_together(proposed: Iterable[Column]) -> Columns:
    """Return one column for each name, in their order; of names alike but for case the first.

    Of several types the last of boolean, bigint, double and string is taken, whatever the order.
    """
    kinds: dict[str, int] = {}
    for column in proposed:
        if str(column.type) in _KINDS and may_be_added(column.name):
            rank = _KINDS.index(str(column.type))
            kinds[column.name] = max(rank, kinds.get(column.name, rank))
    by_name = {folded(name): name for name in sorted(kinds, reverse=True)}
    return tuple(Column(name, Simple(_KINDS[kinds[name]])) for name in sorted(by_name.values()))


def proposed_by(fixed: Columns, files: Iterable[tuple[Columns, Columns]]) -> frozenset[Column]:
    """Return the columns that files propose: those that they have, else those that they name.

    Args:
        fixed: Columns of the settings: nobody proposes them.
        files: The columns of each, and those that it names.
    """
    of_settings = {folded(column.name) for column in fixed}
    had, named = set[Column](), set[Column]()
    for columns, more in files:
        had.update(column for column in columns if folded(column.name) not in of_settings)
        named.update(more)
    names = of_settings | {folded(column.name) for column in had}
    return frozenset(had | {column for column in named if folded(column.name) not in names})


def growth(proposed: Iterable[Column], there: Collection[str], added: int) -> Growth:
    """Return which of the proposed columns a table gets.

    Args:
        proposed: By all files of a batch.
        there: Names of its columns: whatever their types, they stay as they are.
        added: How many of these it got like this.
    """
    names = {folded(name) for name in there}
    new = [column for column in proposed_together(proposed) if folded(column.name) not in names]
    room = max(MOST_ADDED - added, 0)
    return Growth(tuple(new[:room]), len(new[room:]))


def filled(added: Columns, declared: Columns) -> Columns:
    """Return which of the columns that a table got like this are filled beside declared ones.

    What a later version has added, with a type that this one does not fill, is not.
    """
    return tuple(_filled(added, {folded(column.name) for column in declared}))


def _filled(added: Columns, taken: set[str]) -> Iterator[Column]:
    for column in added:
        if str(column.type) in _KINDS and folded(column.name) not in taken | _TAKEN:
            taken = taken | {folded(column.name)}
            yield column
