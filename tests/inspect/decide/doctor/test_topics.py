"""Topics that would lose records, or take none, are named."""

from collections.abc import Iterable, Mapping
from typing import Any

import pytest

from binwright.inspect.decide.doctor.findings import Finding
from binwright.inspect.decide.doctor.topics import (
    VisibleTopic,
    commands_topic,
    compacted_topic,
    creations,
    data_topics,
    landing_topic,
    other_topic,
)

WEEK, DAY = "604800000", 86_400.0
FINE = {"cleanup.policy": "delete", "retention.ms": WEEK, "max.message.bytes": "1048588"}
INFLATED = 128_000_000
ALL = frozenset({"Read", "Write", "Alter"})


def topic(name: str = "orders", partitions: int = 2, **changed: Any) -> VisibleTopic:
    facts: dict[str, Any] = {"replicas": 3, "permitted": ALL, "config": FINE} | changed
    return VisibleTopic(name, partitions, **facts)


def of_data(*topics: VisibleTopic, patterns: Iterable[str] = ()) -> list[Finding]:
    return [*data_topics(topics, [*patterns], INFLATED)]


def one(findings: Iterable[Finding], status: str) -> Finding:
    (found,) = findings
    assert found.status == status
    return found


def config(**changed: str) -> Mapping[str, str]:
    return FINE | {name.replace("_", "."): value for name, value in changed.items()}


def test_a_topic_without_faults_is_one_line() -> None:
    found = one(of_data(topic()), "ok")
    assert (found.check, found.what) == (
        "topic orders",
        "2 partitions with leaders, records are kept for 7 days",
    )


def test_settings_without_a_topic_are_a_fault_and_a_pattern_without_one_a_warning() -> None:
    assert "name no topic" in one(of_data(), "fault").what
    assert "no topic matches a.*, b.*" in one(of_data(patterns=["a.*", "b.*"]), "warning").what


def test_a_topic_that_is_missing_is_a_fault_unless_it_may_be_hidden() -> None:
    assert "no such topic" in one(of_data(topic(partitions=0)), "fault").what
    assert "see the rights" in one(of_data(topic(partitions=0, hidden=True)), "skipped").what
    assert "InvalidTopic" in one(of_data(topic(partitions=0, error="InvalidTopic")), "fault").what


def test_partitions_without_a_leader_are_named() -> None:
    assert "partitions 0, 1" in one(of_data(topic(leaderless=(0, 1))), "fault").what


@pytest.mark.parametrize("policy", ["compact", "compact,delete"])
def test_a_compacted_topic_is_warned_about(policy: str) -> None:
    found = one(of_data(topic(config=config(cleanup_policy=policy))), "warning")
    assert f"cleanup.policy={policy}" in found.what


@pytest.mark.parametrize(
    ("retention_ms", "words"),
    [("3599000", "an outage of 60 minutes"), ("90000", "of 90 seconds"), ("1000", "of 1 seconds")],
)
def test_records_that_are_kept_for_less_than_an_hour_are_warned_about(
    retention_ms: str, words: str
) -> None:
    found = one(of_data(topic(config=config(retention_ms=retention_ms))), "warning")
    assert words in found.what
    assert found.do == "keep them for 1 hour at least"


@pytest.mark.parametrize("changed", [{"retention_ms": "3600000"}, {"retention_ms": "-1"}])
def test_an_hour_is_enough(changed: dict[str, str]) -> None:
    one(of_data(topic(config=config(**changed))), "ok")


def test_a_topic_that_only_compacts_keeps_records_for_ever() -> None:
    found = one(
        of_data(topic(config=config(cleanup_policy="compact", retention_ms="1000"))), "warning"
    )
    assert "cleanup.policy" in found.what


def test_messages_above_the_inflated_size_of_a_batch_are_warned_about() -> None:
    found = one(of_data(topic(config=config(max_message_bytes=str(INFLATED + 1)))), "warning")
    assert "consumer.batch_inflated_bytes" in found.what
    one(of_data(topic(config=config(max_message_bytes=str(INFLATED)))), "ok")


def test_settings_that_may_not_be_read_are_one_line() -> None:
    found = of_data(topic(config=None), topic("clicks", config=None), topic("views"))
    assert [each.status for each in found] == ["ok", "ok", "ok", "skipped"]
    assert "of orders, clicks: this user lacks DescribeConfigs" in found[-1].what


# --- the group's own ------------------------------------------------------------------------------


def own(partitions: int = 10, **changed: Any) -> VisibleTopic:
    return topic("g.metadata", partitions, **({"config": {"cleanup.policy": "compact"}} | changed))


def test_a_topic_of_state_or_commands_that_deletes_by_age_is_a_fault() -> None:
    for judged in (compacted_topic(own(config=FINE), 3), commands_topic(own(config=FINE), 10, 3)):
        assert "cleanup.policy=delete" in one(judged, "fault").what


def test_a_metadata_topic_with_few_replicas_is_warned_about() -> None:
    assert "1 replicas" in one(compacted_topic(own(replicas=1), 3), "warning").what


@pytest.mark.parametrize("changed", [{}, {"partitions": 3}, {"permitted": None, "partitions": 3}])
def test_own_topics_that_are_large_enough_or_may_grow_are_fine(changed: Any) -> None:
    assert list(compacted_topic(own(**changed), 3)) == []
    assert list(commands_topic(own(**changed), 10, 3)) == []


def test_a_commands_topic_that_is_small_and_may_not_grow_is_warned_about() -> None:
    small = own(partitions=9, permitted=frozenset({"Read"}), config=None)
    found = one(commands_topic(small, 10, 3), "warning")
    assert found.what.startswith("9 partitions serve as many consumers")
    assert found.do.startswith("add partitions up to 10")
    assert list(commands_topic(own(permitted=frozenset({"Read"})), 10, 3)) == []


def test_own_topics_that_are_missing_or_hidden_are_no_fault() -> None:
    missing, hidden = topic("g.metadata", 0, config=None), topic("g.landing", 0, hidden=True)
    assert "does not exist yet" in one(compacted_topic(missing, 3), "skipped").what
    assert "does not exist yet" in one(commands_topic(missing, 10, 3), "skipped").what
    assert "see the rights" in one(landing_topic(hidden, 8, DAY), "skipped").what


def test_own_topics_need_leaders_and_room_for_a_message() -> None:
    assert "no leader" in one(other_topic(topic(leaderless=(0,))), "fault").what
    small = topic(config=config(max_message_bytes="9999"))
    assert "max.message.bytes=9999" in one(other_topic(small), "fault").what
    assert list(other_topic(topic(config=config(max_message_bytes="10000")))) == []
    assert list(other_topic(topic(config=None))) == []


def test_a_landing_topic_needs_its_partitions() -> None:
    may, may_not = topic(partitions=7), topic(partitions=7, permitted=frozenset({"Read"}))
    assert list(landing_topic(may, 8, DAY)) == []
    assert one(landing_topic(may_not, 8, DAY), "fault").do == "add partitions up to 8"


def test_a_landing_topic_that_compacts_is_a_fault() -> None:
    found = one(
        landing_topic(topic(partitions=8, config=config(cleanup_policy="compact")), 8, DAY), "fault"
    )
    assert "announcements of staged files" in found.what


def test_a_landing_topic_that_keeps_less_than_staging_is_warned_about() -> None:
    found = one(
        landing_topic(topic(partitions=8, config=config(retention_ms="7200000")), 8, 2 * DAY),
        "warning",
    )
    assert "is 2 hours, and staged files are kept for 2 days" in found.what
    assert found.do == "set retention.ms=172800000"
    assert list(landing_topic(topic(partitions=8, config=None), 8, DAY)) == []


def test_a_topic_that_kafka_would_not_create_is_a_fault() -> None:
    found = one(creations({"g.landing": "InvalidReplicationFactorError: 3 of 1"}), "fault")
    assert "kafka.replication_factor" in found.do
