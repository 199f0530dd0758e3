"""Conditions on rows: what is one, which columns it names, and what it may not have."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from binwright.tables.conditions import (
    COMPARISONS,
    CONSTANTS,
    FUNCTIONS,
    LIKES,
    LITERALS,
    MOST_NESTED,
    TYPES,
    WORDS,
    parse_condition,
)


@pytest.mark.parametrize(
    ("text", "sql", "columns"),
    [
        ("id = 5", "`id` = 5", [("id",)]),
        (
            "customer.name = 'Ann' AND NOT id IN (1, -2.5e3, 3L)",
            "`customer`.`name` = 'Ann' AND NOT `id` IN (1, -2.5e3, 3L)",
            [("customer", "name"), ("id",)],
        ),
        (
            "`first name` LIKE 'O\\'Neill; DROP TABLE x --%'",
            "`first name` LIKE 'O\\'Neill; DROP TABLE x --%'",
            [("first name",)],
        ),
        ("`a``b`.`c.d` IS NOT NULL", "`a``b`.`c.d` IS NOT NULL", [("a`b", "c.d")]),
        (
            "_kafka.key = X'00ff' or _kafka.key <=> null",
            "`_kafka`.`key` = X'00ff' OR `_kafka`.`key` <=> NULL",
            [("_kafka", "key")],
        ),
        (
            "at >= TIMESTAMP '2026-01-01' and day < date '2026-01-01'",
            "`at` >= TIMESTAMP'2026-01-01' AND `day` < DATE'2026-01-01'",
            [("at",), ("day",)],
        ),
        ("date = '2026-01-01' AND x = 1", "`date` = '2026-01-01' AND `x` = 1", [("date",), ("x",)]),
        ("lower(trim(mail)) = 'a@b.c'", "lower(trim(`mail`)) = 'a@b.c'", [("mail",)]),
        ("try_cast(key as string) = 'ann'", "try_cast(`key` AS STRING) = 'ann'", [("key",)]),
        (
            "(id BETWEEN 1 AND 2) and id <> 3 and ok = true",
            "(`id` BETWEEN 1 AND 2) AND `id` <> 3 AND `ok` = TRUE",
            [("id",), ("ok",)],
        ),
        ("select is true or not not a", "`select` IS TRUE OR NOT NOT `a`", [("select",), ("a",)]),
        ("a NOT rlike coalesce(b, '')", "`a` NOT RLIKE coalesce(`b`, '')", [("a",), ("b",)]),
        (
            r"a not in ('it''s ${env:HOME}', '\$ \\$', '$')",
            r"`a` NOT IN ('it\'s \u0024{env:HOME}', '\u0024 \\\u0024', '\u0024')",
            [("a",)],
        ),
    ],
)
def test_a_condition_names_columns_and_is_rewritten(
    text: str, sql: str, columns: list[tuple[str, ...]]
) -> None:
    condition = parse_condition(text)
    assert (condition.text, [*condition.columns]) == (sql, columns)
    assert parse_condition(sql) == condition


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "its end, and not a column"),
        ("true", "names no column"),
        ("1 = 1", "names no column"),
        ("id = 5; DROP TABLE orders", "'; DROP TABLE orders' is no part"),
        ("id = 5 -- more", "'-- more' is no part"),
        ("id = 5 /* more */", "is no part"),
        ('name = "ann"', "texts are in single quotes"),
        ("name = 'ann", "is no part"),
        ("id = 5x", "is no part"),
        ("id = 1.5L", "is no part"),
        ("id IN (SELECT id FROM delta.`/lake/others`)", "id behind SELECT"),
        ("EXISTS (id)", "no exists in a condition"),
        ("`lower`(id) = 'a'", "no `lower` in a condition"),
        ("id = 1 OR rand() < 0.5", "no rand in a condition.*functions array_contains"),
        ("at < now()", "no now"),
        ("reflect('java.lang.Runtime', id) = 1", "no reflect"),
        ("at < current_timestamp()", "no current_timestamp"),
        ("at > to_date('2026-01-01') - INTERVAL 1 DAY", "is no part"),
        ("try_cast(id AS struct) = 1", "struct behind AS"),
        ("try_cast(id, int) = 1", ", behind id, and not as"),
        ("id in 5", r"5 behind in, and not \("),
        ("id between 5 or 6", "or behind 5, and not and"),
        ("id not = 5", "= behind not, and not IN"),
        ("id = = 5", "= behind =, and not a column"),
        ("id = like", "like behind ="),
        ("id is 5", "5 behind is, and not null"),
        ("lower()", r"\) behind \(, and not a column"),
        ("(id = 5", r"its end behind 5, and not \)"),
        ("id = 5) OR (id = 6", r"\) behind 5"),
        ("`${env:HOME}` = 5", "a name with"),
        # Spark alone would read these as something else: a raw text, a script, an alias.
        (r"r'\' = r OR rand() < 2 OR exists(select 1 from x) --'", "behind r"),
        ("a IN (MAP a USING 'touch /tmp/x')", "a behind MAP"),
        ("a = 'x' b", "b behind 'x'"),
        ("a = 'x' 'y'", "'y' behind 'x'"),
        ("a = 1 AS string", "AS behind 1"),
        ("a = 1 ORDER", "ORDER behind 1"),
    ],
)
def test_what_is_no_condition_is_refused_with_its_fault(text: str, fault: str) -> None:
    with pytest.raises(ValueError, match=fault):
        parse_condition(text)


def test_parentheses_are_within_each_other_so_often() -> None:
    def nested(often: int) -> str:
        return f"{'(' * often}a{')' * often}"

    parse_condition(f"{nested(MOST_NESTED - 1)} OR {nested(MOST_NESTED - 1)}")
    for text in (nested(MOST_NESTED), "(" * 10_000):
        with pytest.raises(ValueError, match="more than 50 parentheses"):
            parse_condition(text)


PLAIN = {*WORDS, *TYPES, *FUNCTIONS, *LITERALS}
PARTS = st.sampled_from(
    [
        *(*PLAIN, *COMPARISONS, *"(),", "a", "b.c", "`d e`", "`rand`", "r", "select", "map"),
        *("using", "rand", "current_date", "1", "-2.5", "3L", "'x'", r"'\''", r"'\\'", "''"),
        *("'it''s'", "'--'", "'${a}'", "X'00'", ";", "--", "/*", "*/", '"', "`", "'", "\\", "$"),
    ]
)
TEXTS_AND_NAMES = re.compile(r"(?<![A-Za-z0-9_'])(?:DATE|TIMESTAMP|X)?'(?:[^'\\]|\\.)*'|`[^`]+`")


@given(st.lists(PARTS, max_size=14), st.sampled_from(["", " "]))
def test_whatever_is_written_spark_is_given_names_in_backquotes_and_known_words(
    parts: list[str], between: str
) -> None:
    """Outside of texts and backquotes there is no name, no comment, and no second statement."""
    try:
        condition = parse_condition(between.join(parts))
    except ValueError:
        return
    assert "${" not in condition.text
    rest = TEXTS_AND_NAMES.sub(" 0 ", condition.text)
    assert re.fullmatch(r"[A-Za-z0-9_ (),.<=>!L-]*", rest)
    assert "--" not in rest
    assert {word.lower() for word in re.findall(r"[A-Za-z_]\w*", rest)} <= PLAIN
    assert parse_condition(condition.text) == condition


VALUES = st.recursive(
    st.sampled_from(["a", "b.c", "`d e`", "1", "'x'", "DATE '2026-01-01'", *CONSTANTS]),
    lambda inner: st.one_of(
        inner.map("({})".format),
        inner.map("lower({})".format),
        st.tuples(inner, inner).map("coalesce({0[0]},{0[1]})".format),
        inner.map("TRY_CAST({} as int)".format),
    ),
    max_leaves=5,
)
PREDICATES = st.one_of(
    VALUES,
    st.tuples(VALUES, st.sampled_from(COMPARISONS), VALUES).map(" ".join),
    st.tuples(VALUES, st.sampled_from(["", "not "]), VALUES).map(
        "{0[0]} {0[1]}In ({0[2]},1)".format
    ),
    st.tuples(VALUES, st.sampled_from(["", "NOT "]), st.sampled_from(LIKES), VALUES).map(
        "{0[0]} {0[1]}{0[2]} {0[3]}".format
    ),
    st.tuples(VALUES, VALUES, VALUES).map("{0[0]} between {0[1]} and {0[2]}".format),
    st.tuples(VALUES, st.sampled_from(CONSTANTS)).map("{0[0]} is not {0[1]}".format),
)
CONDITIONS = st.lists(
    st.tuples(st.sampled_from(["", "not "]), PREDICATES).map("".join), min_size=1, max_size=4
).flatmap(lambda terms: st.sampled_from(["and", "OR"]).map(lambda word: f" {word} ".join(terms)))


@given(CONDITIONS)
def test_what_the_grammar_makes_is_read(text: str) -> None:
    condition = parse_condition(f"id = 1 AND ({text})")
    assert condition.columns[0] == ("id",)
    bare = re.sub(r"[\s`]", "", condition.text).lower()
    assert bare == re.sub(r"[\s`]", "", f"id = 1 AND ({text})").lower()


def test_current_words_without_parentheses_are_columns() -> None:
    """Spark takes them for functions where no column has their name: the table must have one."""
    found = parse_condition("at < current_date")
    with pytest.raises(ValueError, match="name 2 in it is no column of the table, which has: at"):
        found.check("the table", ["at"])


def test_columns_must_be_there() -> None:
    condition = parse_condition("Customer.name = 'Ann' AND id = 5")
    condition.check("the table", ["customer", "ID"])
    with pytest.raises(ValueError, match=r"name 1 in it is no column of the table, which has: id$"):
        condition.check("the table", ["id"])
    with pytest.raises(ValueError, match=r"which has: .*c29, …$"):
        condition.check("the table", [f"c{number}" for number in range(40)])


def test_a_condition_on_records_alone_is_of_rows_and_bad_records() -> None:
    assert parse_condition("_kafka.offset = 1 AND _KAFKA.partition = 0").is_of_records
    assert not parse_condition("_kafka.offset = 1 AND value = 'x'").is_of_records
