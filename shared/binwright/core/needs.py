"""What monitors measure for groups: their controllers publish it, again and again."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import lru_cache

from binwright.core.messages import Needs
from binwright.core.selection import Selection

REPEAT_S = 60.0
FORGOTTEN_MS = 3_600_000
"""A group is no more whose controller has not repeated its needs for so long: an hour without one
costs nothing, for nobody reads what is measured meanwhile."""


_compiled = lru_cache(maxsize=100_000)(re.compile)  # Python's own remembers 512


def same(one: Needs, other: Needs | None) -> bool:
    """Whether a group needs what it needed before."""
    return other is not None and (one.topics, one.patterns) == (other.topics, other.patterns)


def current(known: Mapping[str, Needs], now_ms: int) -> dict[str, Needs]:
    """Return the needs, by group, that are not forgotten; wall clock."""
    return {group: each for group, each in known.items() if now_ms - each.at_ms <= FORGOTTEN_MS}


def joined(own: Selection, needs: Iterable[Needs]) -> tuple[Selection, tuple[str, ...]]:
    """Return `own` with what groups need, and in words which of their patterns are none.

    The same needs in another order give an equal selection.
    """
    ordered = sorted(needs, key=lambda each: each.group)
    patterns, faults = dict.fromkeys(own.patterns), []
    for each in ordered:
        for pattern in each.patterns:
            try:
                patterns[_compiled(pattern)] = None
            except re.error as exc:  # of a controller of another Python
                faults.append(f"group {each.group}: {pattern!r}: {exc}")
    topics = own.topics.union(*(each.topics for each in ordered))
    return replace(own, topics=topics, patterns=tuple(patterns)), tuple(faults)
