"""What the formats of a registry have in common: headers that name schemas, and refusals.

A value has a header: a byte 0, and four of the schema's id, most significant first.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from binwright.consumer.decoding.one_by_one import REASON_LENGTH, Bad, described
from binwright.protocol.ports.kafka import Records

HEADER = 5
"""Bytes in front of a value: 0, and the id of its schema."""


def has_header(value: bytes) -> bool:
    """Return whether a value names a schema."""
    return len(value) >= HEADER and value[0] == 0


def schema_id(value: bytes) -> int:
    """Return the id of the schema that a value names."""
    return int.from_bytes(value[1:HEADER], "big")


def without_header(value: bytes) -> Bad:
    """Return a value as bad that names no schema."""
    start = described(value[:HEADER].hex(" "))
    return Bad("malformed", f"needs 0 and a schema's id in front, has {start}")


def schema_ids(records: Iterable[Sequence[Records]]) -> Counter[int]:
    """Return the ids of schemas that values name, and how many do."""
    found: Counter[int] = Counter()
    for parts in records:
        for part in parts:
            values: Any = pa.array(part.values, pa.binary())
            for entry in pc.value_counts(pc.binary_slice(values, 0, HEADER)).to_pylist():
                if has_header(header := entry["values"] or b""):
                    found[schema_id(header)] += entry["counts"]
    return found


def refused(number: int, why: str) -> Bad:
    """Return why values of this schema are bad."""
    return Bad("incompatible", f"schema {number}: {why}"[:REASON_LENGTH])
