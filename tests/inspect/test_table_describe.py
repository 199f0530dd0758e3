"""What `table list` and `describe` show, of settings, reports and facts."""

from dataclasses import replace

import pytest
from tests.consumer.decode.avro import record
from tests.consumer.decode.fake_registry import FakeRegistry

from binwright.cli.terminal import Console
from binwright.inspect.decide.table_facts import BadRecord, CommitFacts, Facts
from binwright.inspect.schema_notes import schema_notes, subject_notes
from binwright.inspect.table_describe import TableDescription, drawn, entry_of
from binwright.inspect.table_list import drawn as drawn_list
from binwright.inspect.table_lookup import Targets, known_targets, listed, targets_named
from binwright.inspect.table_reading import Details
from binwright.look.table_status import PartitionStatus, TableStatus
from binwright.protocol.errors import LakeUnavailable, UserError
from binwright.protocol.metadata import TableReport
from binwright.protocol.model import Slot
from binwright.runtime.settings.group import Settings, load_settings
from binwright.tables.schemas import SchemaRefused

SETTINGS: Settings = load_settings(
    topics=["orders", "lines", "events", "raw"],
    kafka={"bootstrap_servers": "localhost:1"},
    lake={"path": "/lake"},
    registry={"url": "https://registry"},
    tables=[
        {"topics": ["orders"], "format": "avro"},
        {"topics": ["lines"], "format": "csv", "columns": "id INT, b INT", "bad_share": 0.05},
        {"topics": ["events"], "format": "variant"},
    ],
)
AWAY = "https://registry does not give schema 3: refused"
REPORTED = TableStatus(
    "orders",
    "orders",
    Slot(0),
    "landing",
    2,
    TableReport(state="landing", committed={}, fault=AWAY),
    freshness_s=1_200.0,
    topics=("orders",),
)
DETAILS = Details(
    columns={"_kafka": "struct<offset:bigint>", "ID": "int"},
    files=2,
    bytes=5_000,
    reader_version=3,
    writer_version=7,
    features=("appendOnly", "variantType"),
    clustered_by=(),
    statistics=(),
    bad_kinds={"malformed": 2},
    bad_records=(BadRecord(1, 41, "malformed", "no JSON: unexpected end"),),
    paused="",
    commits=(CommitFacts(9, 0, "WRITE", 7, 1), CommitFacts(8, 0, "OPTIMIZE", None, None)),
)


def target(topic: str) -> Targets:
    return SETTINGS.targets(topic)


def text(page: object) -> list[str]:
    console = Console(width=200)
    with console.capture() as captured:
        console.print(page)
    return [" ".join(line.split()) for line in captured.get().splitlines()]


def test_a_list_has_a_line_for_each_table_and_why_it_waits() -> None:
    waiting = listed(SETTINGS, target("orders"), REPORTED, Facts(9, 7_000, 2))
    absent = listed(SETTINGS, target("raw"), None, None)
    lines = text(drawn_list([waiting, absent], 200))
    assert lines[1] == f"orders avro waiting 1,200.0 s 7,000 2 9 /lake/orders {AWAY}"
    assert lines[2] == "raw raw absent /lake/raw"


def test_a_list_has_the_tables_that_the_group_writes_else_those_of_the_settings() -> None:
    settings = load_settings(
        topics=["orders", "clicks"],
        tables=[{"topics": ["orders"], "name": "{topic}_typed", "format": "string"}],
    )
    assert {name: t.format for name, (t,) in known_targets(settings, ()).items()} == {
        "clicks": "raw",
        "orders_typed": "string",
    }
    written = [replace(REPORTED, name=name) for name in ("orders_typed", "orders_old")]
    found = known_targets(settings, written)
    assert {name: (t.topic, t.format) for name, (t,) in found.items()} == {
        "clicks": ("clicks", "raw"),
        "orders_old": ("orders", "raw"),
        "orders_typed": ("orders", "string"),
    }
    unwritten = replace(REPORTED, state="unwritten")
    assert sorted(known_targets(settings, [unwritten])) == ["clicks", "orders_typed"]
    lines = text(drawn_list([listed(settings, t, None, None) for t in found.values()], 200))
    assert "topic" in lines[0]
    line = lines[-1].replace(settings.lake.path, "LAKE")
    assert line == "orders_typed orders string absent LAKE/orders_typed"


async def test_a_table_is_found_by_its_name_or_by_that_of_a_topic() -> None:
    settings = load_settings(
        topics=["orders"], tables=[{"topics": ["orders"], "name": "typed", "format": "string"}]
    )
    assert [t.topic for t in await targets_named(settings, "typed")] == ["orders"]
    assert [t.topic for t in await targets_named(settings, "of_another_group")] == [
        "of_another_group"
    ]
    with pytest.raises(UserError, match="topic orders has other tables: name one of typed"):
        await targets_named(settings, "orders")


def test_a_table_that_cannot_be_read_has_the_reason_in_its_line() -> None:
    away = LakeUnavailable("no Spark Connect server at sc://b")
    landing = replace(REPORTED, report=replace(REPORTED.report, fault=""))
    known, new = (listed(SETTINGS, target("orders"), each, away) for each in (landing, None))
    assert (known.state, known.rows, known.reason) == ("landing", None, str(away))
    assert (new.state, new.reason) == ("unwritten", str(away))
    assert listed(SETTINGS, target("orders"), REPORTED, away).reason == f"{AWAY}; {away}"


def test_fields_that_are_left_out_are_named() -> None:
    reported = replace(REPORTED, new_fields=("a", "by.b"))
    line = listed(SETTINGS, target("orders"), reported, None)
    page = text(drawn(TableDescription(line, entry_of(SETTINGS, target("orders")), (), None), 100))
    assert "left out: a, by.b" in page


def test_fields_that_get_columns_are_named_until_they_have_one() -> None:
    entry = {"topics": ["orders"], "format": "json", "columns": "id INT", "new_fields": "add"}
    settings = load_settings(topics=["orders"], tables=[entry])
    targets = settings.targets("orders")
    line = listed(settings, targets, replace(REPORTED, new_fields=("a",)), None)
    description = TableDescription(line, entry_of(settings, targets), (), None)
    page = text(drawn(description, 100))
    assert "new fields: get a column, or are kept in _rest" in page
    assert "in _rest: a" in page
    assert description.to_json()["settings"]["new_fields"] == "add"


def test_columns_of_a_registry_are_those_of_its_subject() -> None:
    assert entry_of(SETTINGS, target("orders")).schema_source == (
        "all versions of orders-value, https://registry"
    )
    assert entry_of(SETTINGS, target("events")).columns == {"value": "variant"}
    assert entry_of(SETTINGS, target("lines")).delimiter == ","


def test_a_description_has_what_the_settings_and_the_table_have() -> None:
    table = listed(SETTINGS, target("lines"), REPORTED, Facts(9, 7, 2))
    partitions = (PartitionStatus("lines", 0, None, None, 40, 42, 2),)
    found = TableDescription(table, entry_of(SETTINGS, target("lines")), partitions, DETAILS)
    lines = text(drawn(found, 200))
    for line in (
        f"state: waiting: {AWAY}",
        "bad records: land in /lake/lines__bad; the table stops above a share of 0.05",
        "lag: 2 records",
        "rows: 7 in 2 files, 5.0 kB, version 9",
        "bad rows: 2 malformed",
        "readers need: variantType",
        "1 41 malformed no JSON: unexpected end",
        "0 none 40 42 2",
        "ID int int",
        "b int",
        "9 1970-01-01 00:00:00 WRITE 7 1",
        "8 1970-01-01 00:00:00 OPTIMIZE",
    ):
        assert line in lines
    assert found.to_json()["table"]["reader_features"] == ("variantType",)


def test_a_table_that_is_not_there_is_described_by_its_settings() -> None:
    found = TableDescription(
        listed(SETTINGS, target("raw"), None, None), entry_of(SETTINGS, target("raw")), (), None
    )
    lines = text(drawn(found, 200))
    assert "schema from: none: records land as they are" in lines
    assert not [line for line in lines if line.startswith("bad")]
    assert found.to_json()["table"] is None


async def test_fields_that_have_another_name_or_no_column_are_named() -> None:
    settings = load_settings(
        topics=["orders"],
        registry={"url": "http://127.0.0.1:1"},
        tables=[
            {"topics": ["orders"], "format": "json", "columns": "id INT, `Date Time` TIMESTAMP"}
        ],
    )
    targets = settings.targets("orders")
    notes = await schema_notes(settings.registry, targets)
    assert notes == ("Date Time is in the column Date_Time",)
    line = listed(settings, targets, None, None)
    page = TableDescription(line, entry_of(settings, targets), (), None, (*notes, "x is left out"))
    lines = text(drawn(page, 200))
    assert lines[(at := lines.index(f"fields: {notes[0]}")) + 1] == "x is left out"
    assert at
    assert page.to_json()["notes"] == [*notes, "x is left out"]
    by_subject = await schema_notes(SETTINGS.registry, target("orders"))
    assert by_subject[0].startswith("unknown: https://registry does not give subject orders-value")
    assert await schema_notes(SETTINGS.registry, target("raw")) == ()


async def test_notes_are_of_all_versions_of_a_subject() -> None:
    registry, table = FakeRegistry(), target("orders")[0].decoded
    assert table
    registry.register(7, record(("Date Time", "string"), ("a", "null")))
    registry.register(8, SchemaRefused("is of XML"))
    registry.register(9, record(("a", "int"), ("b", ["int", "string"])))
    assert await subject_notes(registry, "orders-value", table) == [
        "Date Time is in the column Date_Time",
        "a is left out: it has no value but null",
        "version 2 of orders-value has no columns: it is of XML",
        "b is JSON as text: it is a union of int, string",
    ]
