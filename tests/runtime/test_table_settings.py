"""Settings of tables of columns."""

from typing import Any

import pytest

from binwright.protocol.columns import parse_columns
from binwright.protocol.errors import SettingsError
from binwright.runtime.settings import load_settings, settings_environment

ID = parse_columns("id BIGINT")
NAME = parse_columns("name STRING")


def table(columns: str = "id BIGINT", **given: Any) -> dict[str, Any]:
    return {"format": "json", "columns": columns, **given}


def test_a_topic_has_the_columns_of_the_table_that_names_it_else_of_the_first_pattern() -> None:
    settings = load_settings(
        tables=[
            table(topic_patterns=["or.*"]),
            table("name STRING", topics=["orders"], topic_patterns=[".*s"]),
        ]
    )
    columns = {t: settings.columns(t) for t in ("orders", "orderings", "clicks", "tea")}
    assert columns == {"orders": NAME, "orderings": ID, "clicks": NAME, "tea": None}


def test_tables_reach_consumers_as_a_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = load_settings(tables=[table(topics=["orders"])])
    for name, value in settings_environment(settings).items():
        monkeypatch.setenv(name, value)
    assert load_settings().tables == settings.tables


@pytest.mark.parametrize(
    ("tables", "fault"),
    [
        ([table("id BIGINT, id INT", topics=["a"])], r"tables\[0\]\.columns: names id twice"),
        ([table("id THING", topics=["a"])], r"tables\[0\]\.columns: there is no type 'thing'"),
        ([table()], r"tables\[0\]: names neither topics nor topic_patterns"),
        ([table(topics=["a", "a"])], r"tables\[0\]\.topics: named twice: a"),
        ([table(topics=["a"]), table(topics=["a"])], "tables: topics named twice: a"),
        ([table(topics=["a"], format="xml")], r"tables\[0\]\.format: must be one of 'json'"),
        ([table(topic_patterns=["a["])], r"tables\[0\]\.topic_patterns\[0\]: not a regular exp"),
        ([table(topics=["a"])], "a__bad has the name of the table of bad records of a"),
    ],
)
def test_contradictions_are_refused_with_their_place(
    tables: list[dict[str, Any]], fault: str
) -> None:
    with pytest.raises(SettingsError, match=fault):
        load_settings(tables=tables, topics=["a", "a__bad"])
