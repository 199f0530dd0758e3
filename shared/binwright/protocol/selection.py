"""Selects topics: by name, and by regular expressions that match the whole name."""

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace

from binwright.protocol.names import RESERVED

METADATA_SUFFIX, LANDING_SUFFIX = ".metadata", ".landing"
"""Suffixes of a group's own topics, after the group's name."""

REMEMBERED = 100_000  # topics; more than most clusters have


@dataclass(frozen=True, slots=True)
class Selection:
    """Topics by name and by pattern; the monitor and all groups apply the same rules.

    A pattern must match the whole name. It never matches Kafka's internal topics (`__…`), names of
    directories in a lake, nor names that end like binwright's control topics.
    """

    topics: frozenset[str] = frozenset()
    patterns: tuple[re.Pattern[str], ...] = ()
    excluded: frozenset[str] = frozenset()  # topics that patterns must not match either

    def matches_pattern(self, topic: str) -> bool:
        """Whether a pattern matches this topic."""
        if topic in self.excluded or topic.startswith("__") or topic in RESERVED:
            return False
        if topic.endswith((METADATA_SUFFIX, LANDING_SUFFIX)):
            return False
        return any(pattern.fullmatch(topic) for pattern in self.patterns)

    def includes(self, topic: str) -> bool:
        """Whether this topic is named, or a pattern matches it."""
        return topic in self.topics or self.matches_pattern(topic)

    def including(self, topics: Iterable[str]) -> "Selection":
        """Return this selection with more topics named."""
        return replace(self, topics=self.topics.union(topics))


@dataclass(slots=True)
class PatternMatcher:
    """Caches which topics match, for callers that check all topics of a cluster every second."""

    _selection: Selection = field(default_factory=Selection)
    _known: dict[str, bool] = field(default_factory=dict)

    def matching(self, selection: Selection, topics: Collection[str]) -> set[str]:
        """Return those of `topics` that a pattern of `selection` matches."""
        before, self._selection = self._selection, selection
        changed = (selection.patterns, selection.excluded) != (before.patterns, before.excluded)
        if changed or len(self._known) > REMEMBERED:
            self._known.clear()
        known = self._known
        for topic in topics:
            if topic not in known:
                known[topic] = selection.matches_pattern(topic)
        return {topic for topic in topics if known[topic]}
