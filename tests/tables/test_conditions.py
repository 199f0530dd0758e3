"""Conditions on rows: what is one, which columns it names, and what it may not have."""

import pytest

from binwright.tables.conditions import parse_condition


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("id = 5", [("id",)]),
        ("customer.name = 'Ann' AND NOT id IN (1, -2.5e3, 3L)", [("customer", "name"), ("id",)]),
        ("`first name` LIKE 'O\\'Neill; DROP TABLE x --%'", [("first name",)]),
        ("`a``b`.`c.d` IS NOT NULL", [("a`b", "c.d")]),
        ("_kafka.key = X'00ff' or _kafka.key <=> null", [("_kafka", "key")]),
        ("at >= TIMESTAMP '2026-01-01' and day < date '2026-01-01'", [("at",), ("day",)]),
        ("date = '2026-01-01' AND x = 1", [("date",), ("x",)]),
        ("lower(trim(mail)) = 'a@b.c'", [("mail",)]),
        ("try_cast(key as string) = 'ann'", [("key",)]),
        ("(id BETWEEN 1 AND 2) and id <> 3 and ok = true", [("id",), ("ok",)]),
    ],
)
def test_a_condition_names_columns(text: str, columns: list[tuple[str, ...]]) -> None:
    found = parse_condition(text)
    assert (found.text, [*found.columns]) == (text, columns)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "names no column"),
        ("true", "names no column"),
        ("1 = 1", "names no column"),
        ("id = 5; DROP TABLE orders", "'; DROP TABLE orders' is no part"),
        ("id = 5 -- more", "'-- more' is no part"),
        ("id = 5 /* more */", "is no part"),
        ('name = "ann"', "texts are in single quotes"),
        ("name = 'ann", "is no part"),
        ("id = 5x", "is no part"),
        ("id IN (SELECT id FROM delta.`/lake/others`)", "no SELECT in a condition"),
        ("EXISTS (id)", "no EXISTS"),
        ("id = 1 OR rand() < 0.5", "no rand in a condition.*functions array_contains"),
        ("at < now()", "no now"),
        ("reflect('java.lang.Runtime', id) = 1", "no reflect"),
        ("at < current_timestamp()", "no current_timestamp"),
        ("at > to_date('2026-01-01') - INTERVAL 1 DAY", "is no part"),
        ("try_cast(id AS struct) = 1", "no type struct"),
        ("(id = 5", "is not closed"),
        ("id = 5) OR (id = 6", "closed that was not opened"),
    ],
)
def test_what_is_no_condition_is_refused_with_its_fault(text: str, fault: str) -> None:
    with pytest.raises(ValueError, match=fault):
        parse_condition(text)


def test_current_words_without_parentheses_are_columns() -> None:
    """Spark takes them for functions where no column has their name: the table must have one."""
    found = parse_condition("at < current_date")
    with pytest.raises(ValueError, match="the table has no column current_date; it has: at"):
        found.check("the table", ["at"])


def test_columns_must_be_there() -> None:
    condition = parse_condition("Customer.name = 'Ann' AND id = 5")
    condition.check("the table", ["customer", "ID"])
    with pytest.raises(ValueError, match=r"the table has no column Customer; it has: id$"):
        condition.check("the table", ["id"])
    with pytest.raises(ValueError, match=r"it has: .*c29, …$"):
        condition.check("the table", [f"c{number}" for number in range(40)])


def test_a_condition_on_records_alone_is_of_rows_and_bad_records() -> None:
    assert parse_condition("_kafka.offset = 1 AND _KAFKA.partition = 0").is_of_records
    assert not parse_condition("_kafka.offset = 1 AND value = 'x'").is_of_records
