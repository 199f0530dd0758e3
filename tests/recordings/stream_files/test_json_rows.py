"""The JSON form, read in pieces of any size."""

import io
import json
import re
import tracemalloc
from itertools import islice
from typing import IO, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.recordings.stream_files.drawn import STREAMS

from binwright.protocol.errors import StreamError
from binwright.recordings.stream_files.json_rows import PerCent, Row, lines, read_rows


class EndlessStream(io.TextIOBase):
    """A stream without an end, which counts the characters that were read."""

    def __init__(self, row: str) -> None:
        self._row, self._rest, self.read_so_far, self.pieces = row, "[", 0, 0

    def read(self, size: int | None = -1, /) -> str:
        assert size is not None
        assert size > 0
        while len(self._rest) < size:
            self._rest += f"{self._row},"
        piece, self._rest = self._rest[:size], self._rest[size:]
        self.read_so_far += size
        self.pieces += 1
        return piece


def read(text: str, piece: int) -> list[Row]:
    return list(read_rows(io.StringIO(text), piece))


@given(STREAMS, st.integers(1, 60), st.sampled_from(["", " ", "\n\t  \r\n"]))
def test_pieces_of_any_size_give_the_same_rows(stream: list[Row], piece: int, space: str) -> None:
    text = "".join(lines(stream)).replace(" ", space).replace(",", f"{space},{space}")
    assert read(f"{space}{text}{space}", piece) == stream


@given(STREAMS)
def test_text_that_is_read_and_written_again_is_the_same(stream: list[Row]) -> None:
    """Also where whole rates are floats in one of the two."""
    text = "".join(lines(stream))
    floats = [{p: PerCent(float(rate)) for p, rate in row.items()} for row in stream]
    assert "".join(lines(read(text, 50))) == text
    assert "".join(lines(floats)) == text


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[",
        "3",
        "nul",
        "[]x",
        '[{"a": {"0": 1}}',
        '[{"a": {"0": 1}},',
        '[{"a": {"0": 1}},]',
        '[{"a": {"0": 1}} {"a": {"0": 1}}]',
        '[{"a": {"0": 1}}] [',
        '[{"a": {"0": 12345',
        '[{"a": {"0": 1}}, {"a": {"0": -12345}}]',
        "[12345678, 3]",
        '["abcdefghij"]',
    ],
)
def test_a_fault_is_the_same_at_pieces_of_any_size(text: str) -> None:
    faults = set()
    for piece in range(1, 20):
        with pytest.raises(StreamError) as caught:
            read(text, piece)
        faults.add(str(caught.value))
    assert len(faults) == 1


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ('[{"a": {"0": 1}}, {"a" {}}]', "row 1: not JSON: Expecting ':' delimiter"),
        ('[{"a": {"0": 1}} 3]', "row 0: not JSON: Expecting ',' or ']'"),
        ('[{"a": {"0": 1}}] 3', "row 0: not JSON: Extra data"),
        ('[{"a": {"0": 1}},', "row 1: not JSON: Expecting value"),
    ],
)
def test_text_that_is_no_json_is_refused_with_its_row(text: str, fault: str) -> None:
    with pytest.raises(StreamError, match=f"^{re.escape(fault)}$"):
        read(text, 1_000)


def test_bytes_that_are_no_text_are_refused() -> None:
    file = io.TextIOWrapper(io.BytesIO(b'[{"a": {"0": 1}}, \xff]'), "utf-8")
    with pytest.raises(StreamError, match="not UTF-8"):
        list(read_rows(file))


def test_rows_before_a_fault_are_yielded() -> None:
    rows = read_rows(io.StringIO('[{"a": {"0": 1}}, {"a": {"0": 2}}, 3]'))
    assert [list(next(rows).values()), list(next(rows).values())] == [[PerCent(1)], [PerCent(2)]]
    with pytest.raises(StreamError, match="row 2"):
        next(rows)


@pytest.mark.parametrize("piece", [1, 10, 1_000])
def test_no_more_is_read_than_rows_need(piece: int) -> None:
    """A row of 1,000 characters: what is read ahead is a piece, or as long as the row."""
    row = json.dumps({"a": {str(number): 50 for number in range(90)}})
    file = EndlessStream(row)
    rows = read_rows(cast("IO[str]", file), piece)
    for count in (1, 50, 500):
        before = file.read_so_far
        assert len(list(islice(rows, count))) == count
        assert file.read_so_far - before <= (count + 1) * (len(row) + 1) + max(piece, 2 * len(row))


def test_memory_does_not_grow_with_the_rows() -> None:
    file = EndlessStream(json.dumps({"a": {str(number): 50 for number in range(90)}}))
    rows = read_rows(cast("IO[str]", file), 1_000)
    next(rows)
    tracemalloc.start()
    try:
        assert sum(1 for _ in islice(rows, 2_000)) == 2_000
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < file.read_so_far / 10


def test_a_long_row_is_read_in_pieces_that_double() -> None:
    """Each piece has the row decoded from its beginning: many would make it quadratic."""
    file = EndlessStream(json.dumps({"a": {str(number): 50 for number in range(5_000)}}))
    next(read_rows(cast("IO[str]", file), 10))
    assert file.pieces < 20


def test_each_partition_is_made_once() -> None:
    first, second = read('[{"a": {"0": 1}}, {"a": {"0": 2}}]', 100)
    assert next(iter(first)) is next(iter(second))
