"""Equal worlds are equal tuples: what is only compared keeps its order and loses its size."""

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any

from tests.model.explore import Plain

from binwright.core.ownership import Ownership

from .world import World

NUMBERS = frozenset({"hello", "dead", "goodbye", "answered", "epoch", "term"})  # offsets
NAMES = frozenset({"revision", "controller", "name"})  # compared for equality alone
TIMES = frozenset({"heard_at", "arrived_at", "sent_at", "since", "ticked_at", "measured_at"})
LEFT_OUT = TIMES | {
    "rules",
    "rates",
    "there",
    "monitors",
    "drift",
    "last_plan",
    "revisions",
    "failed_starts",
    "forced_by",
    "kind",
    "bounds",
    "length",
    "began",
    "history",
    "quit_ms",
    "at_ms",
}


@cache
def _fields(kind: type) -> tuple[str, ...]:
    return tuple(f.name for f in fields(kind) if f.name not in LEFT_OUT)


def canonical(world: World) -> Plain:
    """Return what tells two worlds apart, and nothing else."""
    found: set[int] = set()
    names: dict[object, int] = {}
    told = (_plain(world, found, names), _plain(world.history.members, found, names))
    ranks = {number: rank for rank, number in enumerate(sorted(found))}
    return _ranked(told, ranks)


def _plain(value: Any, found: set[int], names: dict[object, int]) -> Plain:
    if is_dataclass(value) and not isinstance(value, type):
        body = tuple(
            _field(name, getattr(value, name), found, names) for name in _fields(type(value))
        )
        return (type(value).__name__, *body)
    if isinstance(value, Ownership | Mapping):
        return tuple(
            (_plain(k, found, names), _plain(v, found, names)) for k, v in sorted(value.items())
        )
    if isinstance(value, tuple):
        if len(value) == 2 and type(value[0]) is int and is_dataclass(value[1]):
            return (_number(value[0], found), _plain(value[1], found, names))  # a record's offset
        return tuple(_plain(item, found, names) for item in value)
    if isinstance(value, frozenset):
        return tuple(sorted(value))
    return value


def _field(name: str, value: Any, found: set[int], names: dict[object, int]) -> Plain:
    if value is None:
        return -1
    if name in NUMBERS:
        return _number(value, found)
    if name in NAMES:
        return names.setdefault(value, len(names))
    if name == "declared_dead_at":
        return 1
    return _plain(value, found, names)


def _number(value: int, found: set[int]) -> Plain:
    found.add(value)
    return ("#", value)


def _ranked(value: Plain, ranks: Mapping[int, int]) -> Plain:
    if isinstance(value, tuple):
        if len(value) == 2 and value[0] == "#":
            return ranks[value[1]]
        return tuple(_ranked(item, ranks) for item in value)
    return value
