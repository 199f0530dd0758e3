"""Records become rows without loss or change; a file's footer says what it holds."""

from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from binwright.consumer.decode.avro_values import AvroDecoder
from binwright.consumer.decode.json_values import JsonDecoder
from binwright.consumer.decode.portions import DecodingMemory
from binwright.consumer.decode.variant_values import VariantDecoder
from binwright.consumer.stage.parquet import (
    COLUMNS,
    FOOTER,
    FOOTER_BYTES,
    MOST_DAYS,
    SCHEMA,
    decode_footer,
    decoded_schema,
    encode,
    encode_for_table,
    footer_bytes,
    table_schema,
    to_arrow,
)
from binwright.protocol.fields import LATEST_MS
from binwright.protocol.model import TopicPartition
from binwright.protocol.ports.kafka import Record
from binwright.tables.columns import SIMPLE, Columns, parse_columns
from binwright.tables.ports import Footer
from binwright.testing.records import in_columns

P, Q = TopicPartition("orders", 0), TopicPartition("orders", 7)
R = TopicPartition("orders", 11)


def test_a_footer_states_which_ranges_begin_after_a_cut_and_an_older_one_does_not() -> None:
    for cut in (None, frozenset[int](), frozenset({0})):
        content = encode({}, Footer(None, 0, {0: (1, 2)}, cut=cut)).to_pybytes()
        assert decode_footer(content) == Footer(None, 0, {0: (1, 2)}, cut=cut)


def test_a_record_becomes_a_row_with_all_its_fields() -> None:
    headers = (("a", b"1"), ("a", None), ("b", b""))
    record = Record(7, 1_700_000_000_123, b"k", b"v", 1, headers)

    assert to_arrow(in_columns({R: [record]})).to_pylist() == [
        {
            "topic": "orders",
            "partition": 11,
            "offset": 7,
            "timestamp": datetime(2023, 11, 14, 22, 13, 20, 123_000, tzinfo=UTC),
            "timestamp_type": 1,
            "key": b"k",
            "value": b"v",
            "headers": [
                {"key": "a", "value": b"1"},
                {"key": "a", "value": None},
                {"key": "b", "value": b""},
            ],
        }
    ]


def test_missing_fields_are_null_and_missing_headers_an_empty_list() -> None:
    row = to_arrow(in_columns({P: [Record(0, 0, None, None)]})).to_pylist()[0]

    assert (row["key"], row["value"], row["headers"]) == (None, None, [])


def test_headers_stay_with_their_record() -> None:
    given = [(), (("a", b"1"),), (), (("b", b"2"), ("c", b"3")), ()]
    table = to_arrow(
        in_columns({P: [Record(i, 0, None, b"", headers=h) for i, h in enumerate(given)]})
    )

    assert [
        tuple((header["key"], header["value"]) for header in row["headers"])
        for row in table.to_pylist()
    ] == given


def test_rows_are_ordered_by_partition_as_given_and_by_offset() -> None:
    rows = {R: [Record(5, 0, None, b"")], P: [Record(1, 0, None, b""), Record(9, 0, None, b"")]}
    table = to_arrow(in_columns(rows))
    positions = zip(table["partition"].to_pylist(), table["offset"].to_pylist(), strict=True)

    assert list(positions) == [(11, 5), (0, 1), (0, 9)]


@pytest.mark.parametrize("ms", [-1, LATEST_MS + 1, 1_700_000_000_000_000_000, 2**63 - 1])
def test_a_timestamp_out_of_range_is_null(ms: int) -> None:
    """One producer that gives nanoseconds for milliseconds must not stop a table."""
    assert to_arrow(in_columns({P: [Record(0, ms, None, b"")]}))["timestamp"].to_pylist() == [None]


def test_the_last_valid_timestamp_is_kept() -> None:
    assert to_arrow(in_columns({P: [Record(0, LATEST_MS, None, b"")]}))[
        "timestamp"
    ].to_pylist() == [datetime(9999, 12, 31, 23, 59, 59, 999_000, tzinfo=UTC)]


@pytest.mark.parametrize("rows", [{}, {P: []}])
def test_no_records_are_an_empty_table(rows: dict[TopicPartition, list[Record]]) -> None:
    table = to_arrow(in_columns(rows))

    assert table.num_rows == 0
    assert table.schema == SCHEMA


def test_the_columns_are_the_same_in_arrow_and_in_spark() -> None:
    assert list(COLUMNS) == SCHEMA.names


# --- footers -------------------------------------------------------------------------------------

RANGES = {0: (3, 9), 7: (2**62, 2**62 + 1)}


def test_a_footer_has_the_ranges_and_the_topics_id_and_the_rows_that_are_there() -> None:
    """The number of rows is counted by Parquet; the writer's word for it is not kept."""
    rows = {P: [Record(3, 0, None, b""), Record(8, 0, None, b"")], Q: [Record(2**62, 0, None, b"")]}
    content = encode(in_columns(rows), Footer("an-id", 99, RANGES)).to_pybytes()

    assert decode_footer(content) == Footer("an-id", 3, RANGES, newest_ms=0)
    wanted = footer_bytes(content[-100:])
    assert wanted is not None
    assert decode_footer(content[-wanted:]) == Footer("an-id", 3, RANGES, newest_ms=0)
    assert decode_footer(content[1 - wanted :]) is None


@pytest.mark.parametrize(
    ("timestamps_ms", "newest_ms"), [([7, 9, 8], 9), ([LATEST_MS + 1, 3], 3), ([-1], None)]
)
def test_a_footer_has_the_highest_valid_timestamp(
    timestamps_ms: list[int], newest_ms: int | None
) -> None:
    rows = {P: [Record(n, at, None, b"") for n, at in enumerate(timestamps_ms)]}
    content = encode(in_columns(rows), Footer("x", len(timestamps_ms), RANGES))
    footer = decode_footer(content.to_pybytes())
    assert footer
    assert footer.newest_ms == newest_ms


def test_a_topic_without_an_id_has_none_in_the_footer() -> None:
    assert decode_footer(encode({}, Footer(None, 0, {})).to_pybytes()) == Footer(None, 0, {})


def test_a_footer_of_many_partitions_is_small() -> None:
    """Every file of a topic has it."""
    small, large = (
        len(encode({}, Footer("x" * 22, 0, dict.fromkeys(range(count), (2**40, 2**40 + 9)))))
        for count in (1, 1_001)
    )
    assert large - small < 40 * 1_000


@pytest.mark.parametrize(
    "entry",
    [
        b"",
        b"[]",
        b"{}",
        b'{"topic_id": 7, "ranges": []}',
        b'{"topic_id": null, "ranges": 7}',
        b'{"topic_id": null, "ranges": [[0, 1]]}',
        b'{"topic_id": null, "ranges": [[0, 1, "2"]]}',
        b'{"topic_id": null, "ranges": [[0, -1, 2]]}',
        b'{"topic_id": null, "ranges": [[0, 0, 9223372036854775808]]}',
        b'{"topic_id": null, "ranges": [[true, 0, 1]]}',
        b'{"topic_id": null, "ranges": [], "columns": 7}',
        b'{"topic_id": null, "ranges": [], "topic": 7}',
        b'{"topic_id": null, "ranges": [], "columns": "a varchar"}',
        b'{"topic_id": null, "ranges": [], "columns": null, "bad": -1}',
        b'{"topic_id": null, "ranges": [], "columns": null, "bad": null}',
    ],
)
def test_an_entry_of_another_form_is_no_footer(entry: bytes) -> None:
    sink = pa.BufferOutputStream()
    pq.write_table(to_arrow({}).replace_schema_metadata({FOOTER: entry}), sink)
    assert decode_footer(sink.getvalue().to_pybytes()) is None


@pytest.mark.parametrize("proposed", [None, "", "x", "x interval", 7, "x int, X int"])
def test_a_footer_that_proposes_what_is_not_known_proposes_nothing(proposed: object) -> None:
    entry = {"topic_id": None, "ranges": [], "proposed": proposed}
    sink = pa.BufferOutputStream()
    pq.write_table(to_arrow({}).replace_schema_metadata({FOOTER: orjson.dumps(entry)}), sink)
    footer = decode_footer(sink.getvalue().to_pybytes())
    assert footer is not None
    assert footer.proposed == ()


def test_an_entry_of_an_older_version_is_of_raw_records() -> None:
    entry = b'{"topic_id": "x", "ranges": [[0, 1, 2]]}'
    sink = pa.BufferOutputStream()
    pq.write_table(to_arrow({}).replace_schema_metadata({FOOTER: entry}), sink)
    assert decode_footer(sink.getvalue().to_pybytes()) == Footer("x", 0, {0: (1, 2)}, None, 0)


@pytest.mark.parametrize(
    "tail", [b"", b"PAR1", b"x" * 100, (FOOTER_BYTES).to_bytes(4, "little") + b"PAR1"]
)
def test_the_end_of_another_file_is_no_footer(tail: bytes) -> None:
    assert footer_bytes(tail) is None
    assert decode_footer(tail) is None


# --- decoded values ------------------------------------------------------------------------------

COLUMNS_OF = parse_columns("id bigint, at timestamp, price decimal(9,2), tags array<string>")
GOOD = b'{"id":1,"at":"2026-11-23T10:11:12Z","price":1.25,"tags":["a",null]}'


def test_a_decoded_file_has_a_row_or_a_bad_record_for_each_record() -> None:
    rows = {
        P: [Record(3, 5, b"k", GOOD, headers=(("h", b"1"),)), Record(4, 5, None, b'{"id":"x"}')],
        R: [Record(9, 5, None, None), Record(12, 5, b"k", b"\xff")],
    }
    content = encode(in_columns(rows), Footer("x", 4, RANGES, bad=99), JsonDecoder(COLUMNS_OF))
    table = pq.read_table(pa.BufferReader(content))

    fault = f"{P} at offset 4: incompatible: id needs bigint, has the string 'x'"
    wanted = Footer("x", 4, RANGES, COLUMNS_OF, 2, fault, newest_ms=5)
    assert decode_footer(content.to_pybytes()) == wanted
    raw = to_arrow(in_columns(rows))
    assert table.drop_columns(["row", "bad"]).equals(raw.drop_columns(["value"]))
    nothing = {"id": None, "at": None, "price": None, "tags": None}
    good = {
        "id": 1,
        "at": datetime(2026, 11, 23, 10, 11, 12, tzinfo=UTC),
        "price": Decimal("1.25"),
        "tags": ["a", None],
    }
    assert table["row"].to_pylist() == [good, None, nothing, None]
    assert [bad and (bad["value"], bad["kind"]) for bad in table["bad"].to_pylist()] == [
        None,
        (b'{"id":"x"}', "incompatible"),
        None,
        (b"\xff", "malformed"),
    ]


def test_a_decoded_file_has_these_columns_in_this_order() -> None:
    """Spark reads it by them."""
    content = encode({}, Footer(None, 0, {}), JsonDecoder(parse_columns("a int")))
    schema = pq.read_schema(pa.BufferReader(content)).remove_metadata()

    assert schema == decoded_schema(parse_columns("a int"))
    assert [f"{field.name} {field.type}" for field in schema] == [
        "topic string",
        "partition int32",
        "offset int64",
        "timestamp timestamp[us, tz=UTC]",
        "timestamp_type int32",
        "key binary",
        "headers list<element: struct<key: string, value: binary>>",
        "row struct<a: int32>",
        "bad struct<value: binary, kind: string, reason: string>",
    ]
    assert decode_footer(content.to_pybytes()) == Footer(None, 0, {}, parse_columns("a int"))


def test_columns_of_each_type_are_written_and_read_back() -> None:
    text = ", ".join(f"c{n} {name}" for n, name in enumerate(sorted(SIMPLE)))
    text += ", d decimal(38,38), m map<string,array<struct<`x-y`:map<string,int>>>>"
    columns = parse_columns(text)
    value = b'{"m":{"k":[{"x-y":{"l":1}},null],"z":null},"d":0.5}'
    rows = in_columns({P: [Record(0, 0, None, value), Record(1, 0, None, b"")]})
    content = encode(rows, Footer(None, 2, {}), JsonDecoder(columns))

    row, missing = (each.as_py() for each in pq.read_table(pa.BufferReader(content))["row"])
    assert row["m"] == [("k", [{"x-y": [("l", 1)]}, None]), ("z", None)]
    assert missing is None
    footer = decode_footer(content.to_pybytes())
    assert footer
    assert footer == Footer(None, 2, {}, columns, bad=1, fault=footer.fault, newest_ms=0)
    assert footer.fault.startswith(f"{P} at offset 1: malformed: ")


def test_a_file_without_columns_has_bad_records_and_tombstones_only() -> None:
    rows = in_columns({P: [Record(3, 5, None, b"text"), Record(4, 5, b"k", None)]})
    content = encode(rows, Footer("x", 2, {}), AvroDecoder((), {}))

    table = pq.read_table(pa.BufferReader(content))
    assert table.schema.remove_metadata() == decoded_schema(())
    assert "row" not in table.column_names
    assert [bad and bad["kind"] for bad in table["bad"].to_pylist()] == ["malformed", None]
    footer = decode_footer(content.to_pybytes())
    assert footer
    assert footer == Footer("x", 2, {}, (), bad=1, fault=footer.fault, newest_ms=5)


def test_a_raw_file_is_as_before_but_for_its_entry() -> None:
    rows = in_columns({P: [Record(3, 0, None, GOOD)]})
    content = encode(rows, Footer("x", 1, RANGES))
    assert pq.read_table(pa.BufferReader(content)).equals(to_arrow(rows))
    assert decode_footer(content.to_pybytes()) == Footer("x", 1, RANGES, newest_ms=0)


def test_values_are_decoded_and_written_in_portions() -> None:
    """All of them together may take far more memory than their bytes."""
    value = b'{"x":[' + b"{}," * 20_000 + b"{}]}"
    given = [value if n % 7 else b"no JSON" for n in range(50)]
    rows = {P: [Record(n, n, None, each) for n, each in enumerate(given)]}
    decoder, memory = Peak(JsonDecoder(parse_columns("x ARRAY<STRUCT<y: INT>>"))), DecodingMemory()
    content = encode(in_columns(rows), Footer("x", 50, {0: (0, 50)}), decoder, memory)
    found = pq.read_table(pa.BufferReader(content))
    assert found["offset"].to_pylist() == [*range(50)]
    assert [each is not None for each in found["bad"].to_pylist()] == [
        n % 7 == 0 for n in range(50)
    ]
    footer = decode_footer(content.to_pybytes())
    assert footer is not None
    assert (footer.bad, footer.skipped, footer.newest_ms) == (8, 0, 49)
    assert footer.fault.startswith("orders-0 at offset 0: malformed")
    assert len(decoder.decoded) > 10
    assert max(decoder.decoded) <= memory.portion_bytes


def test_a_file_of_a_table_has_its_columns() -> None:
    columns = parse_columns("id BIGINT, s STRUCT<b: BOOLEAN>, tags ARRAY<STRING>")
    rows = in_columns({P: [Record(3, 5, b"k", b'{"id":7,"s":{"b":true}}', 0, (("h", b"1"),))]})
    content, bad = encode_for_table(rows, Footer("x", 1, RANGES), JsonDecoder(columns))
    assert bad is None
    file = pq.ParquetFile(pa.BufferReader(content))

    footer = Footer("x", 1, RANGES, columns, newest_ms=5, as_table=True)
    assert decode_footer(content.to_pybytes()) == footer
    assert file.schema_arrow.remove_metadata() == table_schema(columns)
    assert file.read().to_pylist() == [
        {
            "_kafka": {
                "topic": "orders",
                "partition": 0,
                "offset": 3,
                "timestamp": datetime.fromtimestamp(0.005, UTC),
                "timestamp_type": 0,
                "key": b"k",
                "headers": [{"key": "h", "value": b"1"}],
            },
            "id": 7,
            "s": {"b": True},
            "tags": None,
        }
    ]
    for n in range(file.metadata.num_columns):
        column = file.metadata.row_group(0).column(n)
        assert (column.compression, column.is_stats_set) == ("ZSTD", True)


@pytest.mark.parametrize("first_bad", [0, 10, 28])
def test_bad_records_are_beside_a_file_of_a_table(first_bad: int) -> None:
    """As they are in a file that has all, whose footer says the same."""
    big = b'{"id":1,"text":"' + b"x" * (1 << 20) + b'"}'
    given = [big if n < first_bad or n % 2 else b"no JSON" for n in range(30)]
    rows = in_columns({P: [Record(n, n, None, each) for n, each in enumerate(given)]})
    decoder = JsonDecoder(parse_columns("id BIGINT, text STRING"))
    given_footer = Footer("x", 30, {0: (0, 30)})
    content, beside = encode_for_table(rows, given_footer, decoder)
    together = encode(rows, given_footer, decoder)

    footer = decode_footer(together.to_pybytes())
    assert footer
    assert decode_footer(content.to_pybytes()) == replace(footer, as_table=True)
    assert beside
    assert decode_footer(beside.to_pybytes()) == replace(footer, rows=footer.bad)
    table, bad, every = [
        pq.read_table(pa.BufferReader(each)) for each in (content, beside, together)
    ]
    assert bad.equals(every.filter(pc.is_valid(every["bad"])))
    good = every.filter(pc.is_null(every["bad"])).to_pylist()
    assert [row["_kafka"]["offset"] for row in table.to_pylist()] == [r["offset"] for r in good]
    assert table["text"].to_pylist() == [r["row"]["text"] for r in good]


DAY_MS = 86_400_000


def days_of_groups(*timestamps: int, by_day: bool = True) -> list[list[int]]:
    """Return the days of each row group of a file, since 1970."""
    records = [Record(n, at, None, b'{"id":%d}' % n) for n, at in enumerate(timestamps)]
    footer = Footer("x", len(records), {0: (0, len(records))})
    decoder = JsonDecoder(parse_columns("id BIGINT"))
    content, _ = encode_for_table(in_columns({P: records}), footer, decoder, by_day=by_day)
    file = pq.ParquetFile(pa.BufferReader(content))
    rows = file.read().to_pylist()
    assert sorted(row["id"] for row in rows) == [*range(len(records))]
    assert all(row["_kafka"]["offset"] == row["id"] for row in rows)
    groups = [file.read_row_group(n).to_pylist() for n in range(file.num_row_groups)]
    times = [[row["_kafka"]["timestamp"] for row in group] for group in groups]
    return [[-1 if at is None else at.timestamp() // 86_400 for at in group] for group in times]


def test_rows_of_two_days_are_in_row_groups_of_their_own_where_the_table_wants_that() -> None:
    times = (DAY_MS - 1, DAY_MS, 5, DAY_MS + 7)
    assert days_of_groups(*times) == [[0, 0], [1, 1]]
    assert days_of_groups(*times, by_day=False) == [[0, 1, 0, 1]]
    assert days_of_groups(1, 2) == [[0, 0]]


def test_rows_without_a_time_or_of_many_days_stay_together() -> None:
    assert days_of_groups(0, DAY_MS, -1) == [[0, 1, -1]]
    many = range(MOST_DAYS + 1)
    assert days_of_groups(*(n * DAY_MS for n in many)) == [[*many]]
    assert days_of_groups(*(n * DAY_MS for n in many[:-1])) == [[n] for n in many[:-1]]


def test_a_file_of_a_table_may_have_bad_records_alone() -> None:
    rows = in_columns({P: [Record(0, 0, None, b"no JSON")]})
    decoder = JsonDecoder(parse_columns("a int"))
    content, beside = encode_for_table(rows, Footer("x", 1, {0: (0, 1)}), decoder)
    footer = decode_footer(content.to_pybytes())
    assert footer
    assert (footer.rows, footer.bad) == (1, 1)
    assert pq.read_metadata(pa.BufferReader(content)).num_rows == 0
    assert beside
    assert pq.read_metadata(pa.BufferReader(beside)).num_rows == 1


@pytest.mark.parametrize("columns", ["v VARIANT", ""])
def test_rows_that_spark_must_write_are_laid_out_for_it(columns: str) -> None:
    decoder: Any = VariantDecoder(parse_columns(columns)) if columns else AvroDecoder((), {})
    content, _ = encode_for_table({}, Footer(None, 0, {}), decoder)
    assert decode_footer(content.to_pybytes()) == Footer(None, 0, {}, decoder.columns)


def test_an_earlier_version_does_not_read_a_file_of_a_table() -> None:
    """It would take NULL for each value."""
    decoder = JsonDecoder(parse_columns("a int"))
    content, _ = encode_for_table({}, Footer(None, 0, {}), decoder)
    assert FOOTER.encode() not in (pq.read_metadata(pa.BufferReader(content)).metadata or {})


def test_a_raw_file_of_a_table_has_statistics_of_where_its_records_are() -> None:
    rows = in_columns({P: [Record(3, 0, None, GOOD)]})
    content, _ = encode_for_table(rows, Footer("x", 1, RANGES))
    file = pq.ParquetFile(pa.BufferReader(content))
    assert file.read().equals(to_arrow(rows))
    assert decode_footer(content.to_pybytes()) == Footer("x", 1, RANGES, newest_ms=0)
    group = file.metadata.row_group(0)
    columns = [group.column(n) for n in range(file.metadata.num_columns)]
    measured = {column.path_in_schema for column in columns if column.is_stats_set}
    assert measured == {"partition", "offset", "timestamp"}


class Peak:
    """A decoder that knows what it was given at a time."""

    proposed: Columns = ()

    def __init__(self, decoder: JsonDecoder) -> None:
        self.columns, self.settings, self.memory = decoder.columns, "", decoder.memory
        self._decoder, self.decoded = decoder, list[int]()

    def decode(self, values: Any, *_: Any) -> tuple[Any, Any]:
        self.decoded.append(self.memory(values))
        return self._decoder.decode(values)


def test_a_footer_counts_the_rows_that_delete() -> None:
    columns = parse_columns("id INT, _op STRING")
    values = [b'{"_op":"d"}', b'{"_op":"u"}', b"no JSON", b'{"_op":"d"}', b"{}"]
    rows = in_columns({P: [Record(n, 0, None, value) for n, value in enumerate(values)]})
    ranges = {0: (0, len(values))}
    for of, deleted in ((columns, 2), (parse_columns("id INT"), 0)):
        content, _ = encode_for_table(rows, Footer("x", 5, ranges), JsonDecoder(of))
        footer = decode_footer(content.to_pybytes())
        assert footer is not None
        assert (footer.rows, footer.bad, footer.deleted) == (5, 1, deleted)
