"""Characters that move a terminal's cursor, set its title, or hide and turn text."""

import re

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")
"""But for tabs and ends of lines."""


def visible(text: str) -> str:
    """Return a text with such characters as escapes: it may be a stranger's, as a message's is."""
    return _CONTROL.sub(lambda match: repr(match[0])[1:-1], text)
