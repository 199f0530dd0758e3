"""The forms of records that both sides land: how they are written, and how they become rows."""

import io
import json
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import fastavro

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


@dataclass(frozen=True, slots=True)
class Form:
    """Values of one form.

    Attributes:
        name: Of the form, in names of topics.
        entry: Of `[[tables]]`, without topics; empty: values land as they are.
        registry: Where our side asks for schemas.
        row: What a query makes of a value, in SQL; empty: values land as they are.
        encoded: Makes a value of a sample record's JSON; None: it stays JSON.
    """

    name: str = "bytes"
    entry: Mapping[str, Any] = field(default_factory=dict)
    registry: str | None = None
    row: str = ""
    encoded: Callable[[bytes], bytes] | None = None

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
