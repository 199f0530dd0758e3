"""How much memory a message takes once it is read, known before it is.

An empty message of a type with a thousand fields is two bytes as it is written, and kilobytes
when it is read. A record of a megabyte could so take all that its consumer has.

Fields are, by the last three bits of their tags: numbers (0), eight bytes (1), bytes of a length,
which may be a message (2), the beginning and the end of a group (3, 4), and four bytes (5).
"""

from contextlib import suppress

from binwright.consumer.decoding.protobuf_schemas import Message, is_entry, messages_in

MOST_BYTES = 128 << 20
_MESSAGE, _FIELD = 48, 16  # bytes, at most, of `upb`'s own and for each field
_SHORTEST = 2  # bytes of a message within another: its tag, and its length


class MemoryOf:
    """Estimates the memory of messages of one type."""

    def __init__(self, message: Message) -> None:
        self._message = message
        types = messages_in(message)
        self._inside = {name: _parts(each) for name, each in types.items()}
        plain = {name: _MESSAGE + _FIELD * len(each.fields) for name, each in types.items()}
        # The value of a map's entry is there even where it is not written.
        self._weights = {
            name: plain[name] + sum(plain[part.full_name] for part in self._inside[name].values())
            if is_entry(each)
            else plain[name]
            for name, each in types.items()
        }
        # What a byte of a value can take at most, so that few values are looked at.
        self._per_byte = max(self._weights.values()) // _SHORTEST + 1

    def exceeds(self, body: bytes) -> bool:
        """Return whether a value may take more than `MOST_BYTES`."""
        return len(body) * self._per_byte > MOST_BYTES and self._weight(body) > MOST_BYTES

    def _weight(self, body: bytes) -> int:
        """Return what a value takes; what is malformed is counted up to where it is so."""
        found, at, end = 0, 0, len(body)
        message: Message | None = self._message
        around: list[tuple[int, Message | None]] = []  # where each ends, and its type
        with suppress(IndexError):
            while found <= MOST_BYTES:
                while at >= end:
                    end, message = around.pop()
                tag, at = _varint(body, at)
                part = self._inside[message.full_name].get(tag >> 3) if message else None
                match tag & 7:
                    case 2 if part:
                        length, at = _varint(body, at)
                        around.append((end, message))
                        end, message = min(end, at + length), part
                        found += self._weights[part.full_name]
                    case 3:
                        around.append((end, message))
                        message = part
                        found += self._weights[part.full_name] if part else 0
                    case 4:
                        end, message = around.pop()
                    case kind:
                        at = _behind(body, at, kind)
        return found


def _behind(body: bytes, at: int, kind: int) -> int:
    """Return where a value without messages ends; raise `IndexError` for what is none."""
    match kind:
        case 0:
            return _varint(body, at)[1]
        case 1:
            return at + 8
        case 2:
            length, at = _varint(body, at)
            return at + length
        case 5:
            return at + 4
    raise IndexError


def _parts(message: Message) -> dict[int, Message]:
    """Return the types of the messages in a message, by the numbers of their fields."""
    return {field.number: field.message_type for field in message.fields if field.message_type}


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
