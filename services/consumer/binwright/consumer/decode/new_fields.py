"""Finds fields of JSON objects that no column has: counts them by name, or keeps them as JSON."""

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

from binwright.consumer.decide.new_columns import (
    MOST_ADDED,
    fits_double,
    may_be_added,
    proposed_together,
    type_of,
)
from binwright.consumer.decode.json_records import as_written, json_text
from binwright.consumer.decode.one_by_one import Fields, Misfit
from binwright.tables.columns import REST, Array, Column, Columns, ColumnType, Map, Simple, Struct

MOST_NAMES, LONGEST_NAME = 100, 128
"""Names that are counted apart, and their characters."""
MOST_PROPOSED = 2 * MOST_ADDED  # columns, of one file
BIGINT, DOUBLE = Simple("bigint"), Simple("double")
OTHER_NAMES = "…"
"""Of fields whose names are counted together: there are more."""

Rest = Any
"""What is left of a value, in the value's own shape; None: nothing."""
_RestOf = Callable[[Any], Rest]
_Paths = Callable[[Any, str], Iterator[str]]


class NewFields:
    """What objects have beyond these columns. A field that is null is none: it loses nothing."""

    def __init__(self, columns: Columns) -> None:
        self._rest_of, self._paths = _of_struct(columns)

    def rest(self, document: Any) -> Rest:
        """Return the fields without a column; of objects within it likewise, in their places."""
        return self._rest_of(document)

    def count(self, rest: Rest, counts: Counter[str], within: str = "") -> None:
        """Count what is left of a document by name, as in `by.items[].price`."""
        for path in () if rest is None else self._paths(rest, within):
            name = path if path in counts or len(counts) < MOST_NAMES else OTHER_NAMES
            counts[name] += 1


class CountedFields:
    """A `Beyond` that leaves new fields out, and counts them."""

    def __init__(self, columns: Columns, counts: Counter[str], within: str = "") -> None:
        """Count what these columns lack, in `counts`, within a column if one is named."""
        self.columns: Columns = ()
        self.proposed: Columns = ()
        self._new, self._counts, self._within = NewFields(columns), counts, within

    def fields(self, _value: bytes, document: Any) -> Fields:
        """Return none."""
        self._new.count(self._new.rest(document), self._counts, self._within)
        return {}


class KeptFields:
    """A `Beyond` that keeps new fields in a column of their own, as JSON."""

    def __init__(self, columns: Columns) -> None:
        """Keep what these columns lack."""
        self.columns: Columns = (REST,)
        self.proposed: Columns = ()
        self._new = NewFields(columns)

    def fields(self, value: bytes, document: Any) -> Fields:
        """Return the column, if there are new fields."""
        if self._new.rest(document) is None:
            return {}
        return {REST.name: _rest_text(self._new.rest(as_written(value)))}


class AddedFields:
    """A `Beyond` that fills columns which the table got for new fields, and keeps what is left.

    A value that does not fit its column exactly is left, too. What is left is counted by name, and
    columns are proposed for it.
    """

    def __init__(self, columns: Columns, added: Columns, counts: Counter[str]) -> None:
        """Fill the `added` columns, and keep what neither these nor `columns` have."""
        self.columns: Columns = (*added, REST)
        self._added = {column.name: column.type for column in added}
        self._known = frozenset(column.named for column in (*columns, *added))
        self._new, self._counts = NewFields((*columns, *added)), counts
        self._proposed: dict[tuple[str, ColumnType], None] = {}

    @property
    def proposed(self) -> Columns:
        """Return columns for fields that it was given."""
        return proposed_together(Column(*each) for each in self._proposed)

    def fields(self, value: bytes, document: Any) -> Fields:
        """Return the columns that are filled."""
        filled, misfits = {}, dict[str, Any]()
        for name, kind in self._added.items():
            if (there := document.get(name)) is not None:
                if _fits(there, kind):
                    filled[name] = float(there) if type(there) is int and kind == DOUBLE else there
                else:
                    misfits[name] = there
        rest = self._new.rest(document)
        if rest is None and not misfits:
            return filled
        for name, there in (rest or {}).items():
            if name not in self._known and (proposed := type_of(there)) is not None:
                self._propose(name, proposed)
        self._new.count({**(rest or {}), **misfits}, self._counts)
        written = as_written(value)
        left = {**(self._new.rest(written) or {}), **{name: written[name] for name in misfits}}
        return {**filled, REST.name: _rest_text(left)}

    def _propose(self, name: str, kind: ColumnType) -> None:
        if len(self._proposed) < MOST_PROPOSED and may_be_added(name):
            self._proposed[name, kind] = None


def _fits(value: Any, kind: ColumnType) -> bool:
    """Return whether a column takes a value exactly."""
    own = type_of(value)
    return own == kind or (kind == DOUBLE and own == BIGINT and fits_double(value))


def _rest_text(rest: Rest) -> str:
    try:
        return json_text(rest)
    except Misfit as exc:
        exc.path = REST.name
        raise


def _of(kind: ColumnType) -> tuple[_RestOf, _Paths] | None:
    """Return what finds new fields within values of a type; None: they have none."""
    match kind:
        case Struct(fields):
            return _of_struct(fields)
        case Array(item):
            within = _of(item)
            return within and _of_items(*within)
        case Map(value):
            within = _of(value)
            return within and _of_values(*within)
        case _:
            return None


def _of_struct(columns: Columns) -> tuple[_RestOf, _Paths]:
    names = frozenset(column.named for column in columns)
    by_field = {column.named: _of(column.type) for column in columns}
    within = {name: each for name, each in by_field.items() if each is not None}

    def rest(value: Any) -> Rest:
        left = {}
        if not names.issuperset(value):
            left = {n: v for n, v in value.items() if n not in names and v is not None}
        for name, (rest_of, _) in within.items():
            part = value.get(name)
            if part is not None and (more := rest_of(part)) is not None:
                left[name] = more
        return left or None

    def paths(left: Rest, path: str) -> Iterator[str]:
        for name, part in left.items():
            place = _cut(f"{path}.{name[: LONGEST_NAME + 1]}" if path else name)
            if name in within:
                yield from within[name][1](part, place)
            else:
                yield place

    return rest, paths


def _of_items(rest_of: _RestOf, paths_of: _Paths) -> tuple[_RestOf, _Paths]:
    def rest(value: Any) -> Rest:
        left = [None if item is None else rest_of(item) for item in value]
        return None if all(item is None for item in left) else left

    def paths(left: Rest, path: str) -> Iterator[str]:
        for item in left:
            if item is not None:
                yield from paths_of(item, f"{path}[]")

    return rest, paths


def _of_values(rest_of: _RestOf, paths_of: _Paths) -> tuple[_RestOf, _Paths]:
    def rest(value: Any) -> Rest:
        rests = {k: rest_of(v) for k, v in value.items() if v is not None}
        return {k: v for k, v in rests.items() if v is not None} or None

    def paths(left: Rest, path: str) -> Iterator[str]:
        for part in left.values():
            yield from paths_of(part, f"{path}{{}}")

    return rest, paths


def _cut(name: str) -> str:
    """Return a name that a line of a log, and a message, may have."""
    short = name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME - 1]}…"
    return short if short.isprintable() else ascii(short)[1:-1][:LONGEST_NAME]
