"""Which topics a monitor measures: its own, and those that controllers publish repeatedly."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from binwright.protocol.metrics import Needs
from binwright.protocol.patterns import ALL_STEPS, compile_pattern
from binwright.protocol.selection import Selection

NEEDS_EXPIRY_MS = 3_600_000
"""Needs that were not repeated for this long are dropped. The time is generous: measurements for a
group whose controller is down for less cost little."""


def same_needs(one: Needs, other: Needs | None) -> bool:
    """Whether a group's needs are unchanged."""
    return other is not None and (one.topics, one.patterns) == (other.topics, other.patterns)


def received(needs: Needs, now_ms: int) -> Needs:
    """Return needs that were read at `now_ms`; a time in the future would never expire."""
    return replace(needs, at_ms=min(needs.at_ms, now_ms))


def current_needs(known: Mapping[str, Needs], now_ms: int) -> dict[str, Needs]:
    """Return the needs, by group, that have not expired at `now_ms`, wall clock."""
    return {group: each for group, each in known.items() if now_ms - each.at_ms <= NEEDS_EXPIRY_MS}


def merge_needs(own: Selection, needs: Iterable[Needs]) -> tuple[Selection, tuple[str, ...]]:
    """Return `own` with the groups' needs added, and a message for each invalid pattern.

    The result does not depend on the order of `needs`.
    """
    ordered = sorted(needs, key=lambda each: each.group)
    patterns, faults = dict.fromkeys(own.patterns), list[str]()
    for each in ordered:
        steps = 0
        for text in each.patterns:
            try:
                pattern = compile_pattern(text)
            except ValueError as exc:  # somebody else than a controller wrote it
                faults.append(f"group {each.group}: {exc}")
                continue
            if (steps := steps + pattern.steps) > ALL_STEPS:
                faults.append(f"group {each.group}: too many patterns, from {text!r} on")
                break
            patterns[pattern] = None
    topics = own.topics.union(*(each.topics for each in ordered))
    return replace(own, topics=topics, patterns=tuple(patterns)), tuple(faults)
