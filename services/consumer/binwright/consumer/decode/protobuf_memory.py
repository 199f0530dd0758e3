"""How much memory a message takes once it is read, known before it is.

An empty message of a type with a thousand fields is two bytes as it is written, and kilobytes
when it is read. A record of a megabyte could so take all that its consumer has.

Fields are, by the last three bits of their tags: numbers (0), eight bytes (1), bytes of a length,
which may be a message (2), the beginning and the end of a group (3, 4), and four bytes (5).
"""

from contextlib import suppress
from typing import Any

from binwright.consumer.decode.one_by_one import Bad
from binwright.consumer.decode.protobuf_schemas import Message, is_entry, messages_in
from binwright.consumer.decode.value_memory import item_bytes, row_bytes, too_large
from binwright.tables.columns import Columns

_MESSAGE, _FIELD = 48 + 300, 16 + 110
"""Bytes, at most, of `upb`'s own and for each field: and those of Python's objects."""
_TEXT, _TEXT_BYTE, _NUMBER = 110, 9, 40
_PACKED_BYTE = 50  # of a list of numbers, of which each may be one byte
_SHORTEST = 2  # bytes of a message within another: its tag, and its length


class MemoryOf:
    """Estimates the memory of messages of one type.

    Attributes:
        row: What a message takes of which little is written, bytes.
        byte: What a byte of it may take at most.
    """

    def __init__(self, message: Message, columns: Columns = ()) -> None:
        """Estimate for messages that are read into these columns."""
        self._message, item = message, item_bytes(columns)
        types = messages_in(message)
        self._inside = {name: _parts(each) for name, each in types.items()}
        self._lists = {name: _lists_of_numbers(each) for name, each in types.items()}
        plain = {name: _MESSAGE + _FIELD * len(each.fields) for name, each in types.items()}
        # The value of a map's entry is there even where it is not written.
        self._weights = {
            name: plain[name]
            + item
            + sum(plain[part.full_name] for part in self._inside[name].values())
            if is_entry(each)
            else plain[name] + item
            for name, each in types.items()
        }
        within = {part.full_name for parts in self._inside.values() for part in parts.values()}
        # So few values are looked at.
        self.row = row_bytes(columns) + self._weights[message.full_name]
        self.byte = max(
            _NUMBER,
            _PACKED_BYTE if any(self._lists.values()) else (_TEXT + _TEXT_BYTE) // _SHORTEST,
            max((self._weights[name] for name in within), default=0) // _SHORTEST + 1,
        )

    def fault(self, body: bytes, most: int) -> Bad | None:
        """Return a value as bad that takes more than `most` bytes."""
        if self.row + self.byte * len(body) <= most:
            return None
        weight = self._weight(body, most)
        return too_large(weight, most) if weight > most else None

    def _weight(self, body: bytes, most: int) -> int:
        """Return what a value takes; what is malformed is counted up to where it is so."""
        weight, at, end = self.row, 0, len(body)
        message: Message | None = self._message
        around: list[tuple[int, Message | None]] = []  # where each ends, and its type
        with suppress(IndexError):
            while weight <= most:
                while at >= end:
                    end, message = around.pop()
                tag, at = _varint(body, at)
                number = tag >> 3
                part = self._inside[message.full_name].get(number) if message else None
                match tag & 7:
                    case 2 if part:
                        length, at = _varint(body, at)
                        around.append((end, message))
                        end, message = min(end, at + length), part
                        weight += self._weights[part.full_name]
                    case 2:
                        length, at = _varint(body, at)
                        length = min(length, max(end - at, 0))
                        is_list = message is not None and number in self._lists[message.full_name]
                        weight += _TEXT + length * (_PACKED_BYTE if is_list else _TEXT_BYTE)
                        at += length
                    case 3:
                        around.append((end, message))
                        message = part
                        weight += self._weights[part.full_name] if part else 0
                    case 4:
                        end, message = around.pop()
                    case kind:
                        weight += _NUMBER
                        at = _behind(body, at, kind)
        return weight


def _behind(body: bytes, at: int, kind: int) -> int:
    """Return where a value without messages ends; raise `IndexError` for what is none."""
    match kind:
        case 0:
            return _varint(body, at)[1]
        case 1:
            return at + 8
        case 5:
            return at + 4
    raise IndexError


def _parts(message: Message) -> dict[int, Message]:
    """Return the types of the messages in a message, by the numbers of their fields."""
    return {field.number: field.message_type for field in message.fields if field.message_type}


def _lists_of_numbers(message: Any) -> frozenset[int]:
    """Return the numbers of a message's fields that are lists of numbers."""
    texts = {message.fields[0].TYPE_STRING, message.fields[0].TYPE_BYTES} if message.fields else ()
    return frozenset(
        field.number
        for field in message.fields
        if field.is_repeated and field.message_type is None and field.type not in texts
    )


def _varint(body: bytes, at: int) -> tuple[int, int]:
    """Return a number and where it ends; raise `IndexError` if it does not."""
    number = 0
    for shift in range(0, 70, 7):
        byte = body[at]
        number |= (byte & 0x7F) << shift
        at += 1
        if byte < 0x80:  # noqa: PLR2004 - the bit that says that more follow
            return number, at
    raise IndexError
