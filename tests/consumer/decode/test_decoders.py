"""The settings of a topic's table choose what decodes its values."""

from typing import Any

import pyarrow as pa
import pytest
from structlog.testing import capture_logs
from tests.consumer.decode.json_schema import written

from binwright.consumer.decode.decoders import Decoders
from binwright.consumer.decode.registry import SchemaRegistry
from binwright.consumer.stage.parquet import to_arrow
from binwright.protocol.errors import SchemaAtFault, SettingsError
from binwright.protocol.model import TopicPartition
from binwright.protocol.ports.kafka import Record, Records
from binwright.runtime.settings.group import load_settings
from binwright.tables.columns import Columns, columns_text, parse_row

SCHEMA = '{"type": "object", "properties": {"id": {"type": "integer"}, "any": {}}}'


async def decoded(table: dict[str, Any], value: bytes) -> tuple[str, Any, Any]:
    """Return the columns of a table, and the row or the bad record of a value."""
    settings = load_settings(
        tables=[{"topics": ["a"], **table}], registry={"url": "http://127.0.0.1:1"}
    )
    rows = {TopicPartition("a", 0): [Records.of([Record(0, 0, None, value)])]}
    async with Decoders(settings) as decoders:
        decoder = await decoders.of(settings.targets("a")[0], rows)
        assert decoder is not None
        assert decoder.settings == settings.tables[0].decoding
        row, bad = decoder.decode(pa.array([value], pa.binary()))
    return columns_text(decoder.columns), row.to_pylist()[0], bad.to_pylist()[0]


async def test_json_by_named_columns_has_no_header() -> None:
    columns, row, _ = await decoded({"format": "json", "columns": "id BIGINT"}, b'{"id": 1}')
    assert (columns, row) == ("id bigint", {"id": 1})
    _, _, bad = await decoded({"format": "json", "columns": "id BIGINT"}, written({"id": 1}))
    assert bad["kind"] == "malformed"


async def test_json_of_a_table_that_keeps_new_fields_has_a_column_of_them() -> None:
    table = {"format": "json", "columns": "id BIGINT", "new_fields": "rest"}
    columns, row, _ = await decoded(table, b'{"id": 1, "new": [1.10]}')
    assert (columns, row) == ("id bigint, _rest string", {"id": 1, "_rest": '{"new":[1.10]}'})


async def test_json_of_a_table_that_gets_columns_fills_those_that_it_got() -> None:
    """What has a type that is not known here, or the name of one of the settings, is not filled."""
    asked = list[str]()

    async def added_of(table: str) -> Columns:
        asked.append(table)
        return parse_row("x bigint, ID string, at date")

    key = {"format": "json", "columns": "k INT"}
    table = {"format": "json", "columns": "id BIGINT", "new_fields": "add", "key": key}
    settings = load_settings(tables=[{"topics": ["a"], "name": "t", "tombstones": "skip", **table}])
    async with Decoders(settings, added_of=added_of) as decoders:
        decoder = await decoders.of(settings.targets("a")[0], {})
        assert decoder is not None
        values: Any = pa.array([b'{"id": 1, "x": 2, "at": "2026-11-28", "y": 1.5}'], pa.binary())
        row, bad = decoder.decode(values, None, pa.array([b'{"k": 1, "z": 1}'], pa.binary()))
        new = decoders.totals().new_fields
    assert asked == ["t"]
    assert row.to_pylist() == [
        {"_kafka_key": {"k": 1}, "id": 1, "x": 2, "_rest": '{"at":"2026-11-28","y":1.5}'}
    ]
    assert bad.null_count == 1
    assert columns_text(decoder.proposed) == "at string, y double"
    assert new == {settings.targets("a")[0]: {"at": 1, "y": 1, "_kafka_key.z": 1}}


async def test_json_by_a_schema_of_the_settings_has_no_header() -> None:
    columns, row, _ = await decoded({"format": "json", "columns": SCHEMA}, b'{"any": [1.0]}')
    assert (columns, row) == ("id bigint, any string", {"id": None, "any": "[1.0]"})


async def test_json_without_columns_has_a_schema_of_the_registry(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reply = {"id": 7, "schema": SCHEMA, "schemaType": "JSON"}
    replies: dict[str, Any] = {
        "schemas/ids/7?subject=orders": reply,
        "subjects/orders/versions": [1],
        "subjects/orders/versions/1": reply,
    }
    monkeypatch.setattr(SchemaRegistry, "_get", lambda _, path: replies.get(path))
    table = {"format": "json", "subject": "orders"}
    columns, row, bad = await decoded(table, written({"id": 1, "any": "x"}))
    assert (columns, row, bad) == ("id bigint, any string", {"id": 1, "any": '"x"'}, None)


@pytest.mark.parametrize("setting", ["wait", "bad"])
async def test_a_schema_at_fault_has_records_wait_or_makes_them_bad_by_the_entry(
    monkeypatch: pytest.MonkeyPatch, setting: str
) -> None:
    reply = {"id": 7, "schema": "no JSON", "schemaType": "JSON"}
    replies: dict[str, Any] = {
        "schemas/ids/7?subject=a-value": reply,
        "schemas/ids/7/versions?deleted=true": [{"subject": "a-value", "version": 1}],
        "subjects/a-value/versions": [1],
        "subjects/a-value/versions/1": reply,
    }
    monkeypatch.setattr(SchemaRegistry, "_get", lambda _, path: replies.get(path))
    settings = load_settings(
        tables=[{"topics": ["a"], "format": "json", "on_schema_fault": setting}],
        registry={"url": "http://127.0.0.1:1"},
    )
    [target], value = settings.targets("a"), written({"id": 1})
    rows = {TopicPartition("a", 0): [Records.of([Record(0, 0, None, value)])]}
    async with Decoders(settings) as decoders:
        if setting == "bad":
            decoder = await decoders.of(target, rows)
            assert decoder is not None
            _, bad = decoder.decode(pa.array([value], pa.binary()))
            assert bad.to_pylist()[0]["kind"] == "incompatible"
            assert not decoders.totals().schema_faults
            return
        with capture_logs() as logs:
            for _ in range(2):
                with pytest.raises(SchemaAtFault, match="topic a wait: schema 7 of a-value: "):
                    await decoders.of(target, rows)
        assert [each["event"] for each in logs] == ["schema.refused"]
        assert decoders.totals().schema_faults == {target: 2}
    async with Decoders(settings, waits=False) as decoders:  # as an audit of values decodes
        assert await decoders.of(target, rows) is not None


def test_an_entry_without_schemas_has_none_at_fault() -> None:
    entry = {"topics": ["a"], "format": "json", "columns": "id INT", "on_schema_fault": "bad"}
    with pytest.raises(SettingsError, match="no schema of a registry is read"):
        load_settings(tables=[entry])
    load_settings(
        tables=[{**entry, "key": {"format": "avro"}}], registry={"url": "https://registry"}
    )


@pytest.mark.parametrize("own_ids", [None, "globalId"])
async def test_a_registry_of_apicurio_has_values_read_by_its_own_ids(
    monkeypatch: pytest.MonkeyPatch, own_ids: str | None
) -> None:
    own = {
        "ids/globalIds/9": SCHEMA,
        "search/artifacts?globalId=9": '{"artifacts": [{"type": "JSON"}]}',
    }
    monkeypatch.setattr(SchemaRegistry, "_own", lambda _, path: own.get(path))
    reply = {"id": 7, "schema": SCHEMA, "schemaType": "JSON"}
    replies: dict[str, Any] = {
        "subjects/a-value/versions": [1],
        "subjects/a-value/versions/1": reply,
    }
    monkeypatch.setattr(SchemaRegistry, "_get", lambda _, path: replies.get(path))
    settings = load_settings(
        tables=[{"topics": ["a"], "format": "json"}],
        registry={"url": "http://127.0.0.1:1/apis/ccompat/v7", "eight_byte_ids": own_ids},
    )
    name, body = (9).to_bytes(8, "big"), b'{"id": 1}'
    value, headers = (
        (b"\0" + name + body, ()) if own_ids else (body, (("apicurio.value.globalId", name),))
    )
    rows = {TopicPartition("a", 0): [Records.of([Record(0, 0, None, value, headers=headers)])]}
    async with Decoders(settings) as decoders:
        decoder = await decoders.of(settings.targets("a")[0], rows)
        assert decoder is not None
        row, _ = decoder.decode(
            to_arrow(rows)["value"].chunk(0), to_arrow(rows)["headers"].chunk(0)
        )
    assert row.to_pylist() == [{"id": 1, "any": None}]
