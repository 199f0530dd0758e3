"""Records of data partitions by rows and by columns."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from binwright.protocol.model import TopicPartition
from binwright.protocol.ports.kafka import Record, Records

Rows = Mapping[TopicPartition, Sequence[Record]]


def in_columns(rows: Rows) -> dict[TopicPartition, list[Records]]:
    """Return the rows as a `Staging` takes them."""
    return {partition: [Records.of(records)] for partition, records in rows.items()}


def in_rows(parts: Iterable[Records]) -> list[Record]:
    """Return the records, whether their columns are lists or arrays."""
    return [
        Record(offset, timestamp_ms, key, value, timestamp_type, tuple(map(_header, headers)))
        for part in parts
        for offset, timestamp_ms, timestamp_type, key, value, headers in zip(
            _values(part.offsets),
            _values(part.timestamps_ms),
            _values(part.timestamp_types),
            _values(part.keys),
            _values(part.values),
            _values(part.headers),
            strict=True,
        )
    ]


def _values(column: Any) -> list[Any]:
    return column if isinstance(column, list) else column.tolist()


def _header(header: Any) -> tuple[str, bytes | None]:
    return (header["key"], header["value"]) if isinstance(header, dict) else header
