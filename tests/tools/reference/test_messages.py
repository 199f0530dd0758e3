"""The page of messages leaves none out, and no field without its meaning."""

from dataclasses import dataclass, fields, is_dataclass
from importlib import import_module
from pkgutil import iter_modules
from typing import Any, get_args

import pytest
from tools.reference.messages import TOPICS, _entries, page

from binwright import protocol
from binwright.balancer.decide import proposals
from binwright.protocol.fields import Epoch, Number

PAGE = page()
KINDS = [kind for _, kinds in TOPICS.values() for kind in kinds]


def test_every_message_is_in_one_topic() -> None:
    modules = [
        import_module(f"binwright.protocol.{m.name}") for m in iter_modules(protocol.__path__)
    ]
    declared = [
        kind
        for module in (*modules, proposals)
        for kind in vars(module).values()
        if isinstance(kind, type) and kind.__module__ == module.__name__ and is_dataclass(kind)
        if any(field.name == "kind" and "/" in str(field.default) for field in fields(kind))
    ]
    assert sorted(map(repr, KINDS)) == sorted(map(repr, declared))


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_every_field_of_a_message_is_in_its_section(kind: type[Any]) -> None:
    (name,) = get_args(kind.__annotations__["kind"])
    section = PAGE.partition(f"\n### {name}\n")[2].partition("\n##")[0]
    for field in fields(kind):
        assert field.name == "kind" or f"`{field.name}`" in section


@dataclass
class Documented:
    rows: Number = 0  # landed: so many
    epoch: Epoch = 1


@dataclass
class Undocumented:
    count: Number


def test_a_field_s_meaning_is_its_comment_or_else_its_type_s() -> None:
    rows, epoch = _entries(Documented)
    assert rows == ("`rows`", ("count", "`0`"), "Landed: so many.")
    assert epoch[:2] == ("`epoch`", ("integer", "`1`"))
    assert epoch[2].startswith("Which process of the slot:")


def test_a_field_without_a_meaning_is_refused() -> None:
    with pytest.raises(ValueError, match=r"Undocumented\.count: no comment says what it is"):
        list(_entries(Undocumented))
