"""No file has what a mask hides: not in columns, keys, headers, bad records, nor beside them."""

import hmac
import json
from collections.abc import Iterator, Sequence
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from structlog.testing import capture_logs

from binwright.consumer.decode import masking
from binwright.consumer.decode.arrow_types import row_type
from binwright.consumer.decode.decoders import Decoders
from binwright.consumer.stage.parquet import Encoded, decode_footer, encode_for_table
from binwright.protocol.errors import MaskUnavailable
from binwright.protocol.model import TopicPartition
from binwright.protocol.ports.kafka import Record, Records
from binwright.runtime.settings.group import load_settings
from binwright.tables.columns import columns_text, parse_columns
from binwright.tables.comparisons import parse_comparison
from binwright.tables.masks import MASKED_REASON
from binwright.tables.ports import Footer, ValueDecoder

P = TopicPartition("a", 0)
SECRET = "b5b8fe62-of-sixteen"  # noqa: S105 - of a test
CLEAR = "CLEAR-ann@example.com"
COLUMNS = (
    "id BIGINT, mail STRING, qty INT, by STRUCT<name: STRING, n: INT>, "
    "more ARRAY<STRUCT<mail: STRING, n: INT>>, tags ARRAY<STRING>, raw BINARY, price DECIMAL(9,2)"
)


@pytest.fixture
def key_file(tmp_path: Path) -> Path:
    file = tmp_path / "key"
    file.write_text(f"{SECRET}\n")
    return file


def write(file: Path, content: bytes | None) -> None:
    """Let a file have this content; None: there is none."""
    if content is None:
        file.unlink()
    else:
        file.write_bytes(content)


def hashed(value: str, key: str = SECRET) -> str:
    return hmac.digest(key.encode(), value.encode(), "sha256").hex()


def record(offset: int, value: Any, key: bytes | None = None, **headers: bytes | None) -> Record:
    content = value if value is None or isinstance(value, bytes) else json.dumps(value).encode()
    return Record(offset, 0, key, content, headers=(*headers.items(),))


class Staged:
    """What a file has of records, and the one beside it."""

    def __init__(self, files: Encoded) -> None:
        self.contents = [file.to_pybytes() for file in files if file is not None]
        tables = [pq.read_table(pa.BufferReader(content)) for content in self.contents]
        self.rows: list[dict[str, Any]] = [row for each in tables for row in each.to_pylist()]
        footer = decode_footer(self.contents[0])
        assert footer is not None
        self.footer: Footer = footer

    @property
    def places(self) -> list[dict[str, Any]]:
        """Where records were: good ones first."""
        return [row.get("_kafka") or row for row in self.rows]

    @property
    def bad(self) -> list[dict[str, Any]]:
        """What is kept of bad records."""
        return [row["bad"] for row in self.rows if "bad" in row]

    def has(self, text: str) -> bool:
        """Whether rows, a footer or statistics have this text."""
        for content in self.contents:
            length = int.from_bytes(content[-8:-4], "little")
            stats = repr(pq.read_metadata(pa.BufferReader(content)).to_dict())
            if text.encode() in content[-8 - length :] or text in stats:
                return True
        return text in repr(self.rows)


async def staged(
    mask: Any, *records: Record, decoders: Decoders | None = None, **given: Any
) -> Staged:
    """Return the file that records become in a table with this mask."""
    table = {"topics": ["a"], "format": "json", "columns": COLUMNS, "mask": mask, **given}
    settings = load_settings(tables=[table])
    [target], rows = settings.targets("a"), {P: [Records.of(records)]}
    async with Decoders(settings) as own:
        decoders = decoders or own
        decoder, place = await decoders.of(target, rows), await decoders.mask_of(target)
    footer = Footer("id", len(records), {0: (0, len(records))}, masked_by=target.masking)
    return Staged(encode_for_table(rows, footer, decoder, mask=place))


async def test_fields_are_hashed_cut_nulled_and_dropped_and_null_stays_null(
    key_file: Path,
) -> None:
    mask = {
        "fields": {
            **dict.fromkeys(("mail", "id", "price", "raw", "tags"), "sha256"),
            "by.name": "drop",
            "more.mail": "last 4",
            "qty": "null",
        },
        "key_file": key_file,
    }
    more = [{"mail": CLEAR, "n": 1}, {"mail": "1234"}, None]
    full = {"id": 7, "mail": CLEAR, "qty": 4, "by": {"name": CLEAR, "n": 2}, "more": more}
    full |= {"tags": [CLEAR, None], "raw": "AAEC", "price": 1.5}
    file = await staged(mask, record(0, full), record(1, {"id": None}), record(2, {"tags": []}))
    first, second, third = ({**row, "_kafka": 0} for row in file.rows)
    assert first == {
        "_kafka": 0,
        "id": hashed("7"),
        "mail": hashed(CLEAR),
        "qty": None,
        "by": {"n": 2},
        "more": [{"mail": "***.com", "n": 1}, {"mail": "***", "n": None}, None],
        "tags": [hashed(CLEAR), None],
        "raw": hashed("\0\1\2").encode(),
        "price": hashed("1.50"),
    }
    assert set(second.values()) == {0, None}
    assert third["tags"] == []
    assert file.footer.as_table
    assert columns_text(file.footer.columns or ())[:23] == "id string, mail string,"
    assert not file.has("CLEAR")


async def test_a_bad_record_has_neither_its_value_nor_a_reason_that_quotes_it(
    key_file: Path,
) -> None:
    """Nor has the footer, whose first fault is shown in the status."""
    bad = [record(0, {"qty": CLEAR}), record(1, CLEAR.encode()), record(2, {"id": 1})]
    mask: dict[str, Any] = {"fields": {"mail": "null"}}
    assert (await staged({**mask, "bad": "keep"}, *bad)).has("CLEAR")
    file = await staged(mask, *bad)
    assert [(each["value"], each["kind"]) for each in file.bad] == [
        (None, "incompatible"),
        (None, "malformed"),
    ]
    assert file.footer.fault == f"a-0 at offset 0: incompatible: {MASKED_REASON}"
    assert not file.has("CLEAR")
    file = await staged({**mask, "bad": "sha256", "key_file": key_file}, *bad)
    assert file.bad[1]["value"] == hashed(CLEAR).encode()
    assert not file.has("CLEAR")


async def test_keys_and_headers_are_masked_by_name_of_good_and_of_bad_records(
    key_file: Path,
) -> None:
    headers = {name: CLEAR.encode() for name in ("user", "token", "trace", "other")}
    headers["gone"] = None  # type: ignore[assignment]
    every = [record(0, {}, CLEAR.encode(), **headers), record(1, b"no"), record(2, {}, b"")]
    rules = {"user": "sha256", "token": "drop", "trace": "last 3", "gone": "sha256", "*": "null"}
    mask = {"key": "sha256", "headers": rules, "key_file": key_file}
    for count in (3, 1):  # with a bad record, and without
        file = await staged(mask, *every[:count])
        place = file.places[0]
        assert place["key"] == hashed(CLEAR).encode()
        assert [(each["key"], each["value"]) for each in place["headers"]] == [
            ("user", hashed(CLEAR).encode()),
            ("trace", b"***com"),
            ("other", None),
            ("gone", None),
        ]
        assert not file.has("CLEAR")
    assert [place["key"] for place in (await staged(mask, *every)).places[1:]] == [
        hashed("").encode(),
        None,
    ]


async def test_a_decoded_key_is_masked_in_both_places(key_file: Path) -> None:
    mask = {"fields": {"_kafka_key.k": "sha256"}, "key": "drop", "key_file": key_file}
    key = {"format": "json", "columns": "k STRING, n INT"}
    of_key = json.dumps({"k": CLEAR, "n": 1}).encode()
    file = await staged(mask, record(0, {}, of_key), record(1, {}, b"CLEAR"), key=key)
    good, _ = file.rows
    assert good["_kafka"]["key"] is None
    assert good["_kafka_key"] == {"k": hashed(CLEAR), "n": 1}
    assert file.bad[0]["kind"] == "key_malformed"
    assert not file.has("CLEAR")


async def test_a_raw_table_has_its_values_masked(key_file: Path) -> None:
    mask = {"fields": {"value": "sha256"}, "key": "null", "key_file": key_file}
    raw: Any = {"format": "raw", "columns": None}
    file = await staged(mask, record(0, b"CLEAR", b"CLEAR"), record(1, None), **raw)
    assert [(row["key"], row["value"]) for row in file.rows] == [
        (None, hashed("CLEAR").encode()),
        (None, None),
    ]
    assert file.footer.masked_by == "bad null; field value sha256; key null"
    assert not file.has("CLEAR")


async def test_records_that_a_filter_leaves_out_are_skipped_and_bad_ones_are_not() -> None:
    records = [
        record(0, {"mail": "test", "qty": 1}),
        record(1, {"mail": "x", "qty": 1}),
        record(2, {"mail": None, "qty": 1}),
        record(3, None),
        record(4, {"qty": "CLEAR"}),
        record(5, {"mail": "x", "qty": 9}),
    ]
    mask = {"fields": {"mail": "drop"}}
    file = await staged(mask, *records, where=["mail != 'test'", "qty < 9"])
    assert [place["offset"] for place in file.places] == [1, 4]
    assert (file.footer.rows, file.footer.skipped, file.footer.bad) == (2, 4, 1)
    file = await staged(None, *records[:4], where=["mail is null"])
    assert [row["_kafka"]["offset"] for row in file.rows] == [2, 3]


@pytest.mark.parametrize(
    ("comparison", "expected"),
    [
        ("n = 2", [2]),
        ("n != 2", [1, 3]),
        ("n < 2", [1]),
        ("n <= 2", [1, 2]),
        ("n > 2", [3]),
        ("n >= 2", [2, 3]),
        ("n in (1, 3, 7)", [1, 3]),
        ("n not in (1, 7)", [2, 3]),
        ("n is null", [None]),
        ("n is not null", [1, 2, 3]),
    ],
)
def test_a_comparison_with_null_holds_only_if_it_asks_for_null(
    comparison: str, expected: list[int | None]
) -> None:
    numbers = [1, 2, 3, None]
    rows = pa.array([{"n": n} for n in numbers], pa.struct([("n", pa.int32())]))
    where = parse_comparison(comparison)
    mask = masking.taken(rows, [(where, *where.values(parse_columns("n INT")))])
    assert [
        n for n, is_taken in zip(numbers, mask.to_pylist(), strict=True) if is_taken
    ] == expected


@pytest.mark.parametrize(
    ("column", "comparison", "values", "expected"),
    [
        ("x FLOAT", "x > 0.1", [0.5, 0.0], [True, False]),
        ("x DOUBLE", "x = 0.5", [0.5, 0.1], [True, False]),
        ("x DECIMAL(38,0)", "x > 1.5", [1, 2], [False, True]),
        ("x DECIMAL(38,38)", "x < 0.5", ["0.1", "0.9"], [True, False]),
        ("x BOOLEAN", "x != true", [True, False], [False, True]),
        ("x STRING", "x >= 'é'", ["e", "é"], [False, True]),
        ("x DATE", "x < '2026-01-01'", ["2025-12-31", "2026-01-01"], [True, False]),
        ("x TIMESTAMP", "x >= '2026-01-01T01:00+01:00'", [1, 1767225600000000], [False, True]),
    ],
)
def test_columns_of_each_type_are_compared(
    column: str, comparison: str, values: Sequence[Any], expected: list[bool]
) -> None:
    columns = parse_columns(f"s STRUCT<{column}>")
    read: Any = {"DATE": date.fromisoformat, "DECIMAL": Decimal}.get(
        column[2:].split("(", maxsplit=1)[0]
    )
    rows = [{"s": {"x": read(value) if read else value}} for value in values]
    where = parse_comparison(f"s.{comparison}")
    made = pa.array([*rows, {"s": None}, None], row_type(columns))
    assert masking.taken(made, [(where, *where.values(columns))]).to_pylist() == [
        *expected,
        False,
        False,
    ]


async def test_another_secret_counts_at_once_and_is_logged_without_it(key_file: Path) -> None:
    mask = {"fields": {"mail": "sha256"}, "key_file": key_file}
    settings = load_settings(
        tables=[{"topics": ["a"], "format": "json", "columns": COLUMNS, "mask": mask}]
    )
    other = "another-secret-of-some-length"
    async with Decoders(settings) as decoders:
        with capture_logs() as logs:
            for key in (SECRET, SECRET, other, other):
                write(key_file, key.encode())
                file = await staged(mask, record(0, {"mail": CLEAR}), decoders=decoders)
                assert file.rows[0]["mail"] == hashed(CLEAR, key)
                assert not file.has(key)
    assert [each["event"] for each in logs] == ["mask.key_changed"]
    assert not any(key in repr(logs) for key in (SECRET, other))


@pytest.mark.parametrize("content", [None, b"", b"short", b"\xff" * 20])
async def test_without_its_secret_nothing_is_staged(key_file: Path, content: bytes | None) -> None:
    write(key_file, content)
    mask = {"key": "sha256", "key_file": key_file}
    raw: Any = {"format": "raw", "columns": None}
    tables: list[dict[str, Any]] = [{}, raw]
    for given in tables:
        with pytest.raises(MaskUnavailable, match=r"mask\.key_file|No such file") as raised:
            await staged(mask, record(0, {}), **given)
        assert "short" not in str(raised.value)


class _OfSubject:
    """A decoder whose columns no settings name."""

    columns = parse_columns("id INT, mail STRING")
    settings, proposed = "", ()

    def memory(self, *_: Any) -> int:
        return 1

    def decode(self, *_: Any) -> Any:
        raise AssertionError(CLEAR)


def of_subject(decoder: ValueDecoder, **given: Any) -> masking.MaskedDecoder:
    table = {"topics": ["a"], "format": "avro", **given}
    (entry,) = load_settings(tables=[table], registry={"url": "https://registry"}).tables
    return masking.MaskedDecoder(decoder, entry, b"k" * 16)


@pytest.mark.parametrize(
    ("given", "fault"),
    [
        ({"mask": {"fields": {"nail": "drop"}}}, "mask.fields: there is no column or field nail"),
        ({"where": ["mail = 1"]}, "where: 'mail = 1': mail is string"),
        ({"mask": {"fields": dict.fromkeys(("id", "mail"), "drop")}}, "nothing would be left"),
    ],
)
def test_records_wait_where_a_subject_has_no_such_column(given: Any, fault: str) -> None:
    with pytest.raises(MaskUnavailable, match=fault):
        of_subject(_OfSubject(), **given)
    none = _OfSubject()
    none.columns = ()  # all are bad
    assert of_subject(none, **given).columns == ()


def nulls(_: Any, rule: Any, key: bytes) -> Iterator[Any]:
    raise ValueError(f"{CLEAR} {rule} {key!r}")


async def test_what_cannot_be_masked_is_no_bad_record_and_its_fault_quotes_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(masking, "masked_array", nulls)
    raw: Any = {"format": "raw", "columns": None}
    for mask, given in [({"fields": {"mail": "null"}}, {}), ({"key": "null"}, raw)]:
        with pytest.raises(MaskUnavailable) as raised:
            await staged(mask, record(0, {"mail": CLEAR}), **given)
        assert CLEAR not in str(raised.value)
        assert raised.value.__suppress_context__


async def test_a_value_that_fails_its_decoder_is_masked_like_any_bad_one() -> None:
    decoder = of_subject(_OfSubject(), mask={"fields": {"mail": "drop"}})
    values = pa.array([CLEAR.encode()], pa.binary())
    rows, bad = decoder.decode(values, values, values)
    assert rows.type.names == ["id"]
    assert bad.to_pylist() == [{"value": None, "kind": "malformed", "reason": MASKED_REASON}]
