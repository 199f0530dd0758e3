"""The canonical form of a world: equal tuples for equivalent worlds.

Numbers that the code only compares are replaced by their ranks, names by the order in which they
are met, and times are left out.
"""

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any, get_args, get_type_hints

from tests.model.explore import Plain

from binwright.group.ownership import Ownership, State

from .world import World

NUMBERS = frozenset({"hello", "dead", "goodbye", "replied_term", "epoch", "term"})
"""Fields with offsets, which are compared with each other."""
NAMES = frozenset({"revision", "controller", "name"})
"""Fields that are compared for equality only."""
TIMES = frozenset(
    {
        "seen_at",
        "arrived_at",
        "ready_at",
        "asked_at",
        "sent_at",
        "since",
        "ticked_at",
        "measured_at",
    }
)
OMITTED = TIMES | {
    "config",
    "rates",
    "monitors",
    "volatility",
    "last_plan",
    "revisions",
    "failed_starts",
    "triggered_by",
    "kind",
    "bounds",
    "length",
    "began",
    "history",
    "stopped_ms",
}


ONE_VALUE = frozenset({"declared_dead_at"})
"""Fields of which only matters whether they are set."""


def listed_names() -> frozenset[str]:
    """Return the names of fields that the canonical form treats specially."""
    return NUMBERS | NAMES | OMITTED | ONE_VALUE


def field_names() -> frozenset[str]:
    """Return the fields of all dataclasses that a world may hold."""
    names: set[str] = set()
    found: set[Any] = set()
    unseen: list[Any] = [World, State]  # `Ownership`, which is not a dataclass, holds states
    while unseen:
        if (hint := unseen.pop()) in found:
            continue
        found.add(hint)
        unseen += [each for each in get_args(hint) if not isinstance(each, list)]  # of a Callable
        if is_dataclass(hint) and isinstance(hint, type):
            names |= {f.name for f in fields(hint)}
            unseen += get_type_hints(hint).values()
    return frozenset(names)


@cache
def _fields(kind: type) -> tuple[str, ...]:
    return tuple(f.name for f in fields(kind) if f.name not in OMITTED)


def canonical(world: World) -> Plain:
    """Return the canonical form."""
    found: set[int] = set()
    names: dict[object, int] = {}
    plain = (_plain(world, found, names), _plain(world.history.members.by_slot, found, names))
    ranks = {number: rank for rank, number in enumerate(sorted(found))}
    return _ranked(plain, ranks)


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
    if name in ONE_VALUE:
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
