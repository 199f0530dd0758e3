"""Numbers on the pages that people read first stand in a table of the figures."""

import re
from pathlib import Path

import pytest

from .pages import ROOT, prose

FIGURES = ROOT / "docs" / "figures.md"
PAGES = (ROOT / "README.md", ROOT / "docs" / "comparison.md")
_NUMBER = re.compile(r"(?<![\w.,#-])\d[\d,]*(?:\.\d+)?(?![\w.]*\d)")
_UNIT = re.compile(r"\s(?:ms|s|kB|MB|GB|%|cores?|CPU-s|times|files|faults|moves)\b")


def measured(text: str) -> list[str]:
    """Return the numbers with a unit; of sentences that link another site, none.

    Those say what others have measured or documented, and the link is the source.
    """
    sentences = re.split(r"(?<=[.:;])\s|\n\n", text)
    ours = [sentence for sentence in sentences if "](https://" not in sentence]
    return [
        number[0]
        for sentence in ours
        for number in _NUMBER.finditer(sentence)
        if _UNIT.match(sentence, number.end())
    ]


def tabled() -> set[str]:
    """Return the numbers in tables of the figures."""
    rows = [line for line in FIGURES.read_text().splitlines() if line.startswith("|")]
    return {number for row in rows for number in _NUMBER.findall(row)}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_each_number_with_a_unit_stands_in_a_table_of_the_figures(page: Path) -> None:
    numbers = measured(prose(page))
    assert numbers
    assert not [number for number in numbers if number not in tabled()]


def test_a_number_of_others_needs_a_link_and_ours_a_unit() -> None:
    assert measured("It took 0.37 times as long: 28.7 files, version 0.1 of 2026.") == [
        "0.37",
        "28.7",
    ]
    assert measured("Users see 64 s ([why](https://there.example)). Ours has 1,000 MB.") == [
        "1,000"
    ]
