"""Records as rows of a Parquet file, whose footer says which offsets it holds.

The value of a record is a column of bytes, or it is decoded into columns. Decoded rows have one of
two layouts: that of their table, so that the file can become one of the table's, and bad records go
into a file beside it; or `row` and `bad` behind the columns of a record, of which Spark makes rows.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, groupby
from typing import Any, NamedTuple, Protocol

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from binwright.consumer.decode.arrow_types import BAD, row_type
from binwright.consumer.decode.one_by_one import decode_parts
from binwright.consumer.decode.portions import DecodingMemory
from binwright.protocol.fields import LATEST_MS, checked_offset
from binwright.protocol.model import TopicPartition, newest
from binwright.protocol.ports.kafka import Records
from binwright.tables.columns import (
    KAFKA,
    MEASURED,
    Columns,
    columns_text,
    is_variant,
    known_columns,
    parse_row,
)
from binwright.tables.envelopes import DELETED, OP
from binwright.tables.ports import Footer, RecordMask, ValueDecoder

_HEADER: list[tuple[str, pa.DataType]] = [("key", pa.string()), ("value", pa.binary())]
_TYPES: dict[str, pa.DataType] = {
    "topic": pa.string(),
    "partition": pa.int32(),
    "offset": pa.int64(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_type": pa.int32(),
    "key": pa.binary(),
    "value": pa.binary(),
    "headers": pa.list_(pa.struct(_HEADER)),
}
SCHEMA = pa.schema(_TYPES)
"""A table's columns in order of creation. The first four have statistics per file."""
PLACE: "list[pa.Field[Any]]" = [field for field in SCHEMA if field.name != "value"]
"""All of a record but its value."""

COLUMNS = {
    "topic": "string",
    "partition": "int",
    "offset": "bigint",
    "timestamp": "timestamp",
    "timestamp_type": "int",
    "key": "binary",
    "value": "binary",
    "headers": "array<struct<key:string,value:binary>>",
}
"""The same columns in Spark's types."""

FOOTER = "binwright.staged"  # the key of our entry in a file's own metadata
TABLE_FOOTER = "binwright.staged.table"
"""The key where rows are laid out as a table's. An earlier version takes such a file for damaged;
it would read NULL in all columns (†)."""
NO_ROWS = Footer(None, 0, {})
MOST_FAULT = 300  # characters of what a footer says of a bad record
GROUP_BYTES = 8 << 20  # of records that are decoded or written, and of decoded rows, at once
FOOTER_BYTES = 4 << 20  # a longer one is not read: 10,000 partitions take half a megabyte
TAIL_BYTES = 64 << 10  # holds the footer of nearly every file
DAY_US = 86_400_000_000
MOST_DAYS = 8
"""Of rows that are written together, which become a file each: of more, an append makes fewer."""

_MAGIC, _LENGTH_BYTES = b"PAR1", 4


def to_arrow(rows: Mapping[TopicPartition, Sequence[Records]]) -> pa.Table:
    """Return one row per record, partition after partition, in order of offsets.

    A timestamp out of range is NULL, so that one record cannot stop a table: before 1970 (Kafka's
    -1 means none) or after the year 9999 (a producer sent nanoseconds instead of milliseconds).
    """
    pairs = ((partition, part) for partition, parts in rows.items() for part in parts)
    batches = []
    for (_, are_lists), run in groupby(pairs, _kind):
        pairs_of_kind = list(run)
        together = [pairs_of_kind] if are_lists else [[pair] for pair in pairs_of_kind]
        batches += [_batch(several) for several in together]
    return pa.Table.from_batches(batches, schema=SCHEMA)


def _kind(pair: tuple[TopicPartition, Records]) -> tuple[str, bool]:
    """Return the topic, and whether the columns are lists: small ones cost the most apart."""
    partition, records = pair
    return partition.topic, isinstance(records.offsets, list)


def _joined(parts: Sequence[Records]) -> Records:
    """Return one `Records` of many small ones, whose columns are lists."""
    if len(parts) == 1:
        return parts[0]
    return Records(
        offsets=[*chain.from_iterable(part.offsets for part in parts)],
        timestamps_ms=[*chain.from_iterable(part.timestamps_ms for part in parts)],
        timestamp_types=[*chain.from_iterable(part.timestamp_types for part in parts)],
        keys=[*chain.from_iterable(part.keys for part in parts)],
        values=[*chain.from_iterable(part.values for part in parts)],
        headers=[*chain.from_iterable(part.headers for part in parts)],
        bytes=sum(part.bytes for part in parts),
    )


def _batch(pairs: Sequence[tuple[TopicPartition, Records]]) -> pa.RecordBatch:
    """Return the records of partitions of one topic."""
    records = _joined([part for _, part in pairs])
    partitions = [partition.partition for partition, _ in pairs]
    columns: list[pa.Array[Any]] = [
        pa.repeat(pa.scalar(pairs[0][0].topic, pa.string()), len(records)),
        pa.array(np.repeat(partitions, [len(part) for _, part in pairs]), pa.int32()),
        pa.array(records.offsets, pa.int64()),
        _times(records.timestamps_ms),
        pa.array(records.timestamp_types, pa.int32()),
        pa.array(records.keys, pa.binary()),
        pa.array(records.values, pa.binary()),
        _headers(records.headers),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=SCHEMA)


def _times(ms: Sequence[int]) -> "pa.Array[Any]":
    known = np.array(ms, np.int64)
    unknown = (known < 0) | (known > LATEST_MS)
    return pa.array(known * 1000, pa.timestamp("us", "UTC"), mask=unknown)


def _headers(given: Any) -> "pa.Array[Any]":
    if isinstance(given, pa.Array):
        return given
    ends = [0]
    for headers in given:
        ends.append(ends[-1] + len(headers))
    keys = pa.array([key for headers in given for key, _ in headers], pa.string())
    values = pa.array([value for headers in given for _, value in headers], pa.binary())
    items = pa.StructArray.from_arrays([keys, values], names=["key", "value"])
    return pa.ListArray.from_arrays(pa.array(ends, pa.int32()), items)


def decoded_schema(columns: Columns) -> pa.Schema:
    """Return the columns of a file of decoded values.

    `row` is NULL exactly where the record is bad, and `bad` exactly where it is not. Without
    columns there is no `row`: Parquet has no struct without fields.
    """
    row = [pa.field("row", row_type(columns))] if columns else []
    return pa.schema([*PLACE, *row, pa.field("bad", BAD)])


def table_schema(columns: Columns) -> pa.Schema:
    """Return the columns of a file that has decoded values as the table has them."""
    return pa.schema([pa.field(KAFKA, pa.struct(PLACE)), *row_type(columns)])


def _as_table(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Return decoded rows, none of them bad, as their table has them."""
    place = pa.StructArray.from_arrays([batch[field.name] for field in PLACE], fields=PLACE)
    row: Any = batch["row"]
    columns = [place, *row.flatten()]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def masked(table: pa.Table, mask: RecordMask | None) -> pa.Table:
    """Return the rows of raw records as they may be staged."""
    if mask is None:
        return table
    return pa.Table.from_batches(map(mask, table.to_batches()), table.schema)


def decoded(
    table: pa.Table,
    decoder: ValueDecoder,
    memory: DecodingMemory,
    mask: RecordMask | None = None,
) -> Iterator[pa.RecordBatch]:
    """Yield the rows with their values decoded, without those that are skipped, in portions."""
    schema = decoded_schema(decoder.columns)
    for batch in table.combine_chunks().to_batches():
        for begin, length, need in memory.portions(decoder, batch["value"], batch["key"]):
            part = batch.slice(begin, length)
            with memory.taken(need):
                row, bad = decode_parts(decoder, part["value"], part["headers"], part["key"])
            part = part if mask is None else mask(part)
            rows = [row] if decoder.columns else []
            arrays: list[pa.Array[Any]] = [*part.drop_columns(["value"]).columns, *rows, bad]
            made = pa.RecordBatch.from_arrays(arrays, schema=schema)
            is_kept = pc.or_(pc.is_valid(row), pc.is_valid(bad))
            yield made if pc.all(is_kept).as_py() else made.filter(is_kept)


def _groups(
    rows: Mapping[TopicPartition, Sequence[Records]],
) -> Iterator[Mapping[TopicPartition, Sequence[Records]]]:
    """Yield these rows in groups of about `GROUP_BYTES`, of which each is decoded by itself."""
    group, size = dict[TopicPartition, list[Records]](), 0
    for partition, parts in rows.items():
        for part in parts:
            if size and size + part.bytes > GROUP_BYTES:
                yield group
                group, size = {}, 0
            group.setdefault(partition, []).append(part)
            size += part.bytes
    yield group


def _days(table: pa.Table) -> Sequence[pa.Table]:
    """Return the rows of each day, in order; all together where the days are many, or not known."""
    day = pc.divide(table["timestamp"].cast(pa.int64()), DAY_US)
    days = sorted(each for each in pc.unique(day).to_pylist() if each is not None)
    if day.null_count or not 1 < len(days) <= MOST_DAYS:
        return (table,)
    return [table.filter(pc.equal(day, pa.scalar(each))) for each in days]


def _first_fault(table: pa.Table) -> str:
    """Return where the first bad record is, and what is wrong with it."""
    row = table.filter(pc.is_valid(table["bad"])).slice(0, 1).to_pylist()[0]
    place = f"{row['topic']}-{row['partition']} at offset {row['offset']}"
    return f"{place}: {row['bad']['kind']}: {row['bad']['reason']}"[:MOST_FAULT]


def _newest_ms(table: pa.Table) -> int | None:
    """Return the highest timestamp, ms since 1970; None if there is no valid one."""
    micros: Any = pc.max(table["timestamp"].cast(pa.int64())).as_py()
    return None if micros is None else micros // 1000


class Encoded(NamedTuple):
    """A file, and the one beside it, if there is one."""

    content: pa.Buffer
    bad: pa.Buffer | None = None
    """The bad records of a file that is laid out as its table's."""


def encode(
    rows: Mapping[TopicPartition, Sequence[Records]],
    footer: Footer,
    decoder: ValueDecoder | None = None,
    memory: DecodingMemory | None = None,
    mask: RecordMask | None = None,
) -> pa.Buffer:
    """Return the rows as a Parquet file that is read once: Spark writes its rows again.

    Args:
        rows: The records.
        footer: What the file says of itself. Columns and bad values are those of `decoder`.
        decoder: Of the records' values; None: they stay bytes.
        memory: In which values are decoded.
        mask: Of keys, headers, and values that stay bytes; None: they are as they came.
    """
    if decoder is None:
        return _encode_raw(rows, footer, mask, READ_ONCE)
    return _encode_decoded(rows, footer, decoder, memory, mask).content


def encode_for_table(
    rows: Mapping[TopicPartition, Sequence[Records]],
    footer: Footer,
    decoder: ValueDecoder | None = None,
    memory: DecodingMemory | None = None,
    mask: RecordMask | None = None,
    *,
    by_day: bool = False,
) -> Encoded:
    """Return the rows as a file of the table's, where that can be; see `encode`.

    It has statistics and a codec for its readers. `by_day`: rows of two days are in no row group,
    as the server can only cut a file between these.
    """
    if decoder is None:
        return Encoded(_encode_raw(rows, footer, mask, OF_RAW_TABLE))
    as_table = bool(decoder.columns) and not any(map(is_variant, decoder.columns))
    file = _TableRows(decoder.columns, by_day=by_day) if as_table else None
    return _encode_decoded(rows, footer, decoder, memory, mask, file)


def _encode_raw(
    rows: Mapping[TopicPartition, Sequence[Records]],
    footer: Footer,
    mask: RecordMask | None,
    form: Mapping[str, Any],
) -> pa.Buffer:
    file, facts = _File(SCHEMA, form), _Facts()
    for group in _groups(rows):
        table = to_arrow(group)
        facts.newest_ms = newest(facts.newest_ms, _newest_ms(table))
        file.write(masked(table, mask))
    return file.end(FOOTER, _entry(footer, None, facts))


def _encode_decoded(  # noqa: PLR0917 - as of `encode`
    rows: Mapping[TopicPartition, Sequence[Records]],
    footer: Footer,
    decoder: ValueDecoder,
    memory: DecodingMemory | None,
    mask: RecordMask | None,
    of_table: "_TableRows | None" = None,
) -> Encoded:
    file: _Rows = of_table or _StagedRows(decoder.columns)
    facts = _Facts()
    facts.write(file, rows, decoder, memory or DecodingMemory(), mask)
    return file.end(_entry(footer, decoder, facts))


def encode_rows(table: pa.Table, footer: Footer, decoder: ValueDecoder) -> pa.Buffer:
    """Return decoded rows, of which none is bad, as a file that is read once; see `encode`."""
    file = _StagedRows(decoder.columns)
    file.write(table, 0)
    return file.end(_entry(footer, decoder, _Facts(_newest_ms(table)))).content


READ_ONCE: Mapping[str, Any] = {
    # Raw blocks: Spark takes a tenth less CPU to read them than snappy's.
    "compression": "lz4",
    "use_dictionary": False,
    "write_statistics": False,
}
"""How a file is written of which Spark writes the rows again."""
OF_RAW_TABLE: Mapping[str, Any] = {
    "compression": "zstd",  # half the bytes of snappy, at the same cost
    "use_dictionary": ["topic"],
    "write_statistics": [column.name for column in MEASURED],
}
OF_TABLE: Mapping[str, Any] = {
    "compression": "zstd",
    "use_dictionary": True,
    "write_statistics": True,
}


class _File:
    """A file that is written in memory."""

    def __init__(self, schema: pa.Schema, form: Mapping[str, Any]) -> None:
        self._sink, self.schema = pa.BufferOutputStream(), schema
        self._writer = pq.ParquetWriter(self._sink, schema, **form)

    def write(self, table: pa.Table) -> None:
        """Write rows of the file's schema."""
        self._writer.write_table(table)

    def end(self, key: str, entry: Mapping[str, Any]) -> pa.Buffer:
        """Return the file, whose footer has this entry."""
        self._writer.add_key_value_metadata({key: orjson.dumps(entry).decode()})
        self._writer.close()
        return self._sink.getvalue()


class _Rows(Protocol):
    """Where decoded rows are written."""

    def write(self, table: pa.Table, bad: int) -> None:
        """Write rows of `decoded_schema`, of which so many are bad."""

    def end(self, entry: Mapping[str, Any]) -> Encoded:
        """Return the files, whose footers have this entry."""


class _StagedRows:
    """One file for all."""

    def __init__(self, columns: Columns) -> None:
        self._file = _File(decoded_schema(columns), READ_ONCE)

    def write(self, table: pa.Table, bad: int) -> None:  # noqa: ARG002 - as of `_Rows`
        self._file.write(table)

    def end(self, entry: Mapping[str, Any]) -> Encoded:
        return Encoded(self._file.end(FOOTER, entry))


class _TableRows:
    """A file of the table's, and one beside it once there are bad records."""

    def __init__(self, columns: Columns, *, by_day: bool) -> None:
        self._columns, self._by_day = columns, by_day
        self._file = _File(table_schema(columns), OF_TABLE)
        self._bad: _StagedRows | None = None

    def write(self, table: pa.Table, bad: int) -> None:
        if bad:
            self._bad = self._bad or _StagedRows(self._columns)
            self._bad.write(table.filter(pc.is_valid(table["bad"])), bad)
            table = table.filter(pc.is_null(table["bad"]))
        schema = self._file.schema
        for part in _days(table) if self._by_day else (table,):
            rows = [_as_table(batch, schema) for batch in part.to_batches()]
            self._file.write(pa.Table.from_batches(rows, schema))

    def end(self, entry: Mapping[str, Any]) -> Encoded:
        beside = None if self._bad is None else self._bad.end(entry).content
        return Encoded(self._file.end(TABLE_FOOTER, entry), beside)


@dataclass(slots=True)
class _Facts:
    """What is known of a file once its records are written."""

    newest_ms: int | None = None
    bad: int = 0
    skipped: int = 0
    deleted: int = 0
    fault: str = ""  # of the first bad one

    def write(
        self,
        file: _Rows,
        rows: Mapping[TopicPartition, Sequence[Records]],
        decoder: ValueDecoder,
        memory: DecodingMemory,
        mask: RecordMask | None,
    ) -> None:
        """Decode records and write them, some at a time: all together may take much memory."""
        waiting, size = list[pa.RecordBatch](), 0
        for group in _groups(rows):
            table = to_arrow(group)
            self.newest_ms = newest(self.newest_ms, _newest_ms(table))
            self.skipped += len(table)
            for batch in decoded(table, decoder, memory, mask):
                waiting.append(batch)
                size += batch.nbytes
                if size >= GROUP_BYTES:
                    self._write(file, waiting)
                    waiting, size = [], 0
        if waiting:
            self._write(file, waiting)

    def _write(self, file: _Rows, batches: Sequence[pa.RecordBatch]) -> None:
        table = pa.Table.from_batches(batches)
        self.skipped -= len(table)
        bad = len(table) - table["bad"].null_count
        self.fault = self.fault or (_first_fault(table) if bad else "")
        self.bad += bad
        self.deleted += _deleted(table)
        file.write(table, bad)


def _deleted(table: pa.Table) -> int:
    """Return how many of decoded rows are those of what was deleted."""
    row = table.schema.field("row").type if "row" in table.schema.names else pa.struct([])
    if row.get_field_index(OP.name) < 0:
        return 0
    ops: Any = pc.struct_field(table["row"], OP.name)
    return pc.sum(pc.equal(ops, pa.scalar(DELETED))).as_py() or 0


def _entry(footer: Footer, decoder: ValueDecoder | None, facts: _Facts) -> dict[str, Any]:
    """Return what a file says of itself."""
    return {
        "topic": footer.topic,
        "topic_id": footer.topic_id,
        "ranges": [[p, first, end] for p, (first, end) in sorted(footer.ranges.items())],
        "columns": None if decoder is None else columns_text(decoder.columns),
        "bad": facts.bad,
        "skipped": facts.skipped,
        "deleted": facts.deleted,
        "fault": facts.fault,
        "decoded_by": "" if decoder is None else decoder.settings,
        "newest_ms": facts.newest_ms,
        "cut": None if footer.cut is None else sorted(footer.cut),
        "proposed": "" if decoder is None else columns_text(decoder.proposed),
        "masked_by": footer.masked_by,
    }


def is_whole(content: bytes) -> bool:
    """Return whether a file's content can be read: all that Arrow says against it is damage."""
    try:
        pq.read_table(pa.BufferReader(content))
    except (pa.ArrowException, OSError):
        return False
    return True


def footer_bytes(tail: bytes) -> int | None:
    """Return how many of a file's last bytes are its footer; None if it ends in none of ours.

    Args:
        tail: The file's last bytes, a few at least.
    """
    if len(tail) < len(_MAGIC) + _LENGTH_BYTES or not tail.endswith(_MAGIC):
        return None
    length = int.from_bytes(tail[-len(_MAGIC) - _LENGTH_BYTES : -len(_MAGIC)], "little")
    whole = length + _LENGTH_BYTES + len(_MAGIC)
    return whole if whole <= FOOTER_BYTES else None


def decode_footer(tail: bytes) -> Footer | None:
    """Return what a file says of itself; None if it is damaged, or was not staged by us.

    Args:
        tail: The file's last bytes, with its whole footer.
    """
    try:
        metadata = pq.read_metadata(pa.BufferReader(tail))
        entries = metadata.metadata or {}
        as_table = TABLE_FOOTER.encode() in entries
        entry = orjson.loads(entries[(TABLE_FOOTER if as_table else FOOTER).encode()])
        topic_id, ranges, topic = entry["topic_id"], entry["ranges"], entry.get("topic")
        ranges_of = {
            checked_offset("partition", p): (
                checked_offset("begin", first),
                checked_offset("end", end),
            )
            for p, first, end in ranges
        }
        bad = checked_offset("bad", entry.get("bad", 0))
        skipped = checked_offset("skipped", entry.get("skipped", 0))
        deleted = checked_offset("deleted", entry.get("deleted", 0))
        text = entry.get("columns")  # not there: the file is of an older version
        fault = str(entry.get("fault", ""))[:MOST_FAULT]
        decoded_by = str(entry.get("decoded_by", ""))
        columns = parse_row(text) if text else (None if text is None else ())
        newest_ms = entry.get("newest_ms")
        newest_ms = None if newest_ms is None else checked_offset("newest_ms", newest_ms)
        cut = entry.get("cut")
        cut = None if cut is None else frozenset(checked_offset("cut", p) for p in cut)
    except (pa.ArrowException, OSError, ValueError, TypeError, KeyError):
        return None
    if not isinstance(topic, str | None) or not isinstance(topic_id, str | None):
        return None
    return Footer(
        topic_id=topic_id,
        rows=metadata.num_rows + (bad if as_table else 0),
        ranges=ranges_of,
        columns=columns,
        bad=bad,
        skipped=skipped,
        deleted=deleted,
        fault=fault,
        decoded_by=decoded_by,
        masked_by=str(entry.get("masked_by", "")),
        newest_ms=newest_ms,
        topic=topic,
        as_table=as_table,
        cut=cut,
        proposed=known_columns(entry.get("proposed")),
    )
