"""Each row, item and paragraph of the page on security has a test, or says that it is judgement."""

import re
from itertools import pairwise

import pytest

from .pages import ROOT, prose

PAGE = ROOT / "docs" / "security.md"
_TEST = re.compile(r"\]\((\.\./tests/[^)\s#]+)")
_RULE = re.compile(r"\|[-| ]+\|")


def statements() -> list[str]:
    """Return the rows of tables without their heads, the items of lists, and the paragraphs.

    Sections whose headings say that they are judgement are left out.
    """
    sections = re.split(r"^#+ ", prose(PAGE), flags=re.MULTILINE)
    found = []
    for section in sections:
        heading, _, text = section.partition("\n")
        if "(judgement)" not in heading:
            found += _statements(text.splitlines())
    return found


def _statements(lines: list[str]) -> list[str]:
    found = [""]
    for line, following in pairwise([*lines, ""]):
        if not line or _RULE.fullmatch(line) or _RULE.fullmatch(following):
            found.append("")
        elif line.startswith(("| ", "- ")):
            found.append(line)
        else:
            found[-1] += f" {line}"
    return [each.strip() for each in found if each.strip()]


def is_supported(statement: str) -> bool:
    return bool(_TEST.search(statement)) or "judgement" in statement.lower()


@pytest.mark.parametrize("statement", statements(), ids=lambda text: text[:40])
def test_each_statement_has_a_test_or_states_that_it_is_judgement(statement: str) -> None:
    assert is_supported(statement)


@pytest.mark.parametrize("link", sorted(set(_TEST.findall(PAGE.read_text()))))
def test_what_it_links_is_a_file_of_tests(link: str) -> None:
    file = (PAGE.parent / link).resolve()
    assert file.is_relative_to(ROOT / "tests")
    assert re.search(r"^(async )?def test_", file.read_text(), re.MULTILINE)


def test_the_page_is_read_as_a_whole() -> None:
    assert any(each.startswith("| write to a landed topic") for each in statements())
    assert not any(each.startswith("| who may | can") for each in statements())
    assert not is_supported("| a right | all that [it says](how-to/page.md) | nothing |")
