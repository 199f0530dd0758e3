"""Selects topics: by name, and by regular expressions that match the whole name."""

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field, replace

from binwright.protocol.names import RESERVED
from binwright.protocol.patterns import Pattern

METADATA_SUFFIX, COMMANDS_SUFFIX, LANDING_SUFFIX = ".metadata", ".commands", ".landing"
ORDERS_SUFFIX = ".group-orders"  # data topics are often named as SHOP.orders
"""Suffixes of a group's own topics, after the group's name."""
CONTROLLERS_SUFFIX, SCALERS_SUFFIX, BALANCERS_SUFFIX = ".controllers", ".scalers", ".balancers"
"""Behind the name of what is led: the consumer group in which its leader is elected."""


def is_of_a_system(topic: str) -> bool:
    """Whether a topic is Kafka's own, or has a name like those of binwright's groups."""
    suffixes = METADATA_SUFFIX, COMMANDS_SUFFIX, LANDING_SUFFIX, ORDERS_SUFFIX
    return topic.startswith("__") or topic.endswith(suffixes)


@dataclass(frozen=True, slots=True)
class Selection:
    """Topics by name and by pattern; the monitor and all groups apply the same rules.

    A pattern must match the whole name. It never matches Kafka's internal topics (`__…`), names of
    directories in a lake, nor names that end like binwright's control topics.
    """

    topics: frozenset[str] = frozenset()
    patterns: tuple[Pattern, ...] = ()
    excluded: frozenset[str] = frozenset()  # topics that patterns must not match either
    excluded_patterns: tuple[Pattern, ...] = ()  # nor topics that match one of these

    def matches_pattern(self, topic: str) -> bool:
        """Whether a pattern matches this topic."""
        if topic in self.excluded or topic in RESERVED or is_of_a_system(topic):
            return False
        if not any(pattern.matches(topic) for pattern in self.patterns):
            return False
        return not any(pattern.matches(topic) for pattern in self.excluded_patterns)

    def includes(self, topic: str) -> bool:
        """Whether this topic is named, or a pattern matches it."""
        return topic in self.topics or self.matches_pattern(topic)

    def including(self, topics: Iterable[str]) -> "Selection":
        """Return this selection with more topics named."""
        return replace(self, topics=self.topics.union(topics))


@dataclass(slots=True)
class PatternMatcher:
    """Caches which topics match, for callers that check all topics of a cluster every second.

    Attributes:
        complete: Whether the last call had the time to match all topics.
    """

    complete: bool = True
    _selection: Selection = field(default_factory=Selection)
    _known: dict[str, bool] = field(default_factory=dict)

    def matching(
        self, selection: Selection, topics: Collection[str], in_time: Callable[[], bool]
    ) -> set[str]:
        """Return those of `topics` that a pattern of `selection` matches.

        Args:
            selection: Has the patterns.
            topics: Of the cluster.
            in_time: False: topics that were not matched yet are left to the next call.
        """
        before, self._selection = self._selection, selection
        changed = replace(selection, topics=before.topics) != before
        if changed:
            self._known.clear()
        elif len(self._known) > 2 * len(topics):  # most of these are gone
            self._known = {topic: self._known[topic] for topic in topics if topic in self._known}
        known = self._known
        self.complete = True
        for topic in topics:
            if topic not in known:
                if not in_time():
                    self.complete = False
                    break
                known[topic] = selection.matches_pattern(topic)
        return {topic for topic in topics if known.get(topic)}
