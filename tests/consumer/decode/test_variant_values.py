"""JSON of any shape becomes one column."""

from typing import Any

import orjson
import pyarrow as pa
import pytest

from binwright.consumer.decode.json_records import RecordReader
from binwright.consumer.decode.variant_limits import MOST_BYTES
from binwright.consumer.decode.variant_values import VariantDecoder
from binwright.tables.columns import parse_columns

DECODER = VariantDecoder(parse_columns("value VARIANT"))


def decoded(*values: bytes | None) -> tuple[list[Any], list[Any]]:
    rows, bad = DECODER.decode(pa.array(values, pa.binary()))
    return rows.to_pylist(), bad.to_pylist()


def test_any_json_is_taken_as_it_is_written() -> None:
    values = [b'{"a": 1.10, "a": 2}', b" [1, null]\n", b"7", b'"x"', b"null", b"true"]
    rows, bad = decoded(*values, None)
    assert [row["value"] for row in rows] == [*(value.decode() for value in values), None]
    assert bad == [None] * 7


@pytest.mark.parametrize(
    ("value", "kind", "reason"),
    [
        (b"", "malformed", "zero-length"),
        (b"{", "malformed", ""),
        (b"\xff", "malformed", ""),
        (b"NaN", "malformed", ""),
        (b"[" * 501 + b"]" * 501, "malformed", "nested more than 500 deep"),
        (b"0." + b"1" * 999, "incompatible", "value needs numbers of 1000 characters at most"),
        (b"[1, 1e-400]", "incompatible", "numbers that are not too small for a double"),
        (b'{"a": -12.5E-0000999}', "incompatible", "numbers that are not too small"),
        (b"0." + b"0" * 330 + b"1", "incompatible", "numbers that are not too small"),
        (b"0." + b"0" * 290 + b"1e-99", "incompatible", "numbers that are not too small"),
        (b'{"' + b"a" * 50_001 + b'": 1}', "incompatible", "names of 50000 characters at most"),
        (
            b'[{"a": {"' + b"a" * 50_001 + b'": 1}}]',
            "incompatible",
            "names of 50000 characters at most",
        ),
        (b'"' + b"a" * MOST_BYTES + b'"', "incompatible", "value needs a value of 16 MB at most"),
    ],
)
def test_what_spark_would_refuse_is_bad(value: bytes, kind: str, reason: str) -> None:
    (row,), (bad,) = decoded(value)
    assert row is None
    assert (bad["kind"], bad["value"]) == (kind, value)
    assert reason in bad["reason"]


def test_what_is_long_within_a_text_is_no_number_and_no_name() -> None:
    rows, bad = decoded(b'{"a": "' + b"1" * 60_000 + b'", "b": "\\"' + b"1" * 1_500 + b'"}')
    assert bad == [None]
    assert rows[0] is not None


def test_what_is_zero_or_text_is_not_too_small() -> None:
    values = [b"0e-400", b"-0.0e-999", b"0." + b"0" * 400, b'["1e-400"]', b"1e-300", b"5e-324"]
    rows, bad = decoded(*values)
    assert bad == [None] * len(values)
    assert rows[0] == {"value": "0e-400"}


def test_a_negative_zero_keeps_its_sign() -> None:
    """Spark reads -0.0 as a decimal, which has no sign, and -0e0 as a double, which has one."""
    rows, _ = decoded(b'{"a-0.0": ["-0.0", -0.0, -0.00e5, -0.01, 1.5e-0, -0]}', b'"\\"-0.0"')
    assert rows[0]["value"] == '{"a-0.0": ["-0.0", -0e0, -0e0, -0.01, 1.5e-0, -0]}'
    assert rows[1]["value"] == '"\\"-0.0"'
    assert RecordReader(parse_columns("a VARIANT")).read(b'{"a": -0.0}') == {"a": "-0e0"}


def test_a_byte_order_mark_is_no_part_of_a_value() -> None:
    assert decoded(b"\xef\xbb\xbf[1]") == ([{"value": "[1]"}], [None])


def test_a_column_of_any_shape_stands_beside_others() -> None:
    reader = RecordReader(parse_columns("id BIGINT, more VARIANT"))
    for value, more in [
        ('{"id": 1, "more": {"b": [1.10, 1e3, 12345678901234567890123], "a": null}}', None),
        ('{"id": 1, "more": "text"}', '"text"'),
        ('{"id": 1, "more": 0.1000}', "0.1000"),
    ]:
        found = reader.read(value.encode())
        wanted = more or value[len('{"id": 1, "more": ') : -1].replace(" ", "")
        assert found == {"id": 1, "more": wanted}
    assert reader.read(b'{"more": null}') == {}
    for deep, wanted in [
        (b"[" * 300 + b"]" * 300, "more needs a value nested less deep"),
        (b"0." + b"1" * 2_000, "more needs numbers of 1000 characters at most"),
    ]:
        bad = reader.read(orjson.dumps({"more": orjson.Fragment(deep)}))
        assert wanted in bad.reason  # type: ignore[union-attr]
