"""The format of a topic's values is recognised in a sample of them."""

import pytest

from binwright.tables.columns import columns_text
from binwright.tables.value_formats import MOST_SCHEMAS, Kind, guess_format

HEADER = b"\x00\x00\x00\x00\x07"


def numbered(number: int) -> bytes:
    return b"\x00" + number.to_bytes(4, "big") + b"x"


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([], "none"),
        ([None, None], "none"),
        ([b'{"a": 1}', None], "json"),
        ([b'{"a": 1}', b"[1]"], "partly json"),
        ([b'{"a": 1}', b"\xff"], "partly json"),
        ([HEADER, HEADER + b"\x02"], "by schema"),
        ([HEADER + b"{}", HEADER + b'{"a": 1}'], "json by schema"),
        ([HEADER + b"{}", HEADER + b"\x02"], "by schema"),
        ([HEADER, b"\x00\x01"], "binary"),
        ([HEADER, b"\x01\x00\x00\x00\x07"], "binary"),
        ([b"\x00\x00\x00\x00\x00"], "binary"),
        ([b"17", b"[1]", b"one\ttwo\r\n", "é".encode()], "text"),
        ([b"one", b"\xff"], "binary"),
        ([b"one\x00"], "binary"),
    ],
)
def test_a_sample_has_a_kind(values: list[bytes | None], kind: Kind) -> None:
    assert guess_format(values).kind == kind


def test_tombstones_do_not_count() -> None:
    found = guess_format([b'{"a": 1}', None, b"no JSON"])
    assert (found.values, found.objects) == (2, 1)


def test_objects_have_columns() -> None:
    found = guess_format([b'{"a": 1}', b'{"b": "x"}'])
    assert columns_text(found.inferred.columns) == "a bigint, b string"


def test_values_name_their_schemas() -> None:
    assert guess_format([numbered(7), numbered(3), numbered(7)]).schemas == (3, 7)


def test_very_many_schemas_are_none() -> None:
    most = [numbered(number) for number in range(1, MOST_SCHEMAS + 1)]
    assert guess_format(most).kind == "by schema"
    assert guess_format([*most, numbered(MOST_SCHEMAS + 1)]).kind == "binary"
