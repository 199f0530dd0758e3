"""What would take too much memory is known before it is read."""

import pytest
from tests.consumer.decode.protobuf import parsed, proto

from binwright.consumer.decode.protobuf_memory import MemoryOf
from binwright.consumer.decode.protobuf_records import record_reader
from binwright.consumer.decode.protobuf_schemas import Message

WIDE = f"message Wide {{ {' '.join(f'int32 f{n} = {n};' for n in range(1, 1001))} }}"
WEIGHT = 348 + 1_000 * 126
LINES = parsed(
    proto("repeated Wide lines", "int64 n", "string s", "fixed32 f", "double d", rest=WIDE)
)
ROOM = 5_000  # bytes of memory for a message, and for what else is written in it


def weighs(message: Message, body: bytes, wide: int) -> bool:
    """Return whether a value takes more than so many wide messages."""
    return MemoryOf(message).fault(body, wide * WEIGHT + ROOM) is not None


def exceeds(body: bytes) -> bool:
    return weighs(LINES.message(""), body, 10)


def test_many_messages_of_many_fields_are_too_much() -> None:
    assert not exceeds(b"\x0a\x00" * 10)
    assert exceeds(b"\x0a\x00" * 11)
    reader = record_reader(LINES.message(""), LINES.columns(""), 10 * WEIGHT)
    assert getattr(reader(b"\x0a\x00" * 11), "kind", "") == "too_large"


def test_other_bytes_do_not_count() -> None:
    other = [
        b"\x10" + b"\xff" * 9 + b"\x01",  # a number
        b"\x1a\x80\x01" + b"\x0a\x00" * 64,  # a text that looks like messages
        b"\x25\x0a\x00\x0a\x00",  # four bytes
        b"\x29\x0a\x00\x0a\x00\x0a\x00\x0a\x00",  # eight bytes
        b"\x32\x04\x0a\x00\x0a\x00",  # a field that the schema does not have
        b"\x3b\x0a\x00\x3c",  # a group of that kind
        b"\x0a\x05\x10\x01\x0a\x01\x00",  # a message with a field that it does not have
    ]
    assert not exceeds(b"".join(other) * 3 + b"\x0a\x00" * 6)
    assert exceeds(b"".join(other) * 3 + b"\x0a\x00" * 8)


def test_what_is_nested_counts_and_goes_on_behind_its_end() -> None:
    text = proto("repeated Box boxes", rest=f"message Box {{ repeated Wide a = 1; }} {WIDE}")
    message = parsed(text).message("")
    assert not weighs(message, b"\x0a\x04\x0a\x00\x0a\x00" * 5, 10)
    assert weighs(message, b"\x0a\x04\x0a\x00\x0a\x00" * 6, 10)


def test_groups_count() -> None:
    wide = " ".join(f"optional int32 f{n} = {n};" for n in range(2, 1002))
    text = f'syntax = "proto2"; message M {{ repeated group Wide = 1 {{ {wide} }} }}'
    message = parsed(text).message("")
    assert not weighs(message, b"\x0b\x10\x05\x0c" * 10, 10)
    assert weighs(message, b"\x0b\x10\x05\x0c" * 11, 10)


def test_entries_of_maps_have_values_that_are_not_written() -> None:
    message = parsed(proto("map<int32, Wide> a", rest=WIDE)).message("")
    entries = [bytes((0x0A, 0x02, 0x08, key)) for key in range(11)]
    assert not weighs(message, b"".join(entries[:9]), 10)
    assert weighs(message, b"".join(entries), 10)


@pytest.mark.parametrize(
    "content",
    [b"\xff" * 1_000, b"\x0a", b"\x0a\xff", b"\x0c" * 9, b"\x0e" * 9, b"\x0a\x00" * 9 + b"\x3b"],
)
def test_what_is_malformed_is_left_to_the_parser(content: bytes) -> None:
    assert not exceeds(content + bytes(1_000))


def test_types_in_a_long_row_or_a_circle_are_walked() -> None:
    row = "".join(f"message L{n} {{ L{n + 1} a = 1; }}" for n in range(3_000))
    text = proto("L0 a", "Order again", rest=f"{row} message L3000 {{ int32 x = 1; }}")
    memory = MemoryOf(parsed(text).message(""))
    assert memory.fault(b"\x0a\x00", memory.row - 1) is not None
    assert memory.fault(b"\x0a\x00", 2 * memory.row) is None
