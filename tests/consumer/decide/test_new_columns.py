"""A table gets one column for a new field, whatever consumers propose, and in whatever order."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from binwright.consumer.decide.new_columns import (
    EXACT_IN_DOUBLE,
    LONGEST_NAME,
    MOST_ADDED,
    Growth,
    filled,
    growth,
    may_be_added,
    proposed_by,
    proposed_together,
    type_of,
)
from binwright.tables.columns import Column, Columns, Simple, columns_text, parse_row


def columns(text: str) -> Columns:
    return parse_row(text) if text else ()


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (True, "boolean"),
        (0, "bigint"),
        (2**63 - 1, "bigint"),
        (-(2**63), "bigint"),
        (2**63, None),
        (-(2**63) - 1, None),
        (1.5, "double"),
        (float(EXACT_IN_DOUBLE), None),
        (-1e300, None),
        ("", "string"),
        (None, None),
        ([], None),
        ({}, None),
    ],
)
def test_a_value_has_a_type_if_a_column_takes_it_exactly(value: object, kind: str | None) -> None:
    assert type_of(value) == (None if kind is None else Simple(kind))


@pytest.mark.parametrize(
    ("name", "may"),
    [
        ("a", True),
        ("é x".replace(" ", "-"), True),
        ("a.b", True),
        ("`", True),
        ("x" * LONGEST_NAME, True),
        ("x" * (LONGEST_NAME + 1), False),
        ("", False),
        ("a b", False),
        ("a=b", False),
        ("a\u2028", False),
        ("_kafka", False),
        ("_Kafka_Key", False),
        ("_KAFKA_DATE", False),
        ("_rest", False),
        ("_REST", False),
        ("_metadata", False),
        ("_change_type", False),
        ("_id", True),
    ],
)
def test_a_field_gets_a_column_of_its_own_name_or_none(name: str, may: bool) -> None:
    assert may_be_added(name) is may


@pytest.mark.parametrize(
    ("proposed", "together"),
    [
        ("", ""),
        ("b string, a bigint", "a bigint, b string"),
        ("x date", ""),
        ("x struct<y: int>", ""),
        ("_rest string", ""),
    ],
)
def test_proposals_become_columns_in_order_of_their_names(proposed: str, together: str) -> None:
    assert columns_text(proposed_together(columns(proposed))) == together


@pytest.mark.parametrize(
    ("kinds", "taken"),
    [
        (("boolean", "bigint"), "bigint"),
        (("bigint", "double"), "double"),
        (("string", "bigint"), "string"),
        (("double", "boolean", "string"), "string"),
    ],
)
def test_of_several_types_one_is_taken_in_any_order(kinds: tuple[str, ...], taken: str) -> None:
    there = [Column("x", Simple(kind)) for kind in kinds]
    for order in (there, there[::-1]):
        assert proposed_together(order) == (Column("x", Simple(taken)),)


def test_of_names_alike_but_for_case_one_gets_a_column() -> None:
    there = [Column(name, Simple("bigint")) for name in ("id", "Id", "ID")]
    for order in (there, there[::-1]):
        assert [column.name for column in proposed_together(order)] == ["ID"]


KINDS = st.sampled_from(["boolean", "bigint", "double", "string", "date"])
PROPOSED = st.lists(st.builds(Column, st.sampled_from("aAbB"), KINDS.map(Simple)), max_size=8)


@given(PROPOSED, PROPOSED)
def test_proposals_join_to_the_same_columns_in_any_order(
    one: list[Column], other: list[Column]
) -> None:
    assert proposed_together([*one, *other]) == proposed_together([*other, *one])


def test_files_propose_what_they_have_before_what_they_name() -> None:
    """The rows of a file with a column are there already: its type is that of its values."""
    fixed = columns("id bigint, `_rest` string")
    files = [
        (columns("id bigint, x bigint, `_rest` string"), columns("y string")),
        (columns("ID bigint, `_rest` string"), columns("X string, id string, z double")),
    ]
    assert proposed_by(fixed, files) == {*columns("x bigint, y string, z double")}


def test_what_a_table_has_stays_as_it_is() -> None:
    assert growth(columns("ID string, x string, y bigint"), {"id", "X"}, 0) == Growth(
        columns("y bigint")
    )


@pytest.mark.parametrize(
    ("added", "gets", "left"),
    [(0, 3, 0), (MOST_ADDED - 2, 2, 1), (MOST_ADDED, 0, 3), (MOST_ADDED + 9, 0, 3)],
)
def test_a_table_gets_no_more_columns_than_it_may(added: int, gets: int, left: int) -> None:
    proposed = columns("a int, b bigint, c string, d double")
    found = growth(proposed, {"id"}, added)
    assert (found.columns, found.left) == (columns("b bigint, c string, d double")[:gets], left)


def test_consumers_fill_columns_that_the_settings_have_not_and_of_types_that_they_know() -> None:
    added = columns("x bigint, ID bigint, d date, s string, `_rest` string")
    assert filled(added, columns("id bigint")) == columns("x bigint, s string")
    twice = (*columns("x bigint"), *columns("X string"))
    assert filled(twice, ()) == columns("x bigint")
