"""The page of messages leaves none out, and no field without its meaning."""

from dataclasses import dataclass, fields, is_dataclass
from importlib import import_module
from pkgutil import iter_modules

import pytest
from tools.reference.messages import TOPICS, _table

from binwright import protocol
from binwright.balancer.decide import proposals
from binwright.protocol.fields import Epoch, Number


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
    listed = [kind for _, kinds in TOPICS.values() for kind in kinds]
    assert sorted(map(repr, listed)) == sorted(map(repr, declared))


@dataclass
class Documented:
    rows: Number = 0  # landed: so many
    epoch: Epoch = 1


@dataclass
class Undocumented:
    count: Number


def test_a_field_s_meaning_is_its_comment_or_else_its_type_s() -> None:
    found = _table(Documented)
    assert "| `rows` | integer ≥ 0 | `0` | Landed: so many. |" in found
    assert "| `epoch` | integer | `1` | Which process of the slot:" in found


def test_a_field_without_a_meaning_is_refused() -> None:
    with pytest.raises(ValueError, match=r"Undocumented\.count: no comment says what it is"):
        _table(Undocumented)
