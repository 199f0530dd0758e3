"""What is decoded is counted by table."""

import gzip
import struct
from typing import Any

import orjson
import pyarrow as pa
import pytest
from structlog.testing import capture_logs

from binwright.consumer.decode import registry_decoders
from binwright.consumer.decode.decoders import NAMED, Decoders, DecodingTotals
from binwright.consumer.decode.new_fields import MOST_NAMES, OTHER_NAMES
from binwright.consumer.decode.one_by_one import REASON_LENGTH
from binwright.consumer.decode.record_decoder import OF_KEY
from binwright.consumer.decode.registry import SchemaRegistry
from binwright.protocol.model import TopicPartition
from binwright.protocol.ports.kafka import Record, Records
from binwright.runtime.settings.group import Settings, load_settings


def settings() -> Settings:
    return load_settings(
        topics=["orders", "lines", "raw"],
        kafka={"bootstrap_servers": "localhost:1"},
        tables=[
            {"topics": ["orders"], "format": "json", "columns": "id INT"},
            {"topics": ["lines"], "format": "csv", "columns": "id INT", "delimiter": ";"},
        ],
    )


async def test_time_and_bad_records_are_counted_by_table_and_kind() -> None:
    (raw,), (orders,), (lines,) = (settings().targets(t) for t in ("raw", "orders", "lines"))
    async with Decoders(settings()) as decoders:
        assert decoders.totals() == DecodingTotals()
        assert await decoders.of(raw, {}) is None
        values = [b'{"id":1}', b'{"id":"x"}', b"{", b"}", None]
        for target in (orders, orders, lines):
            decoder = await decoders.of(target, {})
            assert decoder is not None
            _, bad = decoder.decode(pa.array(values if target == orders else [b"7"], pa.binary()))
            assert len(bad) - bad.null_count == (3 if target == orders else 0)
        found = decoders.totals()
    assert found.seconds.keys() == {orders, lines}
    assert min(found.seconds.values()) > 0
    assert found.bad == {(orders, "incompatible"): 2, (orders, "malformed"): 4}
    assert (found.versions, found.requests) == ({}, {})


async def test_a_field_that_is_left_out_is_reported_once_and_counted() -> None:
    orders = settings().targets("orders")[0]
    values = pa.array([b'{"id":1,"new":1}'] * 3 + [b'{"by":{"a":1},"new":2}'], pa.binary())
    async with Decoders(settings()) as decoders:
        with capture_logs() as logs:
            for _ in range(2):
                decoder = await decoders.of(orders, {})
                assert decoder is not None
                decoder.decode(values)
                decoder.decode(values)
        assert decoders.totals().new_fields == {orders: {"new": 16, "by": 4}}
        assert decoders.new_fields() == {"orders": ("by", "new")}
    reported = [(each["event"], each["table"], each["field"]) for each in logs]
    assert reported == [("table.field_unknown", "orders", name) for name in ("new", "by")]


async def test_names_of_fields_are_bounded_over_all_files() -> None:
    orders = settings().targets("orders")[0]
    async with Decoders(settings()) as decoders:
        with capture_logs() as logs:
            for number in range(3):
                decoder = await decoders.of(orders, {})
                assert decoder is not None
                names = {f"n{number * 1_000 + i}": 1 for i in range(60)}
                decoder.decode(pa.array([orjson.dumps(names)], pa.binary()))
        (counts,) = decoders.totals().new_fields.values()
        assert (len(counts), counts[OTHER_NAMES]) == (MOST_NAMES + 1, 180 - MOST_NAMES)
        assert len(decoders.new_fields()["orders"]) == NAMED
    assert len(logs) == MOST_NAMES


async def test_a_decoder_has_the_columns_and_the_settings_of_its_table() -> None:
    async with Decoders(settings()) as decoders:
        decoder = await decoders.of(settings().targets("lines")[0], {})
    assert decoder is not None
    assert (str(decoder.columns[0].type), decoder.settings) == ("int", "csv ;: id int")


GZIP = gzip.compress(b'{"id": 1}', mtime=0)
APICURIO = b"\0" + struct.pack(">q", 7) + b"\x02\x02w"


@pytest.mark.parametrize(
    "entry",
    [
        {"format": "json", "columns": "id INT"},
        {"format": "csv", "columns": "id INT"},
        {"format": "string"},
        {"format": "variant"},
        {"format": "avro"},
        {"format": "protobuf"},
        {"format": "json"},
    ],
)
async def test_each_format_states_what_a_value_looks_like(
    monkeypatch: pytest.MonkeyPatch, entry: dict[str, Any]
) -> None:
    monkeypatch.setattr(SchemaRegistry, "_get", lambda *_: None)
    monkeypatch.setattr(registry_decoders, "PAUSE_S", 0.01)
    registry = {"url": "http://127.0.0.1:1"}
    values = [GZIP, APICURIO, b"\x02\xff"]
    header: Any = pa.struct([("key", pa.string()), ("value", pa.binary())])
    headers: Any = pa.array([None, [], [{"key": "apicurio.value.globalId"}]], pa.list_(header))
    rows = {TopicPartition("a", 0): [Records.of(Record(0, 0, value, value) for value in values)]}
    keyed = {"topics": ["a"], "format": "string", "key": entry}
    for table, prefix in (({**entry, "topics": ["a"]}, ""), (keyed, OF_KEY)):
        settings = load_settings(tables=[table], registry=registry)
        async with Decoders(settings) as decoders:
            decoder = await decoders.of(settings.targets("a")[0], rows)
            assert decoder is not None
            given: Any = pa.array(values, pa.binary())
            texts = pa.array([b"text"] * 3, pa.binary())
            _, bad = decoder.decode(texts if prefix else given, headers, given)
        found = bad.to_pylist()
        assert found[0]["kind"].startswith(prefix)
        assert found[0]["reason"].endswith("it looks like gzip")
        if entry["format"] not in {"string", "csv"}:  # to which zeros are text
            assert found[1]["reason"].endswith("own serializer, with the id 7 in eight bytes")
        assert found[2]["reason"].endswith("whose headers name its schema")
        assert all(len(each["reason"]) <= REASON_LENGTH for each in found if each)
