"""Settings of tables that have one row of each key."""

from typing import Any

import pytest

from binwright.protocol.errors import SettingsError
from binwright.runtime.settings.group import load_settings
from binwright.tables.columns import columns_text
from binwright.tables.settings import TableSettings
from binwright.tables.targets import Target

KEY = {"format": "json", "columns": "id BIGINT"}
MASK = {"fields": {"id": "sha256", "by.name": "null"}, "key_file": "secret", "headers": {}}


def table(**given: Any) -> TableSettings:
    entry = {
        "topics": ["a"],
        "format": "json",
        "columns": "id BIGINT, at TIMESTAMP, x DOUBLE, by STRUCT<name: STRING>, gone BOOLEAN",
        "mode": "upsert",
        "primary_key": ["id"],
        "tombstones": "skip",
        **given,
    }
    return load_settings(tables=[entry], registry={"url": "http://registry"}).tables[0]


def test_an_upsert_table_has_a_column_of_what_was_done_to_a_row() -> None:
    of = table(delete_where=["gone = true"], sequence_by=["at", "x", "_kafka.timestamp"])
    assert columns_text(of.table_columns).endswith("gone boolean, _op string")
    assert of.decoding.endswith("; upsert id; by at, x, _kafka.timestamp; delete gone = true")
    assert of.decoding.endswith(of.keying)
    assert table().decoding.endswith("; upsert id")
    assert [each.path for each in of.deletions] == [("gone",)]
    assert [Target("a", "a", each).has_keys for each in (of, None)] == [True, False]
    kept = table(new_fields="rest", key=KEY)
    assert kept.key is not None
    assert columns_text(kept.key.of_values) == "id bigint"
    assert columns_text(kept.table_columns).endswith("_rest string, _op string")


@pytest.mark.parametrize(
    "given",
    [
        {"primary_key": ["_kafka.key"], "tombstones": "row"},
        {"primary_key": ["_kafka_key.id"], "key": KEY, "tombstones": "row"},
        {"primary_key": ["_KAFKA.topic", "id"]},
        {"primary_key": ["by.name"], "tombstones": "bad"},
        {"primary_key": ["any"], "format": "avro", "columns": None, "sequence_by": ["x"]},
        {"primary_key": ["_kafka_key.any"], "key": {"format": "avro"}, "tombstones": "row"},
        {"mask": {"fields": {"by.name": "null"}}},
        {"primary_key": ["d"], "columns": "d DECIMAL(9,2), _op_ INT"},
        {"envelope": "debezium", "sequence_by": ["_source.lsn"], "delete_where": ["_op = 'd'"]},
    ],
)
def test_keys_are_columns_of_the_value_or_of_the_record(given: dict[str, Any]) -> None:
    assert table(**given).mode == "upsert"


@pytest.mark.parametrize(
    ("given", "fault"),
    [
        ({"mode": "append"}, "names primary_key, sequence_by or delete_where, which mode upsert"),
        ({"primary_key": []}, "mode: upsert needs a primary_key"),
        ({"where": ["id > 1"]}, "upsert with where: a change that is left out leaves an old row"),
        ({"partition_by": "_kafka_date"}, "upsert with partition_by: the day of a row"),
        ({"mask": {"fields": {"_op": "null"}}}, "mask: _op says what is done to a row"),
        ({"begin": "earliest"}, "upsert with begin: earlier changes could bring deleted rows back"),
        ({"columns": "id INT, _Op INT"}, "columns: _op is the column of what was done to a row"),
        ({"tombstones": "row"}, "a record without a value has no id, so it would not say which"),
        (
            {"tombstones": "row", "primary_key": ["_kafka.key"], "sequence_by": ["at"]},
            "a record without a value has no at, so it would not say which row it deletes, or when",
        ),
        ({"primary_key": ["no"]}, "primary_key: there is no column no"),
        ({"primary_key": ["_kafka.timestamp"]}, "primary_key: there is no column _kafka.timestamp"),
        ({"primary_key": ["x"]}, "primary_key: x is double, which is not compared"),
        ({"primary_key": ["by"]}, "primary_key: by is struct<name:string>, which is not compared"),
        ({"sequence_by": ["by.name"]}, "sequence_by: by.name is text, of which 9 is greater"),
        (
            {"envelope": "debezium", "sequence_by": ["_source.scn"]},
            "sequence_by: _source.scn is text",
        ),
        ({"sequence_by": ["gone"]}, "sequence_by: gone is boolean, which is not compared"),
        (
            {"sequence_by": ["at"], "mask": {"fields": {"at": "null"}}},
            "sequence_by: at is masked",
        ),
        (
            {"mask": MASK},
            "primary_key: id is masked: with another secret a key would have two rows",
        ),
        ({"primary_key": ["by.name"], "mask": MASK}, "primary_key: by.name is masked"),
        (
            {"primary_key": ["_kafka.key"], "mask": {"key": "null"}},
            "primary_key: _kafka.key is masked: with another secret a key would have two rows",
        ),
        ({"delete_where": ["nothing = 1"]}, "delete_where: 'nothing = 1': there is no column or f"),
        ({"primary_key": ["id", "id"]}, "primary_key: named twice: id"),
        (
            {"format": "raw", "columns": None, "tombstones": "row"},
            "names mode, primary_key, and raw records have no columns",
        ),
    ],
)
def test_what_has_no_rows_of_keys_is_refused(given: dict[str, Any], fault: str) -> None:
    with pytest.raises(SettingsError, match=fault):
        table(**given)
