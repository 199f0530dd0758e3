"""Text is a row of one column; what is not UTF-8 is bad."""

import pyarrow as pa
import pytest

from binwright.consumer.decode.arrow_types import BAD, row_type
from binwright.consumer.decode.text_values import TextDecoder
from binwright.tables.columns import parse_columns

COLUMNS = parse_columns("value STRING")


@pytest.mark.parametrize("more", [[], [b"\xff", b"a\xed\xa0\x80"]])
def test_each_text_is_a_row(more: list[bytes]) -> None:
    values = pa.array([b"tea", None, b"", "ä\0".encode(), *more], pa.binary())
    rows, bad = TextDecoder(COLUMNS).decode(values)

    assert (rows.type, bad.type) == (row_type(COLUMNS), BAD)
    assert len(bad) == len(values)
    assert rows.to_pylist() == [
        {"value": "tea"}, {"value": None}, {"value": ""}, {"value": "ä\0"}, *(None for _ in more),
    ]  # fmt: skip
    assert bad.to_pylist()[4:] == [
        {"value": value, "kind": "malformed", "reason": f"is not UTF-8: {why}"}
        for value, why in zip(
            more,
            ["invalid start byte at byte 0", "invalid continuation byte at byte 1"],
            strict=False,
        )
    ]
    assert bad.to_pylist()[:4] == [None] * 4
