"""Columns of any shape, for properties."""

from hypothesis import strategies as st

from binwright.tables.columns import (
    KAFKA,
    MOST_DIGITS,
    SIMPLE,
    Array,
    Column,
    Columns,
    ColumnType,
    Decimal,
    Map,
    Simple,
    Struct,
    folded,
)

NAMES = st.one_of(
    st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,5}", fullmatch=True),
    st.text(
        st.characters(exclude_categories=["Cs"], exclude_characters=" ,;{}()\n\t="), min_size=1
    ),
).filter(lambda name: name.casefold() != KAFKA)
"""What columns may be called."""
FIELD_NAMES = (
    NAMES
    | st.text(max_size=4)
    | st.sampled_from(["a", "A", "a b", "a_b", "a_b_2", "ß", "ss", "", "\u0131", "_kafka"])
)
"""What fields of values may be called."""


def columns_of(
    types: st.SearchStrategy[ColumnType], names: st.SearchStrategy[str] = NAMES
) -> st.SearchStrategy[Columns]:
    """Return columns of these types; those whose names differ in case only are left out."""
    columns = st.builds(Column, names, types)
    return st.lists(
        columns, min_size=1, max_size=4, unique_by=lambda column: folded(column.name)
    ).map(tuple)


def fields_of(types: st.SearchStrategy[ColumnType]) -> st.SearchStrategy[Columns]:
    """Return fields of values: no two have the same name, letter by letter."""
    fields = st.builds(Column, FIELD_NAMES, types)
    return st.lists(fields, min_size=1, max_size=4, unique_by=lambda each: each.name).map(tuple)


LEAVES = st.sampled_from(sorted(SIMPLE)).map(Simple) | st.integers(1, MOST_DIGITS).flatmap(
    lambda digits: st.builds(Decimal, st.just(digits), st.integers(0, digits))
)
TYPES: st.SearchStrategy[ColumnType] = st.recursive(
    LEAVES,
    lambda types: (
        st.builds(Array, types) | st.builds(Map, types) | st.builds(Struct, columns_of(types))
    ),
    max_leaves=5,
)
FIELD_TYPES: st.SearchStrategy[ColumnType] = st.recursive(
    LEAVES,
    lambda types: (
        st.builds(Array, types) | st.builds(Map, types) | st.builds(Struct, fields_of(types))
    ),
    max_leaves=5,
)
