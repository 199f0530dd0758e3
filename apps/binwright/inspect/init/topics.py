"""Looks at topics: which there are, how large and how fast they are, what their values are."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from binwright.cli.terminal import count
from binwright.kafka.client import ClusterClient, TopicsMetadata
from binwright.kafka.newest_values import TopicSample, newest_values
from binwright.kafka.topic_figures import TopicFigures, topic_figures
from binwright.kafka.topics import topic_configs
from binwright.protocol.errors import SettingsError
from binwright.protocol.metadata_topic import POLICY
from binwright.protocol.names import is_topic_name
from binwright.protocol.patterns import compile_patterns
from binwright.protocol.selection import Selection
from binwright.runtime.settings.group import Settings
from binwright.runtime.settings.kafka import KafkaSettings
from binwright.tables.value_formats import ValueFormat, guess_format

SAMPLE_RECORDS = 100
"""Of the newest records of a topic, about."""
MOST_SAMPLED = 50
"""Topics of which a sample is read: the fastest, then the largest. Others land as bytes."""
SAMPLE_S, ALL_SAMPLES_S = 10.0, 60.0
RETENTION = "retention.ms"

Figures = Mapping[str, TopicFigures]


@dataclass(frozen=True, slots=True)
class Wanted:
    """The topics that a person names."""

    topics: tuple[str, ...]
    patterns: tuple[str, ...]

    def __bool__(self) -> bool:
        return bool(self.topics or self.patterns)


@dataclass(frozen=True, slots=True)
class FoundTopic:
    """What is known of a topic that is to land."""

    name: str
    figures: TopicFigures
    config: Mapping[str, str] | None = None  # None: this user may not read it
    values: ValueFormat | None = None  # None: no sample was read
    fault: str = ""  # why the sample is not complete

    @property
    def is_compacted(self) -> bool:
        """Whether Kafka removes records that newer ones of their key replace."""
        return "compact" in (self.config or {}).get(POLICY, "")


def parse_wanted(items: Sequence[str]) -> Wanted:
    """Return names and patterns apart: a pattern has a character that no topic's name has.

    Raises:
        SettingsError: One is no regular expression.
    """
    names = [item for item in dict.fromkeys(items) if is_topic_name(item)]
    patterns = [item for item in dict.fromkeys(items) if not is_topic_name(item)]
    try:
        compile_patterns(patterns)
    except ValueError as exc:
        raise SettingsError(f"--topics: {exc}") from exc
    return Wanted(tuple(names), tuple(patterns))


def selection(settings: Settings, wanted: Wanted) -> Selection:
    """Return which topics are meant; binwright's own only if they are named."""
    return Selection(
        topics=frozenset(wanted.topics),
        patterns=compile_patterns(wanted.patterns),
        excluded=frozenset({settings.monitor.topic, settings.needs_topic}),
        excluded_patterns=compile_patterns(settings.exclude_topic_patterns),
    )


async def measured_topics(
    settings: Settings, wanted: Wanted, measure_s: float, progress: Callable[[str], None]
) -> Figures:
    """Return the figures of the wanted topics; of all that could land, if none are named.

    Raises:
        SettingsError: A topic is missing, or this user may not describe it, or none is there.
        BrokerUnavailable: Kafka does not answer.
    """
    async with ClusterClient(settings.kafka) as cluster:
        selected = selection(settings, wanted or Wanted((), (".*",)))
        metadata = await cluster.topics(None if selected.patterns else selected.topics)
        # The list lacks topics that this user may not see; asked by name, Kafka gives the reason.
        named = await cluster.topics(selected.topics - metadata.leaders.keys())
        check_named(settings.kafka, selected, metadata, named)
        leaders = {
            topic: partitions
            for topic, partitions in {**metadata.leaders, **named.leaders}.items()
            if selected.includes(topic) and topic not in metadata.internal - selected.topics
        }
        if not leaders:
            raise SettingsError(_none(settings.kafka, wanted))
        if measure_s:
            progress(f"measuring {count(len(leaders), 'topic')} for {measure_s:g} s")
        return await topic_figures(cluster, leaders, measure_s)


def check_named(
    kafka: KafkaSettings, selected: Selection, listed: TopicsMetadata, named: TopicsMetadata
) -> None:
    """Raise `SettingsError` for topics that are named and cannot be described."""
    errors = {**listed.errors, **named.errors}
    if refused := sorted(selected.topics & errors.keys()):
        reasons = "; ".join(f"{topic}: {errors[topic]}" for topic in refused)
        raise SettingsError(
            f"--topics: Kafka does not describe {reasons}. Give this user the right Describe on "
            "them, or leave them out"
        )
    if missing := sorted(selected.topics - listed.leaders.keys() - named.leaders.keys()):
        raise SettingsError(
            f"--topics: no such topic at {kafka.bootstrap_servers}: {', '.join(missing)}; create "
            "it, or name others"
        )


def _none(kafka: KafkaSettings, wanted: Wanted) -> str:
    if wanted:
        return f"--topics: no topic at {kafka.bootstrap_servers} matches {_joined(wanted)}"
    return (
        f"there is no topic to land at {kafka.bootstrap_servers} that this user may describe: "
        "create one first"
    )


def _joined(wanted: Wanted) -> str:
    return ", ".join(wanted.patterns)


def by_importance(figures: Figures) -> list[str]:
    """Return the topics, the fastest first, then the largest."""

    def rank(topic: str) -> tuple[float, float, int, str]:
        each = figures[topic]
        return (
            -(each.bytes_per_s or each.records_per_s or 0),
            -(each.size or 0),
            -each.offsets,
            topic,
        )

    return sorted(figures, key=rank)


async def look_into(settings: Settings, figures: Figures) -> list[FoundTopic]:
    """Return what is known of these topics, by importance; a sample is read of the first ones.

    Raises:
        BrokerUnavailable: Kafka does not answer.
    """
    ranked = by_importance(figures)
    async with ClusterClient(settings.kafka) as cluster:
        configs = await topic_configs(cluster, ranked, [POLICY, RETENTION])
    bounds = [(topic, figures[topic].bounds) for topic in ranked[:MOST_SAMPLED]]
    limits_s = SAMPLE_S, ALL_SAMPLES_S
    samples = await newest_values(settings.kafka, bounds, SAMPLE_RECORDS, limits_s)
    return [
        _topic_of(topic, figures[topic], configs.get(topic), samples.get(topic)) for topic in ranked
    ]


def _topic_of(
    topic: str, figures: TopicFigures, config: Mapping[str, str] | None, sample: TopicSample | None
) -> FoundTopic:
    if sample is None:
        return FoundTopic(topic, figures, config)
    return FoundTopic(topic, figures, config, guess_format(sample.values), sample.fault)
