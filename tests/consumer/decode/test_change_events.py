"""Change events are taken apart: which row is meant, what was done, and where in the source."""

from collections import Counter
from typing import Any

import orjson
import pyarrow as pa
import pytest
from tests.consumer.decode.avro import record, written
from tests.consumer.decode.fake_registry import FakeRegistry

from binwright.consumer.decode.avro_values import AvroReading
from binwright.consumer.decode.change_events import ChangeEventDecoder, CountedRowFields
from binwright.consumer.decode.decoders import Decoders
from binwright.consumer.decode.json_values import JsonDecoder
from binwright.consumer.decode.registry_decoders import RegistryDecoders
from binwright.protocol.errors import SchemaAtFault
from binwright.protocol.ports.kafka import Record, Records
from binwright.runtime.settings.group import load_settings
from binwright.tables.columns import columns_text, parse_columns
from binwright.tables.envelopes import event_columns

ROW = parse_columns("id INT, tags ARRAY<STRING>")
ONE = {"id": 1, "tags": ["x"]}
TWO = {"id": 1, "tags": []}


def of_json(counts: Counter[str] | None = None) -> ChangeEventDecoder:
    beyond = None if counts is None else CountedRowFields(ROW, counts)
    return ChangeEventDecoder(JsonDecoder(event_columns(ROW, with_schema=True), beyond))


def event(op: object = None, before: Any = None, after: Any = None, **more: Any) -> dict[str, Any]:
    return {"op": op, "before": before, "after": after, **more}


def decoded(events: list[Any], of: ChangeEventDecoder | None = None) -> list[Any]:
    """Return each row without its source, or why it is bad."""
    values = pa.array([each and orjson.dumps(each) for each in events], pa.binary())
    of = of or of_json()
    rows, bad = of.decode(values)
    assert of.memory(values) > 0
    for value, fault in zip(values.to_pylist(), bad.to_pylist(), strict=True):
        assert fault is None or fault["value"] == value
    faults = [fault and (fault["kind"], fault["reason"]) for fault in bad.to_pylist()]
    places = [row and (row["id"], row["tags"], row["_op"]) for row in rows.to_pylist()]
    return [fault or row for fault, row in zip(faults, places, strict=True)]


@pytest.mark.parametrize("copies", [1, 100], ids=["one by one", "in blocks"])
def test_a_row_is_that_after_the_change_and_of_a_deletion_that_before(copies: int) -> None:
    events = [
        event("c", None, ONE),
        event("u", ONE, TWO),
        event("r", None, ONE),
        event("d", ONE),
        event("d"),
        {"schema": {"type": "struct"}, "payload": event("u", ONE, TWO)},
        {"schema": None, "payload": event("d", ONE)},
    ]
    assert decoded(events * copies) == copies * [
        (1, ["x"], "c"),
        (1, [], "u"),
        (1, ["x"], "r"),
        (1, ["x"], "d"),
        (None, None, "d"),
        (1, [], "u"),
        (1, ["x"], "d"),
    ]


def test_an_event_that_changes_the_key_of_its_row_is_bad() -> None:
    """The row of before would stay; Debezium has a deletion and a creation instead."""
    of = ChangeEventDecoder(
        JsonDecoder(event_columns(ROW, with_schema=True)), ("ID", "_kafka.topic")
    )
    other = {"id": 2, "tags": []}
    assert decoded(
        [
            event("u", ONE, other),
            event("u", ONE, TWO),
            event("u", None, other),
            event("r", ONE, other),
        ],
        of,
    ) == [
        ("incompatible", "changes ID, of its primary_key"),
        (1, [], "u"),
        (2, [], "u"),
        (2, [], "r"),
    ]


def test_a_truncation_is_a_row_of_nulls_with_its_op_and_a_tombstone_one_without() -> None:
    assert decoded([event("t"), None]) == [(None, None, "t"), (None, None, None)]


def test_what_is_no_change_event_is_bad() -> None:
    no_op = "has no `op`, `before` and `after`, as change events of Debezium have"
    assert decoded([ONE, event("c", ONE), event("u", None, {"id": "x"}), event(1)]) == [
        ("incompatible", no_op),
        ("incompatible", "has no `after`"),
        ("incompatible", "after.id needs int, has the string 'x'"),
        ("incompatible", "op needs string, has 1"),
    ]


def test_the_place_in_the_source_is_a_column() -> None:
    values = [orjson.dumps(event("c", None, ONE, source={"lsn": 7, "file": "bin.1", "x": 1}))]
    rows: Any = of_json().decode(pa.array(values, pa.binary()))[0]
    source = rows.to_pylist()[0]["_source"]
    assert {name: value for name, value in source.items() if value is not None} == {
        "lsn": 7,
        "file": "bin.1",
    }


def test_new_fields_of_rows_are_counted_and_those_around_them_are_not() -> None:
    counts = Counter[str]()
    new = {"id": 1, "size": 5}
    events = [
        event("u", {"id": 1, "old": 1}, new, ts_ms=1),
        {"payload": event("d", new), "schema": {}},
        event("t", ts_ms=1),
    ]
    of = of_json(counts)
    assert (of.proposed, len(decoded(events, of))) == ((), 3)
    assert counts == {"size": 2}


SCHEMA = record(
    ("before", ["null", record(("id", "int"), name="Row")]),
    ("after", ["null", "Row"]),
    ("source", record(("lsn", ["null", "long"]), name="Source")),
    ("op", "string"),
    name="Envelope",
)


@pytest.mark.parametrize("named", [True, False], ids=["columns", "subject"])
async def test_events_of_avro_are_read_by_their_schema(named: bool) -> None:
    columns = event_columns(parse_columns("id INT"), with_schema=False) if named else ()
    registry = FakeRegistry()
    registry.register(7, SCHEMA, "s")
    value = written(SCHEMA, {"before": None, "after": {"id": 5}, "source": {"lsn": 3}, "op": "c"})
    rows = [[Records.of([Record(0, 0, None, value)])]]
    events = await RegistryDecoders(registry).decoder("s", AvroReading(), columns, rows)
    of = ChangeEventDecoder(events)
    found, bad = of.decode(pa.array([value], pa.binary()))
    row: Any = found.to_pylist()[0]
    assert (row["id"], row["_op"], row["_source"]["lsn"], bad.null_count) == (5, "c", 3, 1)


async def test_without_a_schema_that_can_be_used_all_are_bad() -> None:
    rows = [[Records.of([Record(0, 0, None, b"x")])]]
    events = await RegistryDecoders(FakeRegistry()).decoder("s", AvroReading(), (), rows)
    of = ChangeEventDecoder(events)
    bad: Any = of.decode(pa.array([b"x"], pa.binary()))[1]
    assert (of.columns, bad.to_pylist()[0]["kind"]) == ((), "malformed")


async def test_decoders_take_events_apart_and_a_subject_of_others_is_at_fault() -> None:
    entry = {"topics": ["a"], "format": "json", "columns": "id INT", "envelope": "debezium"}
    async with Decoders(load_settings(tables=[entry])) as decoders:
        target = decoders._settings.targets("a")[0]
        decoder = await decoders.of(target, {})
        assert decoder is not None
        assert target.decoded is not None
        assert columns_text(decoder.columns).startswith("id int, _op string, _source struct<")
        values = [orjson.dumps(event("c", None, {"id": 1, "new": 2}))]
        decoder.decode(pa.array(values, pa.binary()))
        assert decoders.totals().new_fields == {target: {"new": 1}}
        with pytest.raises(SchemaAtFault, match="the subject of an `envelope` has no `before`"):
            await decoders._of_events(JsonDecoder(ROW), target.decoded)
