"""Which topics are meant: those named, and those whose whole name fits a regular expression."""

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace

METADATA_SUFFIX, LANDING_SUFFIX = ".metadata", ".landing"
"""Of a group's own topics, behind the group's name."""

REMEMBERED = 100_000  # topics; more than most clusters have


@dataclass(frozen=True, slots=True)
class Selection:
    """Topics by name and by pattern; means the same to the monitor and to every group.

    A pattern must fit the whole name. It never takes Kafka's own topics (`__…`), nor the topics in
    which binwright's processes send each other messages: a topic that ends like one must be named.
    """

    topics: frozenset[str] = frozenset()
    patterns: tuple[re.Pattern[str], ...] = ()
    never: frozenset[str] = frozenset()  # not by pattern, besides those that no pattern takes

    def fits(self, topic: str) -> bool:
        """Whether a pattern takes this topic."""
        if topic in self.never or topic.startswith("__"):
            return False
        if topic.endswith((METADATA_SUFFIX, LANDING_SUFFIX)):
            return False
        return any(pattern.fullmatch(topic) for pattern in self.patterns)

    def takes(self, topic: str) -> bool:
        """Whether this topic is named, or a pattern takes it."""
        return topic in self.topics or self.fits(topic)

    def including(self, topics: Iterable[str]) -> "Selection":
        """Return this selection with more topics named."""
        return replace(self, topics=self.topics.union(topics))


@dataclass(slots=True)
class Fitting:
    """Remembers which topics fit: who asks every second, of all topics, tries few patterns."""

    _selection: Selection = field(default_factory=Selection)
    _known: dict[str, bool] = field(default_factory=dict)

    def among(self, selection: Selection, topics: Collection[str]) -> set[str]:
        """Return those of `topics` that a pattern of `selection` takes."""
        before, self._selection = self._selection, selection
        changed = (selection.patterns, selection.never) != (before.patterns, before.never)
        if changed or len(self._known) > REMEMBERED:
            self._known.clear()
        known = self._known
        for topic in topics:
            if topic not in known:
                known[topic] = selection.fits(topic)
        return {topic for topic in topics if known[topic]}
