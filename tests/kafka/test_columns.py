"""Records that are decoded together are those that aiokafka decodes one by one."""

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pytest
from aiokafka.record.default_records import DefaultRecordBatch, DefaultRecordBatchBuilder
from aiokafka.record.util import encode_varint
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.kafka.batches import GZIP, LZ4, SNAPPY, ZSTD, Headers, checksummed, marker, torn
from tests.kafka.test_decoding import Fetch

from binwright.kafka import columns, decoding
from binwright.kafka.decoding import DecodeFault
from binwright.protocol.ports.kafka import Record, Records, memory_of
from binwright.testing.records import in_rows

RECORDS_AT = 61
APPEND_TIME, ATTRIBUTES_AT, LAST_TIME_AT = 0x08, 21, 35


@dataclass(frozen=True)
class Row:
    """A record to be written."""

    value: bytes | None
    key: bytes | None = None
    headers: Headers = ()
    time_ms: int = 1_000
    gap: int = 0  # offsets before it without a record


def batch(
    rows: Sequence[Row], first: int = 0, codec: int = 0, *, append_time: bool = False
) -> tuple[bytes, int]:
    """Return a batch of these rows from offset `first` on, and the offset behind it."""
    builder = DefaultRecordBatchBuilder(2, codec, False, -1, -1, -1, 1 << 31)  # noqa: FBT003
    number = -1
    for row in rows:
        number += 1 + row.gap
        builder.append(number, row.time_ms, row.key, row.value, list(row.headers))
    content = bytearray(builder.build())
    struct.pack_into(">q", content, 0, first)
    if append_time:
        content[ATTRIBUTES_AT + 1] |= APPEND_TIME
        struct.pack_into(">q", content, LAST_TIME_AT, 77_000)
    return checksummed(content), first + number + 1


def by_aiokafka(*stored: bytes) -> list[Record]:
    """Return the records as aiokafka decodes them."""
    return [
        Record(r.offset, r.timestamp, r.key, r.value, r.timestamp_type, tuple(r.headers))
        for content in stored
        for r in DefaultRecordBatch(content)
    ]


def polled(fetch: Fetch, most: int | None = None) -> list[Records]:
    """Return what each poll takes, until nothing is left."""
    parts = []
    while fetch.result.has_more():
        fetch.limits.poll_bytes = 1 << 40
        taken = fetch.result.getall(most)
        assert isinstance(taken, Records)
        parts.append(taken)
    return parts


@pytest.fixture
def _few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decoding, "FEW", 1)


TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
BYTES = st.none() | st.binary(max_size=20) | st.sampled_from([b"x" * 63, b"x" * 64, b"x" * 9_000])
ROWS = st.builds(
    Row,
    value=BYTES,
    key=BYTES,
    headers=st.lists(st.tuples(TEXT, st.none() | st.binary(max_size=9)), max_size=4),
    time_ms=st.integers(0, 10) | st.integers(-(2**40), 2**40),
    gap=st.integers(0, 2) | st.sampled_from([63, 64, 9_000]),
)
BATCHES = st.lists(
    st.tuples(
        st.lists(ROWS, min_size=1, max_size=8),
        st.sampled_from([0, GZIP, SNAPPY, LZ4, ZSTD]),
        st.booleans(),
    ),
    min_size=1,
    max_size=4,
)


def stored(batches: Sequence[tuple[Sequence[Row], int, bool]]) -> list[bytes]:
    contents, behind = [], 0
    for rows, codec, append_time in batches:
        content, behind = batch(rows, behind, codec, append_time=append_time)
        contents.append(content)
    return contents


@pytest.mark.usefixtures("_few")
@settings(max_examples=100, deadline=None)
@given(BATCHES, st.integers(1, 12), st.data())
def test_batches_of_all_kinds_are_decoded_as_by_aiokafka(
    batches: Sequence[tuple[Sequence[Row], int, bool]], most: int, data: st.DataObject
) -> None:
    contents = stored(batches)
    at = data.draw(st.integers(0, DefaultRecordBatch(contents[0]).next_offset - 1))
    expected = [record for record in by_aiokafka(*contents) if record.offset >= at]
    fetch = Fetch(*contents, at=at)
    parts = polled(fetch, most)
    assert in_rows(parts) == expected
    assert not any(isinstance(part.offsets, list) for part in parts if part), "not one by one"
    assert all(len(part) <= most for part in parts)
    assert fetch.watch.fault is None
    assert fetch.assignment.position == DefaultRecordBatch(contents[-1]).next_offset


@pytest.mark.usefixtures("_few")
@settings(max_examples=200, deadline=None)
@given(BATCHES, st.data())
def test_damaged_records_are_returned_and_refused_as_one_by_one(
    batches: Sequence[tuple[Sequence[Row], int, bool]], data: st.DataObject
) -> None:
    """Some bytes of a batch are wrong, and its checksum is that of the wrong bytes."""
    contents = stored([(rows, 0, append_time) for rows, _, append_time in batches])
    number = data.draw(st.integers(0, len(contents) - 1))
    content = bytearray(contents[number])
    for _ in range(data.draw(st.integers(1, 2))):
        at = data.draw(st.integers(RECORDS_AT, len(content) - 1))
        content[at] = data.draw(st.integers(0, 255))
    contents[number] = checksummed(content)

    together = Fetch(*contents)
    found = in_rows(polled(together, data.draw(st.integers(1, 12))))
    single = Fetch(*contents)
    decoding.FEW = 1 << 30
    try:
        expected = in_rows(polled(single))
    finally:
        decoding.FEW = 1
    assert found == expected
    assert place(together.watch.fault) == place(single.watch.fault)
    assert set(together.watch.escaped) == set(single.watch.escaped)
    assert together.assignment.position == single.assignment.position


def place(fault: DecodeFault | None) -> tuple[int, int] | None:
    """Return where a fault is; the reason of one of aiokafka's has bytes from beyond the batch."""
    return (fault.offset, fault.next) if fault else None


@pytest.mark.usefixtures("_few")
@pytest.mark.parametrize("most", [1, 2, 3, 9])
def test_damage_behind_records_that_earlier_polls_took_is_a_fault(most: int) -> None:
    """The rest of a batch is not passed in silence."""
    content = bytearray(batch([Row(b"v%d" % n) for n in range(5)])[0])
    content[content.index(b"v4") - 6] = 99 << 1  # the length: the record is not found
    fetch = Fetch(checksummed(content))
    assert [record.value for record in in_rows(polled(fetch, most))] == [b"v0", b"v1", b"v2", b"v3"]
    assert place(fetch.watch.fault) == (4, 5)
    assert fetch.assignment.position == 4


@pytest.mark.usefixtures("_few")
@pytest.mark.parametrize("most", [1, 2, 3, 9])
@pytest.mark.parametrize(("delta", "fault"), [(0, (2, 5)), (1, (2, 5)), (4, (5, 6)), (60, (2, 5))])
def test_offsets_that_do_not_increase_or_leave_their_batch_are_a_fault(
    most: int, delta: int, fault: tuple[int, int]
) -> None:
    """Else a record would take the place of another, which no reader would ask for again."""
    content = bytearray(batch([Row(b"v%d" % n) for n in range(5)])[0])
    content[content.index(b"v2") - 3] = delta << 1
    fetch = Fetch(checksummed(content))
    found = in_rows(polled(fetch, most))
    assert [record.offset for record in found] == [0, 1] + [4] * (delta == 4)
    assert place(fetch.watch.fault) == fault


def test_many_records_are_decoded_together_and_few_one_by_one() -> None:
    for count, together in ((decoding.FEW - 1, False), (decoding.FEW, True)):
        (found,) = polled(Fetch(batch([Row(b"v")] * count)[0]))
        assert isinstance(found.offsets, list) is not together


def test_records_of_several_small_batches_are_decoded_together() -> None:
    """A producer that does not wait sends batches of few records."""
    contents, behind = [], 0
    for number in range(decoding.FEW):
        content, behind = batch([Row(b"v%d" % number, b"k")], behind, LZ4)
        contents.append(content)
    (found,) = polled(Fetch(*contents))
    assert not isinstance(found.offsets, list)
    assert in_rows([found]) == by_aiokafka(*contents)


@pytest.mark.usefixtures("_few")
def test_memory_is_estimated_as_that_of_single_records() -> None:
    rows = [Row(b"value", b"key", [("name", b"content"), ("none", None)]), Row(None), Row(b"")]
    (found,) = polled(Fetch(batch(rows)[0]))
    assert found.bytes == sum(memory_of(row.key, row.value, row.headers) for row in rows)


@pytest.mark.usefixtures("_few")
def test_a_batch_that_begins_before_the_position_is_returned_from_there_on() -> None:
    fetch = Fetch(batch([Row(b"v%d" % n) for n in range(10)])[0], at=7)
    assert [record.offset for record in in_rows(polled(fetch))] == [7, 8, 9]


@pytest.mark.usefixtures("_few")
def test_records_before_a_damaged_batch_are_returned_with_its_fault() -> None:
    good, behind = batch([Row(b"v")] * 5)
    bad, _ = batch([Row(b"w")] * 5, behind)
    fetch = Fetch(good, torn(bad))
    assert [record.offset for record in in_rows(polled(fetch))] == [0, 1, 2, 3, 4]
    assert fetch.watch.fault is not None
    assert (fetch.watch.fault.offset, fetch.watch.fault.next) == (5, 10)


@pytest.mark.usefixtures("_few")
def test_markers_between_batches_are_passed() -> None:
    one, _ = batch([Row(b"a")] * 2)
    two, _ = batch([Row(b"b")] * 2, 3)
    fetch = Fetch(one, marker(2), two, marker(5))
    assert [record.offset for record in in_rows(polled(fetch))] == [0, 1, 3, 4]
    assert fetch.assignment.position == 6


def _without_utf8(content: bytearray) -> None:
    content[content.index(b"name")] = 0xFF


def _with_many_headers(content: bytearray) -> None:
    del content


@pytest.mark.usefixtures("_few")
@pytest.mark.parametrize(
    ("headers", "change"),
    [
        ([("name", b"x")], _without_utf8),
        ([("h", b"x")] * (columns.MOST_HEADERS + 1), _with_many_headers),
    ],
)
def test_records_with_unusual_headers_are_decoded_one_by_one(
    headers: Headers, change: Callable[[bytearray], None]
) -> None:
    content = bytearray(batch([Row(b"v", headers=headers), Row(b"w")])[0])
    change(content)
    fetch = Fetch(checksummed(content))
    (found,) = polled(fetch)
    assert isinstance(found.offsets, list)
    assert [len(record.headers) for record in in_rows([found])] == [len(headers), 0]
    assert fetch.watch.fault is None


@pytest.mark.usefixtures("_few")
def test_one_by_one_a_poll_takes_no_more_bytes_than_asked() -> None:
    """Headers take more memory than their records' lengths tell."""
    many: Headers = [("h", b"")] * 1_000
    content, _ = batch([Row(b"v", headers=many)] * 20)
    fetch = Fetch(content)
    fetch.limits.poll_bytes = 5 * memory_of(None, b"v", many)
    taken = fetch.result.getall(None)
    assert len(taken) == 5
    assert (fetch.assignment.position, fetch.watch.passed) == (5, 5)
    assert [record.offset for record in in_rows(polled(fetch))] == list(range(5, 20))


@pytest.mark.usefixtures("_few")
def test_a_record_whose_fields_end_before_it_does_is_a_fault() -> None:
    content = bytearray(batch([Row(b"fine"), Row(b"v\x00")])[0])
    content[content.index(b"v\x00") - 1] = 2  # the value's size, 1: no headers follow, and a byte
    fetch = Fetch(checksummed(content))
    assert [record.value for record in in_rows(polled(fetch))] == [b"fine"]
    assert fetch.watch.fault is not None
    assert (fetch.watch.fault.offset, fetch.watch.fault.next) == (1, 2)


@pytest.mark.usefixtures("_few")
def test_a_length_without_end_is_a_fault() -> None:
    content, _ = batch([Row(b"v")] * 3)
    endless = content[:RECORDS_AT] + b"\xff" * 1_000_000
    head = bytearray(endless)
    struct.pack_into(">i", head, 8, len(head) - 12)
    fetch = Fetch(checksummed(head))
    assert not in_rows(polled(fetch))
    assert fetch.watch.fault is not None


@pytest.mark.parametrize("number", [0, 63, 64, 8_191, 8_192, 2**31 - 1, -1, -(2**31)])
def test_a_number_of_any_size_is_read(number: int) -> None:
    written = bytearray()
    encode_varint(number, written.append)
    data = np.frombuffer(b"x" + written + b"x", np.uint8)
    numbers, behind = columns._varints(data, np.array([1]))
    assert (numbers.tolist(), behind.tolist()) == ([number], [1 + len(written)])
