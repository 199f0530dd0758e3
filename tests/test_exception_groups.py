"""Handlers of groups raise nothing: Python 3.11.2 would put it into a group."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize("top", ["shared", "services", "apps"])
def test_nothing_is_raised_in_a_handler_of_groups(top: str) -> None:
    files = sorted((ROOT / top).rglob("*.py"))
    assert files
    raised = [
        f"{file.relative_to(ROOT)}:{each.lineno}"
        for file in files
        if "except*" in (text := file.read_text())
        for handled in ast.walk(ast.parse(text))
        if isinstance(handled, ast.TryStar)
        for handler in handled.handlers
        for each in ast.walk(handler)
        if isinstance(each, ast.Raise)
    ]
    assert not raised, "note what was caught, and raise behind the handlers"
