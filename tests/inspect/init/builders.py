"""Topics as `binwright init` finds them."""

from collections.abc import Mapping, Sequence

from binwright.inspect.init.topics import RETENTION, FoundTopic
from binwright.kafka.topic_figures import TopicFigures
from binwright.protocol.metadata_topic import POLICY
from binwright.tables.value_formats import guess_format

WEEK = {RETENTION: "604800000", POLICY: "delete"}


def figures(
    records: int = 10, size: int | None = 2_000, rate: float | None = None, partitions: int = 2
) -> TopicFigures:
    """Return the figures of a topic whose records are in partition 0."""
    grown = None if size is None or rate is None else rate * 100
    return TopicFigures(partitions, {0: (0, records)}, size, rate, grown)


def found(
    name: str,
    values: Sequence[bytes | None] = (),
    config: Mapping[str, str] | None = WEEK,
    fault: str = "",
) -> FoundTopic:
    """Return a topic with these newest values."""
    return FoundTopic(name, figures(len(values)), config, guess_format(values), fault)
