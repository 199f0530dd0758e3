"""The forms of records that both sides land: how they are written, and how they become rows."""

import io
import json
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from random import Random
from typing import Any

import fastavro

from binwright.streams.load import SampleRecords

PLACE = (
    *("topic", "partition", "offset", "timestamp"),
    *("timestampType AS timestamp_type", "key", "headers"),
)
COLUMNS = (
    "id BIGINT, ts BIGINT, customer STRING, amount DECIMAL(10,2), currency STRING, note STRING"
)
"""All that a sample record's value has."""
SCHEMA: Mapping[str, Any] = {
    "type": "record",
    "name": "Sample",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "ts", "type": "long"},
        {"name": "customer", "type": "string"},
        {
            "name": "amount",
            "type": {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2},
        },
        {"name": "currency", "type": "string"},
        {"name": "note", "type": "string"},
    ],
}
HEADER_BYTES = 5  # of Confluent's serializers

Make = Callable[[int], tuple[bytes, bytes]]
"""Makes the next key and value, from the time, ms since the epoch."""


@dataclass(frozen=True, slots=True)
class Form:
    """Values of one form.

    Attributes:
        name: Of the form, in names of topics.
        entry: Of `[[tables]]`, without topics; empty: values land as they are.
        registry: Where our side asks for schemas.
        row: What a query makes of a value, in SQL; empty: values land as they are.
        encoded: Makes a value of a record's JSON; None: it stays JSON.
        record_bytes: Of a key and its JSON together, about.
        records: Begins a sequence of another kind of records than the sample.
    """

    name: str = "bytes"
    entry: Mapping[str, Any] = field(default_factory=dict)
    registry: str | None = None
    row: str = ""
    encoded: Callable[[bytes], bytes] | None = None
    record_bytes: int = 1_000
    records: Callable[[], Make] | None = None

    def maker(self) -> Make:
        """Begin a sequence of records."""
        make = self.records() if self.records else SampleRecords(self.record_bytes).make
        if (encoded := self.encoded) is None:
            return make

        def make_encoded(now_ms: int) -> tuple[bytes, bytes]:
            key, value = make(now_ms)
            return key, encoded(value)

        return make_encoded

    @property
    def select(self) -> tuple[tuple[str, ...], ...]:
        """Return what a query selects, one selection after the other: rows like our tables'."""
        if not self.row:
            return ((*PLACE, "value"),)
        return (f"struct({', '.join(PLACE)}) AS _kafka", f"{self.row} AS row"), ("_kafka", "row.*")


BYTES = Form()
JSON = Form(
    name="columns",
    entry={"format": "json", "columns": COLUMNS},
    row=f"from_json(CAST(value AS STRING), '{COLUMNS}')",
)

EVENT_TYPES: Mapping[str, str] = {
    "id": "int64",
    "ts": "int64",
    "customer": "string",
    "session": "string",
    "event": "string",
    "country": "string",
    "device": "string",
    "amount": "double",
    "qty": "int64",
    "ok": "bool",
    "url": "string",
    "ref": "string",
}
"""Fields of a small event, and their types as Arrow names them."""
_SQL = {"int64": "BIGINT", "string": "STRING", "double": "DOUBLE", "bool": "BOOLEAN"}
EVENT_COLUMNS = ", ".join(f"{name} {_SQL[of]}" for name, of in EVENT_TYPES.items())


def _events() -> Make:
    """Return what makes events one after the other: a visit of a shop, 258 bytes with its key."""
    random = Random(0)
    ids = [random.randbytes(8).hex() for _ in range(4_099)]
    names = ("page_view", "add_to_cart", "purchase", "search", "login")
    number = 0

    def make(now_ms: int) -> tuple[bytes, bytes]:
        nonlocal number
        key = f"customer-{number * 7_919 % 50_000:05}"
        value = {
            "id": number,
            "ts": now_ms,
            "customer": key,
            "session": ids[number % 4_099],
            "event": names[number % 5],
            "country": ("DE", "FR", "US", "JP", "BR", "IN")[number % 6],
            "device": ("mobile", "desktop", "tablet")[number % 3],
            "amount": random.randrange(100, 100_000) / 100,
            "qty": number % 9 + 1,
            "ok": number % 3 > 0,
            "url": f"/catalog/products/{ids[number * 31 % 4_099][:12]}",
            "ref": ids[number * 17 % 4_099] + ids[number * 13 % 4_099][:7],
        }
        number += 1
        return key.encode(), json.dumps(value, separators=(",", ":")).encode()

    return make


EVENTS = Form(
    name="events",
    entry={"format": "json", "columns": EVENT_COLUMNS},
    row=f"from_json(CAST(value AS STRING), '{EVENT_COLUMNS}')",
    record_bytes=258,
    records=_events,
)


def avro(registry: str, schema_id: int) -> Form:
    """Return the form of Avro with the id of `SCHEMA`, as a registry has it, in front."""
    schema, header = fastavro.parse_schema(dict(SCHEMA)), struct.pack(">bI", 0, schema_id)

    def encoded(value: bytes) -> bytes:
        out = io.BytesIO(header)
        out.seek(HEADER_BYTES)
        fastavro.schemaless_writer(out, schema, json.loads(value, parse_float=Decimal))
        return out.getvalue()

    datum = f"substring(value, {HEADER_BYTES + 1})"
    return Form(
        name="avro",
        entry={"format": "avro"},
        registry=registry,
        row=f"from_avro({datum}, '{json.dumps(SCHEMA)}', map())",
        encoded=encoded,
    )
