"""What a value is that cannot be decoded is said where its first bytes tell."""

import gzip
import struct
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from binwright.consumer.decide.wire_forms import recognised

JSON = b'{"id": 1}'
AVRO = b"\x02\x02w"


@pytest.mark.parametrize(
    ("value", "word"),
    [
        (gzip.compress(JSON, mtime=0), "gzip"),
        (zlib.compress(JSON), "zlib"),
        (b"\x28\xb5\x2f\xfd\x04\x00", "Zstandard"),
        ('{"id": 1}'.encode("utf-16"), "UTF-16"),
        (b"\xfe\xff" + '{"id": 1}'.encode("utf-16-be"), "UTF-16"),
        ('{"id": 1}'.encode("utf-16-le"), "UTF-16"),
        ('{"id": 1}'.encode("utf-16-be"), "UTF-16"),
        ("[1]".encode("utf-32"), "UTF-32"),
        (b"\xef\xbb\xbf" + JSON, "byte order mark"),
        (b"Obj\x01\x04\x14avro.codec", "object container"),
        (b"\xc3\x01" + bytes(8) + AVRO, "single object"),
        (b"\x03\x00" + bytes(range(16)) + AVRO, "Glue"),
        (b"\x03\x05" + bytes(range(16)) + zlib.compress(AVRO), "Glue"),
        (b"\x00" + struct.pack(">q", 7) + AVRO, "the id 7 in eight bytes"),
    ],
)
@pytest.mark.parametrize("by_schema", [True, False])
def test_a_form_is_recognised_whatever_was_expected(
    value: bytes, word: str, *, by_schema: bool
) -> None:
    assert word in recognised(value, by_schema=by_schema)


@pytest.mark.parametrize(
    ("value", "where_expected", "elsewhere"),
    [
        (JSON, "JSON without a schema", ""),
        (b" [1, 2]", "JSON without a schema", ""),
        (b"\x00\x00\x00\x00\x07" + AVRO, "", "by the id 7"),
        (b"\x01" + bytes(range(16)) + AVRO, "", "by the GUID 000102"),
        (b"\x08\x96\x01", "Protobuf without a schema", "Protobuf, perhaps"),
        (b"\x12\x03\xff\xfe\xfd" * 100, "Protobuf without a schema", "Protobuf, perhaps"),
        (b"\x09" + bytes(8) + b"\x15" + bytes(4), "Protobuf without", "Protobuf, perhaps"),
        (b"\x12\x09ab", "", ""),
        (b"\x01\x02", "", ""),
        (b"\x0b\x00", "", ""),
        (b"\xff" * 20, "", ""),
        (b"text", "", ""),
        (b"", "", ""),
    ],
)
def test_what_is_expected_is_not_recognised(
    value: bytes, where_expected: str, elsewhere: str
) -> None:
    for by_schema, word in ((True, where_expected), (False, elsewhere)):
        found = recognised(value, by_schema=by_schema)
        assert word in found if word else not found


def test_headers_identify_apicurio() -> None:
    assert "Apicurio" in recognised(AVRO, ["apicurio.value.globalId"], by_schema=True)
    assert not recognised(AVRO, ["trace"], by_schema=True)


def test_a_value_whose_schema_is_in_a_header_needs_none_in_front() -> None:
    for value in (JSON, b"\x08\x96\x01"):
        assert not recognised(value, ["trace", "__value_schema_id"], by_schema=True)
        assert recognised(value, ["trace"], by_schema=True)


@given(st.binary(max_size=200), st.booleans())
def test_any_bytes_are_looked_at(value: bytes, by_schema: bool) -> None:
    assert len(recognised(value, by_schema=by_schema)) < 100
