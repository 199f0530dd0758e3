"""Which topics could land, in which order they matter, and what is known of them in words."""

import pytest

from binwright.inspect.init.topics import FoundTopic, Wanted, by_importance, check_named, selection
from binwright.inspect.init.words import kept, rate, size, values_in_words
from binwright.kafka.client import TopicsMetadata
from binwright.protocol.errors import SettingsError
from binwright.runtime.settings.group import load_settings
from binwright.runtime.settings.kafka import KafkaSettings

from .builders import figures, found

NOTHING = TopicsMetadata({}, {})


def test_the_own_topics_of_a_group_are_only_landed_if_they_are_named() -> None:
    own = ["binwright.metrics", "binwright.metrics.needs", "g.metadata", "g.landing", "__x"]
    settings = load_settings()
    everything = selection(settings, Wanted((), (".*",)))
    assert [topic for topic in [*own, "orders"] if everything.includes(topic)] == ["orders"]
    assert selection(settings, Wanted(("g.landing",), ())).includes("g.landing")


def test_topics_are_ranked_by_rate_then_by_size_then_by_offsets() -> None:
    topics = {
        "idle": figures(size=10, rate=0.0),
        "busy": figures(size=1, rate=5.0),
        "large": figures(size=20, rate=0.0),
        "unknown": figures(records=3, size=None, rate=0.0),
        "unknown more": figures(records=4, size=None, rate=0.0),
    }
    assert by_importance(topics) == ["busy", "large", "idle", "unknown more", "unknown"]


def test_a_topic_that_is_missing_or_hidden_is_named() -> None:
    kafka = KafkaSettings(bootstrap_servers="kafka:1")
    chosen = selection(load_settings(), Wanted(("a", "b"), ()))
    check_named(kafka, chosen, TopicsMetadata({"a": {0: 1}}, {}), TopicsMetadata({"b": {}}, {}))
    with pytest.raises(SettingsError, match="no such topic at kafka:1: a, b;"):
        check_named(kafka, chosen, NOTHING, NOTHING)
    hidden = TopicsMetadata({}, {"b": "Denied: why"})
    with pytest.raises(SettingsError, match=r"does not describe b: Denied: why\. Give this user"):
        check_named(kafka, chosen, NOTHING, hidden)


@pytest.mark.parametrize(
    ("config", "words"),
    [
        (None, ""),
        ({}, ""),
        ({"retention.ms": "-1"}, "for ever"),
        ({"retention.ms": "3600000"}, "1 hour"),
        ({"retention.ms": "5400000"}, "1.5 hours"),
        ({"retention.ms": "1"}, ""),
        ({"retention.ms": "1000", "cleanup.policy": "compact,delete"}, "compacted"),
    ],
)
def test_how_long_records_are_kept_is_put_into_words(
    config: dict[str, str] | None, words: str
) -> None:
    assert kept(found("t", config=config)) == words


def test_what_is_not_known_is_not_shown() -> None:
    assert rate(figures()) == ""
    assert rate(figures(size=None, rate=2.0)) == "2 records/s"
    assert rate(figures(rate=2_000.0)) == "200 kB/s, 2,000 records/s"
    assert (size(figures(size=None)), size(figures())) == ("10 offsets", "2.0 kB")
    assert values_in_words(FoundTopic("t", figures())) == "not looked at"
