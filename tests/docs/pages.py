"""The pages of the documentation, and what is in them."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = (
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
)
_FENCED = re.compile(
    r"^(?P<indent> *)```(?P<language>\w*)\n(?P<text>.*?)^ *```$", re.MULTILINE | re.DOTALL
)
_LINK = re.compile(r"\]\((?P<link>[^)\s]+)\)|(?:src|srcset)=\"(?P<image>[^\"]+)\"")
_HEADING = re.compile(r"^#+ +(.+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block of a page."""

    page: Path
    line: int
    text: str

    def __str__(self) -> str:
        """Name the place."""
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def blocks(language: str) -> list[Block]:
    """Return all blocks in a language, in order of pages."""
    return [block for page in PAGES for block in _blocks(page, language)]


def _blocks(page: Path, language: str) -> Iterator[Block]:
    text = page.read_text()
    for found in _FENCED.finditer(text):
        if found["language"] == language:
            indent = len(found["indent"])
            lines = (line[indent:] for line in found["text"].splitlines())
            yield Block(page, 2 + text.count("\n", 0, found.start()), "\n".join(lines))


def prose(page: Path) -> str:
    """Return a page without its fenced blocks."""
    return _FENCED.sub("", page.read_text())


def links(page: Path) -> list[str]:
    """Return where a page links to, images too; what is elsewhere on the Web is left out."""
    found = (match["link"] or match["image"] for match in _LINK.finditer(prose(page)))
    return [link for link in found if "://" not in link]


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as GitHub makes them."""
    titles = (re.sub(r"[`*]", "", title).strip().lower() for title in _HEADING.findall(prose(page)))
    return {re.sub(r"[^\w\- ]", "", title).replace(" ", "-") for title in titles}
