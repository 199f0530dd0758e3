"""What was found of topics, in words: for the settings file and for the terminal."""

from binwright.cli.terminal import count, data_size
from binwright.inspect.init.topics import RETENTION, FoundTopic
from binwright.kafka.topic_figures import TopicFigures
from binwright.tables.value_formats import ValueFormat

UNITS_S = (("day", 86_400), ("hour", 3_600), ("minute", 60), ("second", 1))


def rate(figures: TopicFigures) -> str:
    """Return how fast a topic is written to; empty if it was not measured."""
    if figures.records_per_s is None:
        return ""
    records = f"{figures.records_per_s:,.0f} records/s"
    return (
        records if figures.bytes_per_s is None else f"{data_size(figures.bytes_per_s)}/s, {records}"
    )


def size(figures: TopicFigures) -> str:
    """Return how large a topic is: in bytes, or in offsets where those are not known."""
    if figures.size is None:
        return f"{figures.offsets:,} offsets"
    return data_size(figures.size)


def kept(topic: FoundTopic) -> str:
    """Return for how long a topic keeps records; empty if this user may not know."""
    config = topic.config or {}
    if topic.is_compacted:
        return "compacted"
    retention_ms = int(config.get(RETENTION) or 0)
    if retention_ms < 0:
        return "for ever"
    for name, unit_s in UNITS_S:
        if (number := retention_ms / 1000 / unit_s) >= 1:
            return f"{number:.3g} {name}{'' if number == 1 else 's'}"
    return ""


def figures_in_words(topic: FoundTopic) -> str:
    """Return partitions, size, rate and retention of a topic."""
    figures = topic.figures
    words = [count(figures.partitions, "partition"), size(figures), rate(figures)]
    if keeps := kept(topic):
        words.append(keeps if topic.is_compacted else f"kept {keeps}")
    return ", ".join(filter(None, words))


def values_in_words(topic: FoundTopic) -> str:
    """Return what a topic's values are."""
    if topic.values is None:
        return "not looked at"
    if topic.values.kind == "none":
        return f"not read: {topic.fault}" if topic.fault else _without_values(topic)
    return _values(topic.values)


def _without_values(topic: FoundTopic) -> str:
    return "only records without a value" if topic.figures.offsets else "no records"


def _values(values: ValueFormat) -> str:
    schemas = f"schema {', '.join(map(str, values.schemas))}"
    match values.kind:
        case "json":
            return f"JSON, {count(len(values.inferred.columns), 'column')}"
        case "partly json":
            return f"JSON in {values.objects} of {values.values}"
        case "by schema":
            return f"Avro or Protobuf, {schemas}"
        case "json by schema":
            return f"JSON, {schemas}"
        case _:
            return values.kind
