"""Which topics a monitor measures: its own, and those that controllers publish repeatedly."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import lru_cache

from binwright.protocol.measurements import Needs
from binwright.protocol.selection import Selection

NEEDS_EXPIRY_MS = 3_600_000
"""Needs that were not repeated for this long are dropped. The time is generous: measurements for a
group whose controller is down for less cost little."""


_compiled = lru_cache(maxsize=100_000)(re.compile)  # Python's own cache holds 512


def same_needs(one: Needs, other: Needs | None) -> bool:
    """Whether a group's needs are unchanged."""
    return other is not None and (one.topics, one.patterns) == (other.topics, other.patterns)


def current_needs(known: Mapping[str, Needs], now_ms: int) -> dict[str, Needs]:
    """Return the needs, by group, that have not expired at `now_ms`, wall clock."""
    return {group: each for group, each in known.items() if now_ms - each.at_ms <= NEEDS_EXPIRY_MS}


def merge_needs(own: Selection, needs: Iterable[Needs]) -> tuple[Selection, tuple[str, ...]]:
    """Return `own` with the groups' needs added, and a message for each invalid pattern.

    The result does not depend on the order of `needs`.
    """
    ordered = sorted(needs, key=lambda each: each.group)
    patterns, faults = dict.fromkeys(own.patterns), []
    for each in ordered:
        for pattern in each.patterns:
            try:
                patterns[_compiled(pattern)] = None
            except re.error as exc:  # a controller with another version of Python accepted it
                faults.append(f"group {each.group}: {pattern!r}: {exc}")
    topics = own.topics.union(*(each.topics for each in ordered))
    return replace(own, topics=topics, patterns=tuple(patterns)), tuple(faults)
