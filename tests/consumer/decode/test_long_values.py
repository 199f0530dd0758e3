"""What one long value costs is bounded, whatever it is made of: work grows as length does."""

from itertools import product

import pyarrow as pa
import pytest
from tests.fuzz.limits import check
from tests.fuzz.target import Target

from binwright.consumer.decode.csv_values import CsvDecoder
from binwright.consumer.decode.json_values import JsonDecoder
from binwright.consumer.decode.variant_values import VariantDecoder
from binwright.tables.columns import parse_columns
from binwright.tables.ports import ValueDecoder

LENGTHS = 10_000, 1_000_000
"""Bytes: quadratic work shows at the first one, before the second would take hours."""
BEGINS = "", "1.", "1e", "2026-11-23T10:11:12.", "2026-11-23T10:11:12+01:00["
UNITS = "0", "1", ".", "e", "-", "1.", "e-100", " ", "A", "A=", "T", "_", "[", "}"
TYPES = (
    *("TINYINT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL(9,2)", "DECIMAL(38,38)", "BOOLEAN"),
    *("DATE", "TIMESTAMP", "STRING", "BINARY"),
)


def texts(length: int) -> list[str]:
    """Return texts that begin as a value of some type does, and end as none does."""
    made = (begin + unit * (length // len(unit)) for begin, unit in product(BEGINS, UNITS))
    return [f"{text}x" for text in made]


def within_limits(decoder: ValueDecoder, value: bytes) -> None:
    array: pa.BinaryArray = pa.array([value], pa.binary())
    check(Target(lambda _: decoder.decode(array), (), ()), value)


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("length", LENGTHS)
def test_a_long_text_of_a_column_costs_as_much_as_its_length(length: int, kind: str) -> None:
    columns = parse_columns(f"a {kind}")
    csv, in_json = CsvDecoder(columns, ","), JsonDecoder(columns)
    for text in texts(length):
        within_limits(csv, text.encode())
        within_limits(in_json, b'{"a":"%s"}' % text.encode())


@pytest.mark.parametrize("kind", ["BIGINT", "DOUBLE", "DECIMAL(9,2)", "STRING", "VARIANT"])
@pytest.mark.parametrize("length", LENGTHS)
def test_a_long_number_costs_as_much_as_its_length(length: int, kind: str) -> None:
    decoder = JsonDecoder(parse_columns(f"a {kind}"))
    for begin in ("1", "0.", "-0.", "1e", "1e-", "1.5e-", "0e"):
        within_limits(decoder, b'{"a":%s}' % (begin + "1" * length).encode())


VARIANT_PARTS = (
    *("1" * 300, "1" * 1_000, '"' + "1" * 1_000 + '"', "-0.0", '"-0.0"', "1.5", "1e-300"),
    *('"\\\\"', '"\\"-0.0"', "true", '{"e-100":[]}'),
)


@pytest.mark.parametrize("decoder_of", [VariantDecoder, JsonDecoder])
@pytest.mark.parametrize("length", [10_000, 250_000])
def test_a_long_variant_costs_as_much_as_its_length(
    length: int, decoder_of: type[VariantDecoder | JsonDecoder]
) -> None:
    decoder = decoder_of(parse_columns("a VARIANT"))
    for first, part in product(('"' + "1" * 1_001 + '"', "-0.0", "1e-300"), VARIANT_PARTS):
        array = f"[{first}{f',{part}' * (length // (len(part) + 1))}]"
        within_limits(decoder, f'{{"a":{array}}}'.encode())


def test_texts_just_shorter_than_what_is_refused_are_looked_at_once() -> None:
    """To begin a search for 1,001 digits at each of 1,000 costs 500 looks at each."""
    value = b"[%s]" % b",".join([b'"%s"' % (b"1" * 1_000)] * 4_000)
    within_limits(VariantDecoder(parse_columns("a VARIANT")), value)
