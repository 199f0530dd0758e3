"""The glossary names what the code has, all of it and nothing else."""

import ast
import inspect
import re
from collections.abc import Iterator
from types import ModuleType
from typing import get_args

from tests.docs.words import DOCS, unknown
from tools.reference.messages import TOPICS

from binwright.controller.decide import approval, drain
from binwright.controller.decide.states import State
from binwright.group import people, plans
from binwright.group.config import Mode
from binwright.group.ownership import State as PartitionState

PAGE = DOCS / "glossary.md"


def terms(heading: str) -> set[str]:
    """Return what stands in backticks in the first column below a heading."""
    section = re.split(r"^#+ ", PAGE.read_text(), flags=re.MULTILINE)
    (text,) = (part for part in section if part.startswith(f"{heading}\n"))
    rows = [line.split("|")[1] for line in text.splitlines() if line.startswith("| ")][1:]
    return {term for row in rows for term in re.findall(r"`([^`]+)`", row)}


def names(union: object) -> set[str]:
    return {kind.__name__ for kind in get_args(union)}


def templates(module: ModuleType) -> Iterator[str]:
    """Yield the texts for people in a module; `…` stands for what is filled in."""
    tree = ast.parse(inspect.getsource(module))
    nodes = list(ast.walk(tree))
    aside = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}  # docstrings
    for node in nodes:
        if isinstance(node, ast.Raise) or (node in tree.body and isinstance(node, ast.Assign)):
            aside |= {id(each) for each in ast.walk(node)}  # errors; meanings of log events
        if isinstance(node, ast.JoinedStr):
            aside |= {id(part) for part in node.values}
    for node in nodes:
        match node:
            case ast.JoinedStr(values=parts) if id(node) not in aside:
                yield "".join(str(p.value) if isinstance(p, ast.Constant) else "…" for p in parts)
            case ast.Constant(value=str() as text) if id(node) not in aside:
                yield text


def test_the_states_of_the_controller_are_those_of_its_machine() -> None:
    assert terms("States of the controller") == names(State)


def test_the_states_of_a_partition_are_those_of_ownership() -> None:
    assert terms("States of a partition, and of a table's writer") == names(PartitionState)


def test_the_modes_are_those_of_the_settings() -> None:
    assert terms("Modes") == set(get_args(Mode))


def test_the_messages_are_those_of_the_protocol() -> None:
    assert terms("Messages") == {kind.__name__ for _, kinds in TOPICS.values() for kind in kinds}


def test_the_reasons_are_those_that_plans_have() -> None:
    texts = {text for module in (approval, drain, people, plans) for text in templates(module)}
    assert terms("Reasons") == {
        text for text in texts if re.search(r"[a-z] |[a-z]$", text) and " " in text
    }


def test_every_setting_and_log_event_on_the_page_exists() -> None:
    assert unknown(PAGE) == set()
