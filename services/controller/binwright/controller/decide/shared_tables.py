"""Topics that share tables, by the settings: they have one writer."""

from collections.abc import Callable, Iterable, Sequence


def together(
    topics: Sequence[str], tables_of: Callable[[str], Iterable[str]] | None
) -> list[tuple[str, ...]]:
    """Return the topics in groups, in which each shares a table with another one.

    Args:
        topics: In the order that groups, and the topics within them, have.
        tables_of: The names of a topic's tables; None: no table is shared.
    """
    if tables_of is None:
        return [(topic,) for topic in topics]
    parents = {topic: topic for topic in topics}

    def root(topic: str) -> str:
        while (parent := parents[topic]) != topic:
            parents[topic] = topic = parents[parent]
        return topic

    firsts: dict[str, str] = {}
    for topic in topics:
        for table in tables_of(topic):
            parents[root(topic)] = root(firsts.setdefault(table, topic))
    groups: dict[str, list[str]] = {}
    for topic in topics:
        groups.setdefault(root(topic), []).append(topic)
    return [tuple(group) for group in groups.values()]
