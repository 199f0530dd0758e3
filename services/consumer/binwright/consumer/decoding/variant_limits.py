"""What Spark's `parse_json` refuses of JSON that is valid: a commit would fail with it."""

import re
from typing import Any

MOST_BYTES = 16 << 20  # of a variant, which may take a little more than its text
_MOST_NAME, _MOST_NUMBER = 50_000, 1_000  # characters, by Jackson's limits of a stream
_LONG_NUMBER = re.compile(rb"[0-9.eE+-]{1001}")
_NUMBER_OUTSIDE_TEXT = re.compile(rb'"(?:[^"\\]|\\.)*"|([0-9.eE+-]{1001})', re.DOTALL)


def unfit_for_variant(text: bytes, document: Any) -> str:
    """Return what a value would have to be to become a variant; empty: it does.

    Args:
        text: The value as JSON.
        document: The same, parsed.
    """
    if len(text) > MOST_BYTES:
        return f"a value of {MOST_BYTES >> 20} MB at most"
    if _LONG_NUMBER.search(text) and any(m[1] for m in _NUMBER_OUTSIDE_TEXT.finditer(text)):
        return f"numbers of {_MOST_NUMBER} characters at most"
    if len(text) > _MOST_NAME and _longest_name(document) > _MOST_NAME:
        return f"names of {_MOST_NAME} characters at most"
    return ""


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
