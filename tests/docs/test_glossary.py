"""What the glossary names is in the code."""

import ast
import inspect
import re
from collections.abc import Iterator
from types import ModuleType

from tests.docs.words import DOCS, unknown

from binwright.controller.decide import approval, drain
from binwright.group import people, plans

PAGE = DOCS / "glossary.md"


def terms(heading: str) -> set[str]:
    """Return what stands in backticks in the first column below a heading."""
    section = re.split(r"^#+ ", PAGE.read_text(), flags=re.MULTILINE)
    (text,) = (part for part in section if part.startswith(f"{heading}\n"))
    rows = [line.split("|")[1] for line in text.splitlines() if line.startswith("| ")][1:]
    return {term for row in rows for term in re.findall(r"`([^`]+)`", row)}


def templates(module: ModuleType) -> Iterator[str]:
    """Yield the texts in a module; `…` stands for what is filled in."""
    for node in ast.walk(ast.parse(inspect.getsource(module))):
        match node:
            case ast.JoinedStr(values=parts):
                yield "".join(str(p.value) if isinstance(p, ast.Constant) else "…" for p in parts)
            case ast.Constant(value=str() as text):
                yield text


def test_the_reasons_are_of_those_that_plans_have() -> None:
    texts = {text for module in (approval, drain, people, plans) for text in templates(module)}
    assert terms("Reasons")
    assert terms("Reasons") <= texts


def test_every_setting_and_log_event_on_the_page_exists() -> None:
    assert unknown(PAGE) == set()
