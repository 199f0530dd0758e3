"""Sections between markers in a Markdown page: replaced one by one, everything else stays."""

import re
from collections.abc import Mapping

_BEGIN, _END = "<!--figures:{name}-->", "<!--/figures:{name}-->"
_MARKER = re.compile(r"<!--(?P<end>/)?figures:(?P<name>[a-z0-9-]+)-->")


class PageError(ValueError):
    """The markers of the page do not come in pairs."""


def names(page: str) -> list[str]:
    """Return the sections of a page, in order.

    Raises:
        PageError: A section has no end, ends without a beginning, or is there twice.
    """
    found: list[str] = []
    inside: str | None = None
    for marker in _MARKER.finditer(page):
        line = 1 + page.count("\n", 0, marker.start())
        name, ends = marker["name"], marker["end"] is not None
        if ends != (inside is not None) or (ends and name != inside):
            raise PageError(f"line {line}: {marker[0]} does not fit: open is {inside or 'nothing'}")
        if not ends and name in found:
            raise PageError(f"line {line}: a second section {name}")
        if not ends:
            found.append(name)
        inside = None if ends else name
    if inside is not None:
        raise PageError(f"the section {inside} has no end: {_END.format(name=inside)}")
    return found


def replaced(page: str, bodies: Mapping[str, str], titles: Mapping[str, str]) -> str:
    """Return the page with these sections anew.

    Args:
        page: Text with sections between markers; text outside them, and other sections, stay.
        bodies: Section to Markdown. A section that the page does not have is added at its end.
        titles: Section to the heading that a section gets when it is added.

    Raises:
        PageError: The markers do not come in pairs.
    """
    there = names(page)
    for name, body in bodies.items():
        begin, end = _BEGIN.format(name=name), _END.format(name=name)
        section = f"{begin}\n{body.strip()}\n{end}"
        if name in there:
            head, _, rest = page.partition(begin)
            page = head + section + rest.partition(end)[2]
        else:
            page = f"{page.rstrip()}\n\n## {titles[name]}\n\n{section}\n"
    return page
