"""Bytes that a decoder may meet: random ones, and valid ones that were changed."""

import re
from collections.abc import Sequence

from hypothesis import strategies as some

_VALUE = re.compile(rb"-?[0-9]+|true|false|null|\"[^\"]*\"|\{[^{}]*\}|\[[^\[\]]*\]")
_ODD_VALUES = (
    b"-1",
    b"2147483648",
    b"9223372036854775808",
    b"1e999",
    b"-0.0",
    b"9" * 400,
    b"null",
    b"true",
    b"[]",
    b"{}",
    b"[" * 300 + b"]" * 300,
    b'{"a":' * 300 + b"1" + b"}" * 300,
    b'""',
    b'"' + b"x" * 300 + b'"',
    rb'"\ud800"',
    rb'"\u0000"',
    b'"../../x"',
    b'"\'; DROP TABLE x; --"',
    b'"orders-99999999999999999999"',
    b'"\xff"',
    b"*a",
    b"&a [*a]",
    b"!!set {a}",
)
_PLACES = some.integers(0, 1 << 16)


def _cut(content: bytes, at: int, _: bytes) -> bytes:
    return content[:at]


def _insert(content: bytes, at: int, piece: bytes) -> bytes:
    return content[:at] + piece + content[at:]


def _overwrite(content: bytes, at: int, piece: bytes) -> bytes:
    return content[:at] + piece + content[at + len(piece) :]


def _remove(content: bytes, at: int, piece: bytes) -> bytes:
    return content[:at] + content[at + 1 + len(piece) :]


def _repeat(content: bytes, at: int, piece: bytes) -> bytes:
    return content[:at] + content[at : at + 1 + len(piece)] * 100 + content[at:]


def _flip(content: bytes, at: int, piece: bytes) -> bytes:
    if not content:
        return content
    changed = bytearray(content)
    changed[at % len(content)] ^= 1 << (len(piece) % 8)
    return bytes(changed)


def _odd_value(content: bytes, at: int, piece: bytes) -> bytes:
    """Put an odd value in the place of one in a text such as JSON or YAML."""
    places = list(_VALUE.finditer(content))
    if not places:
        return content
    place = places[at % len(places)]
    value = _ODD_VALUES[sum(piece, len(piece)) % len(_ODD_VALUES)]
    return content[: place.start()] + value + content[place.end() :]


_CHANGES = (_cut, _insert, _overwrite, _remove, _repeat, _flip, _odd_value, _odd_value)


def hostile(corpus: Sequence[bytes]) -> some.SearchStrategy[bytes]:
    """Return random bytes, and contents of the corpus with a few changes."""
    change = some.tuples(some.sampled_from(_CHANGES), _PLACES, some.binary(max_size=12))
    changed = some.builds(_changed, some.sampled_from(corpus), some.lists(change, max_size=6))
    return some.one_of(changed, changed, changed, some.binary(max_size=200))


def _changed(content: bytes, changes: Sequence[tuple[object, int, bytes]]) -> bytes:
    for change, place, piece in changes:
        assert callable(change)
        content = change(content, place % (len(content) + 1), piece)
    return content
