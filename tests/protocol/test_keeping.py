"""Which rows of a table may have been deleted for their age, by the table's own properties."""

import pytest

from binwright.protocol.keeping import (
    KEEP_S,
    KEPT_SINCE_MS,
    WHERE,
    changed_filters,
    changed_keeping,
    filters,
    kept_since_ms,
)

NOW_MS = 1_000_000_000
DAY_S = 86_400.0


def at(keep_s: float, properties: dict[str, str], now_ms: int) -> dict[str, str]:
    return properties | changed_keeping(properties, keep_s, now_ms)


def test_a_table_without_properties_has_kept_all() -> None:
    assert kept_since_ms({}, NOW_MS) is None
    assert changed_keeping({}, 0.0, NOW_MS) == {}


def test_older_rows_may_be_gone() -> None:
    table = at(3_600.0, {}, NOW_MS)
    assert table == {KEEP_S: "3600"}
    assert kept_since_ms(table, NOW_MS) == NOW_MS - 3_600_000
    assert changed_keeping(table, 3_600.0, NOW_MS) == {}


@pytest.mark.parametrize("days", [36.5123, 0.0003, 12_345, 1 / 3])
def test_a_table_that_is_opened_again_is_not_changed_again(days: float) -> None:
    table = at(days * DAY_S, {}, NOW_MS)
    assert changed_keeping(table, days * DAY_S, NOW_MS) == {}


@pytest.mark.parametrize("keep_s", [0.0, 10 * DAY_S])
def test_what_was_deleted_stays_deleted_when_rows_are_kept_longer(keep_s: float) -> None:
    table = at(keep_s, at(3_600.0, {}, NOW_MS - 5_000_000), NOW_MS)
    assert kept_since_ms(table, NOW_MS + 1_000) == NOW_MS - 3_600_000


def test_the_latest_counts_however_often_it_changes() -> None:
    table = at(100_000.0, at(10_000.0, at(3_600.0, {}, NOW_MS), NOW_MS), NOW_MS)
    assert kept_since_ms(table, NOW_MS) == NOW_MS - 3_600_000
    assert kept_since_ms(table, NOW_MS + 200_000_000) == NOW_MS + 100_000_000


@pytest.mark.parametrize("text", ["soon", "", "-5"])
def test_what_a_person_wrote_there_is_no_time(text: str) -> None:
    assert kept_since_ms({KEEP_S: text, KEPT_SINCE_MS: text}, NOW_MS) is None
    assert changed_keeping({KEEP_S: text}, 60.0, NOW_MS) == {KEEP_S: "60"}


def test_a_table_knows_every_filter_that_it_had() -> None:
    one, two = ("a = 1", "b = 'x'"), ("a = 2",)
    assert changed_filters({}, ()) == {}
    first = changed_filters({}, one)
    assert filters(first) == (one,)
    assert changed_filters(first, one) == {}
    assert filters(changed_filters(first, two)) == (one, two)


@pytest.mark.parametrize("text", ["", "7", "[7]", "{"])
def test_a_filter_that_a_person_wrote_wrongly_is_none(text: str) -> None:
    assert filters({WHERE: text}) == ()
