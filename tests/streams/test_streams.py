"""Streams are written as JSON and read row by row; what is malformed is named."""

import io
import json
import re
import tracemalloc
from itertools import islice
from pathlib import Path
from typing import IO, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.streams.strategies import STREAMS

from binwright.protocol.errors import StreamError
from binwright.protocol.model import BytesPerSecond, TopicPartition
from binwright.streams.generated import Walk, generate
from binwright.streams.stream_file import read
from binwright.streams.streams import (
    CompactStream,
    PerCent,
    Row,
    as_rates,
    dump,
    parse,
    read_rows,
    stream_lines,
    write,
)

RECORDED = Path(__file__).parents[3] / "shared" / "data" / "measurements_5.json"
WALK = Walk(topics=("orders",), partitions=3, rows=50, delta=10, seed=7)

ROWS = st.dictionaries(
    st.builds(TopicPartition, st.sampled_from(["a", "b.c", "d-1"]), st.integers(0, 99)),
    (st.integers(0, 10**6) | st.floats(0, 1e9)).map(PerCent),
    min_size=1,
    max_size=6,
)


def test_per_cents_become_bytes_per_second() -> None:
    partition = TopicPartition("orders", 0)
    row = {partition: PerCent(7)}

    assert as_rates(row, BytesPerSecond(2_000_000)) == {partition: BytesPerSecond(140_000)}
    assert as_rates(row, BytesPerSecond(100)) == {partition: BytesPerSecond(7)}


@given(st.lists(ROWS, min_size=1, max_size=5))
def test_a_written_stream_can_be_read(stream: list[dict[TopicPartition, PerCent]]) -> None:
    again = parse(dump(stream))

    assert again == stream
    assert dump(again) == dump(parse(dump(again)))


def test_a_file_is_written_and_read(tmp_path: Path) -> None:
    write(tmp_path / "stream.json", list(generate(WALK)))

    assert read(tmp_path / "stream.json") == list(generate(WALK))


def test_partitions_may_differ_from_row_to_row() -> None:
    rows = parse('[{"a": {"0": 1}}, {"a": {"1": 2.5}, "b": {"0": 130}}]')

    assert rows == [
        {TopicPartition("a", 0): 1},
        {TopicPartition("a", 1): 2.5, TopicPartition("b", 0): 130},
    ]


def test_the_papers_recording_can_be_read() -> None:
    if not RECORDED.exists():
        pytest.skip(f"the paper's recorded stream has no licence and is not here: {RECORDED}")
    rows = read(RECORDED)

    assert len(rows) == 100
    assert {len(row) for row in rows} == {32}


GOOD = '{"a": {"0": 1}}'


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "not JSON: Expecting value"),
        ("[" * 100_000, "not JSON: .*recursion"),
        ('{"a": {}}', "expected a list of measurements, got an object"),
        ("null", "expected a list of measurements, got null"),
        ("[]", "the stream is empty: not one measurement"),
        (f"[{GOOD}, 3]", "row 1: expected an object of topics, got 3"),
        (f"[{GOOD}, []]", "row 1: expected an object of topics, got a list of 0"),
        (f"[{GOOD}, {{}}]", "row 1: no topics in it"),
        ('[{"a b": {"0": 1}}]', "row 0: not a topic's name: 'a b'"),
        ('[{"a": "x"}]', "row 0, topic 'a': expected an object of partitions, got text \"x\""),
        ('[{"a": {}}]', "row 0, topic 'a': no partitions in it"),
        ('[{"a": {"-1": 1}}]', "row 0, topic 'a': not a partition's number: '-1'"),
        ('[{"a": {"01": 1}}]', "not a partition's number: '01'"),
        ('[{"a": {"²": 1}}]', "not a partition's number: '²'"),
        ('[{"a": {"0": "1"}}]', "row 0, topic 'a', partition 0: expected a number of per cents"),
        ('[{"a": {"0": true}}]', "partition 0: expected a number of per cents, got true"),
        ('[{"a": {"0": null}}]', "partition 0: expected a number of per cents, got null"),
        ('[{"a": {"0": -0.5}}]', "partition 0: per cents must be finite and >= 0, got -0.5"),
        ('[{"a": {"0": NaN}}]', "finite and >= 0, got NaN"),
        ('[{"a": {"0": 1e999}}]', "finite and >= 0, got Infinity"),
        ('[{"a": {"0": 1' + "0" * 400 + "}}]", r"finite and >= 0, got 10{39}\.\.\."),
    ],
)
def test_a_malformed_stream_is_refused_with_the_place_of_the_fault(text: str, fault: str) -> None:
    with pytest.raises(StreamError, match=fault):
        parse(text)


def test_an_error_names_the_file(tmp_path: Path) -> None:
    (tmp_path / "bad.json").write_text(json.dumps([1]))

    with pytest.raises(StreamError, match=r"bad.json: row 0: expected an object"):
        read(tmp_path / "bad.json")
    with pytest.raises(StreamError, match=r"none.json: .*No such file"):
        read(tmp_path / "none.json")
    with pytest.raises(StreamError, match=r"none/x.json: .*No such file"):
        write(tmp_path / "none" / "x.json", [])


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


def rows_of(text: str, piece: int) -> list[Row]:
    return list(read_rows(io.StringIO(text), piece))


@given(STREAMS, st.integers(1, 60), st.sampled_from(["", " ", "\n\t  \r\n"]))
def test_pieces_of_any_size_give_the_same_rows(stream: list[Row], piece: int, space: str) -> None:
    text = "".join(stream_lines(stream)).replace(" ", space).replace(",", f"{space},{space}")
    assert rows_of(f"{space}{text}{space}", piece) == stream


@given(STREAMS)
def test_text_that_is_read_and_written_again_is_the_same(stream: list[Row]) -> None:
    """Also where whole rates are floats in one of the two."""
    text = "".join(stream_lines(stream))
    floats = [{p: PerCent(float(rate)) for p, rate in row.items()} for row in stream]
    assert "".join(stream_lines(rows_of(text, 50))) == text
    assert "".join(stream_lines(floats)) == text


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
            rows_of(text, piece)
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
        rows_of(text, 1_000)


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
    first, second = rows_of('[{"a": {"0": 1}}, {"a": {"0": 2}}]', 100)
    assert next(iter(first)) is next(iter(second))


@given(STREAMS)
def test_a_compact_stream_has_the_same_rows(stream: list[Row]) -> None:
    compact = CompactStream(stream)
    assert list(compact) == stream
    assert len(compact) == len(stream)
    assert compact[-1] == stream[-1]
    assert compact[1:] == stream[1:]
    assert compact.partitions == sorted({p for row in stream for p in row})
    assert "".join(stream_lines(compact)) == "".join(stream_lines(stream))


def test_whole_numbers_beyond_64_bits_are_rates_too() -> None:
    row = {TopicPartition("a", 0): PerCent(2**70)}
    assert list(CompactStream([row])) == [row]


def test_a_rate_takes_eight_bytes_and_little_more() -> None:
    """Dictionaries of the same rows take some forty."""
    walk = Walk(topics=("a", "b"), partitions=500, rows=200, delta=5, seed=1)
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        compact = CompactStream(generate(walk))
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(compact) == 200
    assert after - before < 12 * 1_000 * 200
