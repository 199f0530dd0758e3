"""What Spark's `parse_json` refuses of JSON that is valid, or reads as another value."""

import re
from typing import Any

MOST_BYTES = 16 << 20  # of a variant, which may take a little more than its text
_MOST_NAME, _MOST_NUMBER = 50_000, 1_000  # characters, by Jackson's limits of a stream
_MANY_PLACES = 200  # characters of a number without an exponent that a double may take for zero
_ONE = b"1"
_AS_ONE = bytes(_ONE[0] if byte in b"0123456789.eE+-" else byte for byte in range(256))
_TINY = re.compile(rb"[eE]-[0-9]{3}")
_NEGATIVE_ZERO = re.compile(rb"-0\.0++(?:[eE][+-]?+[0-9]++)?+")
_OUTSIDE_TEXT = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"|(-?[0-9][0-9.eE+-]*+)', re.DOTALL)


def unfit_for_variant(text: bytes, document: Any) -> str:
    """Return what a value would have to be to become a variant; empty: it does.

    Args:
        text: The value as JSON.
        document: The same, parsed.
    """
    if len(text) > MOST_BYTES:
        return f"a value of {MOST_BYTES >> 20} MB at most"
    # Cheap questions first, whose answer is no for nearly all values.
    if _TINY.search(text) or _ONE * _MANY_PLACES in text.translate(_AS_ONE):
        for number in (match[1] for match in _OUTSIDE_TEXT.finditer(text) if match[1]):
            if len(number) > _MOST_NUMBER:
                return f"numbers of {_MOST_NUMBER} characters at most"
            if _vanishes(number):
                return "numbers that are not too small for a double"
    if len(text) > _MOST_NAME and _longest_name(document) > _MOST_NAME:
        return f"names of {_MOST_NAME} characters at most"
    return ""


def _vanishes(number: bytes) -> bool:
    """Return whether Spark, which reads such a number as a double, reads zero."""
    digits = re.split(rb"[eE]", number, maxsplit=1)[0]
    return float(number) == 0 and bool(digits.strip(b"-.0"))


def with_signs(text: bytes) -> bytes:
    """Return JSON that keeps the sign of -0.0 as a variant: a decimal has none, a double does."""
    if b"-0.0" not in text:
        return text
    return _OUTSIDE_TEXT.sub(
        lambda m: b"-0e0" if m[1] and _NEGATIVE_ZERO.fullmatch(m[1]) else m[0], text
    )


def _longest_name(document: Any) -> int:
    longest, left = 0, [document]
    while left:
        part = left.pop()
        if isinstance(part, dict):
            longest = max([longest, *map(len, part)])
            left += part.values()
        elif isinstance(part, list):
            left += part
    return longest
