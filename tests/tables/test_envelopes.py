"""The columns of change events, and of tables of them."""

from typing import Any

import pytest

from binwright.protocol.errors import SettingsError
from binwright.runtime.settings.group import load_settings
from binwright.tables.columns import Column, columns_text, parse_columns, parse_row
from binwright.tables.envelopes import event_columns, landed_columns

ROW = parse_columns("id INT, name STRING")


def test_a_table_of_events_has_the_columns_of_the_row_and_of_the_change() -> None:
    event = event_columns(ROW, with_schema=False)
    assert [column.name for column in event] == ["before", "after", "op", "source"]
    *row, op, source = landed_columns(event)
    assert (tuple(row), columns_text((op,)), source.name) == (ROW, "_op string", "_source")
    beside = event_columns(ROW, with_schema=True)
    assert (beside[:-1], beside[-1].name) == (event, "payload")
    assert landed_columns(beside) == landed_columns(event)


def test_events_without_a_source_have_none() -> None:
    event = parse_row("before STRUCT<id: INT>, after STRUCT<id: INT>, op STRING, ts_ms BIGINT")
    assert columns_text(landed_columns(event)) == "id int, _op string"


def test_a_field_that_a_column_cannot_be_called_after_is_found_by_its_own_name() -> None:
    renamed = Column("op_2", parse_row("x STRING")[0].type, "op")
    event = (*parse_row("before STRUCT<id: INT>, after STRUCT<id: INT>"), renamed)
    assert columns_text(landed_columns(event)) == "id int, _op string"


@pytest.mark.parametrize(
    "columns",
    [
        "id INT",
        "before STRUCT<id: INT>, after STRUCT<id: INT>",
        "before STRUCT<id: INT>, after STRUCT<id: INT>, op INT",
        "before STRUCT<id: INT>, after STRUCT<id: BIGINT>, op STRING",
        "before INT, after INT, op STRING",
    ],
)
def test_other_columns_are_none_of_events(columns: str) -> None:
    with pytest.raises(ValueError, match="has no `before` and `after`"):
        landed_columns(parse_row(columns))


def entry(**given: Any) -> dict[str, Any]:
    return {"topics": ["a"], "format": "json", "columns": "id INT", "envelope": "debezium", **given}


def test_settings_name_the_columns_of_the_row() -> None:
    (table,) = load_settings(tables=[entry(where=["_op != 't'", "_source.lsn > 5"])]).tables
    assert [column.name for column in table.table_columns] == ["id", "_op", "_source"]
    assert table.decoding.endswith("; envelope debezium")
    (by_subject,) = load_settings(
        tables=[entry(columns=None, format="avro", cluster_by=["_op"])],
        registry={"url": "http://registry"},
    ).tables
    assert by_subject.table_columns == by_subject.of_values == ()


@pytest.mark.parametrize(
    ("given", "fault"),
    [
        ({"format": "csv"}, "names an envelope, which only JSON and Avro have"),
        ({"format": "raw", "columns": None}, "names envelope, and raw records have no columns"),
        ({"new_fields": "rest"}, "names an envelope and new_fields"),
        ({"columns": "_OP STRING"}, "columns: has a field _OP, which is a column of the change"),
        ({"columns": "_op INT", "format": "avro"}, "columns: has a field _op, which"),
        ({"envelope": "maxwell"}, "envelope: must be one of 'debezium'"),
    ],
)
def test_an_envelope_that_the_table_cannot_have_is_refused(given: Any, fault: str) -> None:
    with pytest.raises(SettingsError, match=fault):
        load_settings(tables=[entry(**given)])
