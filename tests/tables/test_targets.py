"""The tables that the settings give a topic."""

from typing import Any

import pytest

from binwright.protocol.errors import SettingsError, TableRefused
from binwright.runtime.settings.group import Settings, load_settings
from binwright.tables.targets import TableNames, Targets, check_forms, forms_differ


def entry(**given: Any) -> dict[str, Any]:
    return {"format": "raw", **given}


def named(settings: Settings, topic: str) -> dict[str, str]:
    """Return the format of each of a topic's tables."""
    return {target.name: target.format for target in settings.targets(topic)}


def test_a_topic_of_no_entry_has_one_table_of_raw_records_and_its_name() -> None:
    (target,) = load_settings(topics=["orders"]).targets("orders")
    assert (target.topic, target.name, target.format) == ("orders", "orders", "raw")
    assert target.decoded is None


def test_a_topic_has_a_table_for_each_name_that_entries_give_it() -> None:
    settings = load_settings(
        tables=[
            entry(topics=["orders"], name="{topic}_raw", keep_days=3),
            entry(topic_patterns=["or.*"], format="string"),
            entry(topic_patterns=[".*s"], format="variant"),
        ]
    )
    assert named(settings, "orders") == {"orders": "string", "orders_raw": "raw"}
    assert named(settings, "clicks") == {"clicks": "variant"}
    raw = {target.name: target for target in settings.targets("orders")}["orders_raw"]
    assert raw.decoded is None
    assert not raw.by_day
    assert settings.keep_days(raw) == 3


def test_an_entry_partitions_its_table_by_day() -> None:
    dated = entry(topics=["a"], format="string", partition_by="_kafka_date")
    settings = load_settings(tables=[dated, entry(topics=["b"], format="string")])
    assert [target.by_day for topic in "abc" for target in settings.targets(topic)] == [
        *(True, False, False)
    ]


def test_a_name_may_have_what_groups_of_the_pattern_match() -> None:
    pattern = r"shop\.(?P<region>[a-z]+)\.(?P<kind>orders|returns)"
    settings = load_settings(tables=[entry(topic_patterns=["x", pattern], name="{topic}")])
    assert named(settings, "shop.eu.orders") == {"shop.eu.orders": "raw"}
    settings = load_settings(
        tables=[
            entry(
                topic_patterns=[r"old\.(?P<kind>.*)()(?P<region>.)", pattern],
                name="{kind}-{region}",
            ),
            entry(topic_patterns=[pattern], format="string"),
        ]
    )
    assert named(settings, "shop.eu.orders") == {"orders-eu": "raw", "shop.eu.orders": "string"}


@pytest.mark.parametrize(
    ("tables", "fault"),
    [
        ([entry(topics=["a"], name="../a")], r"tables\[0\]\.name: "),
        ([entry(topics=["a"], name="a/b")], r"tables\[0\]\.name: "),
        ([entry(topics=["a"], name="")], r"tables\[0\]\.name: "),
        ([entry(topics=["a"], name="..")], r"topic a has no table: a table's name has letters"),
        ([entry(topics=["a"], name="_staging")], r"a directory in a lake has the name _staging"),
        ([entry(topics=["a"], name="x__bad")], r"x__bad has the name of a table of bad records"),
        ([entry(topics=["a"], name="{b}")], r"name: \{b\} has a group of a pattern, and topics"),
        ([entry(topic_patterns=["(?P<a>.)", "b"], name="{a}")], r"name: b has no group a"),
        (
            [entry(topics=["a"], name="all"), entry(topics=["b"], name="all", format="string")],
            "all would be the table of topics a and b in two forms: give both topics one entry",
        ),
        (
            [entry(topics=["a"], name="all"), entry(topics=["b"], name="all", keep_days=1)],
            "all would be the table of topics a and b in two forms",
        ),
        ([entry(topics=["a"], name="b")], "b would be the table of topics a and b in two forms"),
        (
            [entry(topics=["a"], name="x"), entry(topics=["a"], name="x")],
            "topics named twice: a. Give a second table another `name`",
        ),
        (
            [entry(topics=["b"], name="c__bad_"), entry(topics=["c"], name="a", format="string")],
            "a would be the table of topics a and c in two forms",
        ),
        (
            [entry(topics=["a"], name="t", format="string"), entry(topics=["t__bad"])],
            "t__bad has the name of the table of bad records of a",
        ),
        ([entry(topics=["a"], columns="id INT")], "and raw records have no columns"),
        ([entry(topics=["a"], cluster_by=["_kafka.offset"])], "raw records have no columns"),
        ([entry(topics=["a"], bad_share=0)], "and none that are bad"),
    ],
)
def test_names_that_contradict_each_other_are_refused(
    tables: list[dict[str, Any]], fault: str
) -> None:
    with pytest.raises(SettingsError, match=fault):
        load_settings(topics=["a", "b"], tables=tables)


def test_topics_of_one_name_share_a_table_also_by_two_entries_of_one_form() -> None:
    settings = load_settings(
        topics=["a", "b", "c"],
        tables=[
            entry(topics=["a"], name="all", keep_days=2),
            entry(topics=["b"], topic_patterns=["c.*"], name="all", keep_days=2),
        ],
    )
    targets = [target for topic in ("a", "b", "c", "c2") for target in settings.targets(topic)]
    assert {target.name for target in targets} == {"all"}
    assert forms_differ(targets) == ""
    check_forms(targets)


def test_a_table_of_two_forms_that_only_patterns_name_is_refused() -> None:
    tables = [entry(topic_patterns=["a.*"], name="all"), entry(topics=["b"], name="all")]
    tables[0]["format"] = "string"
    settings = load_settings(tables=tables)
    with pytest.raises(TableRefused, match="all would be the table of topics a1 and b in two"):
        check_forms([*settings.targets("a1"), *settings.targets("b")])


def test_names_of_tables_are_known_for_each_topic() -> None:
    names = TableNames(
        Targets(load_settings(tables=[entry(topic_patterns=["x.*"], name="{topic}")]).tables)
    )
    assert [names("x1"), names("x1"), names("other")] == [("x1",), ("x1",), ("other",)]
    refused = TableNames(
        Targets(
            load_settings(tables=[entry(topic_patterns=["x(?P<a>.*)"], name="{a}__bad")]).tables
        )
    )
    assert refused("x1") == ()
    assert names != refused
