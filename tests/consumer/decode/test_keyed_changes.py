"""Records of a table of keys: which of them change a row, which delete one, and which are bad."""

from typing import Any

import orjson
import pyarrow as pa
import pytest

from binwright.consumer.decode.decoders import Decoders
from binwright.consumer.decode.json_values import JsonDecoder
from binwright.consumer.decode.keyed_changes import KeyedDecoder
from binwright.protocol.errors import SchemaAtFault
from binwright.runtime.settings.group import load_settings
from binwright.tables.columns import Columns, columns_text, parse_columns
from binwright.tables.ports import ValueDecoder
from binwright.tables.settings import TableSettings

COLUMNS = "id INT, by STRUCT<id: INT>, gone BOOLEAN"


def entry(**given: Any) -> dict[str, Any]:
    upsert = {"mode": "upsert", "primary_key": ["id"], "tombstones": "skip"}
    return {"topics": ["a"], "format": "json", "columns": COLUMNS, **upsert, **given}


async def decoded(*records: tuple[Any, Any], **given: Any) -> list[Any]:
    """Return, of each record of a key and a value, its id and op, or why it is bad, or None."""
    settings = load_settings(tables=[entry(**given)])
    keys, values = (
        pa.array([each[n] and orjson.dumps(each[n]) for each in records], pa.binary())
        for n in (0, 1)
    )
    async with Decoders(settings) as decoders:
        decoder = await decoders.of(settings.targets("a")[0], {})
        assert decoder is not None
        assert decoder.memory(values, keys) > 0
        assert not decoder.proposed
        if settings.tables[0].table_columns:
            assert decoder.columns == settings.tables[0].table_columns
        rows, bad = decoder.decode(values, None, keys)
    faults = [fault and fault["reason"] for fault in bad.to_pylist()]
    changes = [row and (row["id"], row["_op"]) for row in rows.to_pylist()]
    return [fault or change for fault, change in zip(faults, changes, strict=True)]


async def test_a_record_changes_the_row_of_its_key_and_one_for_which_all_holds_deletes_it() -> None:
    found = await decoded(
        (None, {"id": 1}),
        (None, {"id": 2, "gone": True}),
        (None, {"gone": True}),
        (None, None),
        (None, {"id": "x"}),
        delete_where=["gone = true", "id < 5"],
    )
    assert found == [
        (1, "u"),
        (2, "d"),
        "id, of its primary_key, is NULL",
        None,
        "id needs int, has the string 'x'",
    ]


async def test_a_record_without_a_value_deletes_the_row_of_its_key() -> None:
    found = await decoded(
        ({"k": 1}, {"id": 1}),
        ({"k": 1}, None),
        (None, None),
        primary_key=["_kafka.key"],
        tombstones="row",
    )
    assert found == [(1, "u"), (None, "d"), "_kafka.key, of its primary_key, is NULL"]


async def test_a_key_that_is_decoded_is_one_by_its_fields() -> None:
    found = await decoded(
        ({"k": 1}, {"id": 7}),
        ({"k": 1}, None),
        ({"k": None}, {"id": 1}),
        key={"format": "json", "columns": "k INT"},
        primary_key=["_kafka_key.k", "_kafka.topic"],
        tombstones="row",
    )
    assert found == [(7, "u"), (None, "d"), "_kafka_key.k, of its primary_key, is NULL"]


async def test_a_field_within_a_column_may_be_a_key() -> None:
    found = await decoded((None, {"by": {"id": 1}}), (None, {"by": None}), primary_key=["by.id"])
    assert found == [(None, "u"), "by.id, of its primary_key, is NULL"]


async def test_a_record_without_its_place_among_changes_is_bad() -> None:
    one = {"id": 1}
    found = await decoded(
        (None, {"op": "u", "after": one, "source": {"lsn": 5}}),
        (None, {"op": "d", "before": one, "source": {"lsn": None}}),
        envelope="debezium",
        sequence_by=["_source.lsn", "_kafka.offset"],
    )
    assert found == [(1, "u"), "_source.lsn, of its sequence_by, is NULL"]


async def test_events_change_one_row_or_are_bad() -> None:
    """What a truncation empties is not guessed."""
    one = {"id": 1}
    found = await decoded(
        (None, {"op": "c", "after": one}),
        (None, {"op": "r", "after": {"id": 1, "gone": True}}),
        (None, {"op": "d", "before": one}),
        (None, {"op": "d"}),
        (None, {"op": "t"}),
        (None, one),
        (None, None),
        envelope="debezium",
        delete_where=["gone = true"],
    )
    assert found == [
        (1, "c"),
        (1, "d"),
        (1, "d"),
        "id, of its primary_key, is NULL",
        "changes more than one row, or none: its op is t",
        "has no `op`, `before` and `after`, as change events of Debezium have",
        None,
    ]


async def test_a_tombstone_behind_a_deletion_deletes_again_where_the_key_names_the_row() -> None:
    given: Any = {"primary_key": ["_kafka.key"], "tombstones": "row", "envelope": "debezium"}
    found = await decoded((1, {"op": "d", "before": {"id": 1}}), (1, None), **given)
    assert found == [(1, "d"), (None, "d")]


def of_subject(columns: str, **given: Any) -> KeyedDecoder:
    """Return the decoder of a table whose columns are those of a subject."""
    values: ValueDecoder = JsonDecoder(parse_columns(columns))
    given = {"columns": None, "primary_key": ["id"], **given}
    settings = load_settings(tables=[entry(**given)], registry={"url": "http://registry"})
    return KeyedDecoder(values, settings.tables[0])


@pytest.mark.parametrize(
    ("columns", "given", "fault"),
    [
        ("x INT", {}, "primary_key: there is no column id"),
        ("id DOUBLE", {}, "primary_key: id is double"),
        ("id INT, _op INT", {}, "there is a column _op"),
        ("id INT", {"sequence_by": ["at"]}, "sequence_by: there is no column at"),
        ("id INT", {"delete_where": ["gone = true"]}, "delete_where: 'gone = true': there is no"),
    ],
)
def test_columns_of_a_subject_are_checked_once_they_are_known(
    columns: str, given: Any, fault: str
) -> None:
    with pytest.raises(ValueError, match=fault):
        of_subject(columns, **given)


def test_columns_of_a_subject_get_that_of_the_change() -> None:
    assert columns_text(of_subject("id INT").columns) == "id int, _op string"


class _NoColumns:
    columns: Columns = ()
    proposed: Columns = ()
    settings = ""

    def memory(self, values: Any, keys: Any = None, /) -> int:
        del values, keys
        return 0

    def decode(self, values: Any, headers: Any = None, keys: Any = None, /) -> tuple[Any, Any]:
        del values, headers, keys
        return "rows", "bad"


async def test_where_all_are_bad_nothing_is_checked() -> None:
    table = TableSettings.model_validate(entry())
    decoder = KeyedDecoder(_NoColumns(), table)
    found: Any = decoder.decode(pa.array([b""], pa.binary()))
    assert (decoder.columns, found) == ((), ("rows", "bad"))
    async with Decoders(load_settings(tables=[entry()])) as decoders:
        with pytest.raises(SchemaAtFault, match="by the columns of the subject, primary_key"):
            await decoders._of_changes(JsonDecoder(parse_columns("x INT")), table)
