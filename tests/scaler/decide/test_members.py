"""The members of a group, and who of them reads what."""

from binwright.protocol.model import TopicPartition
from binwright.scaler.decide.members import (
    GroupMember,
    are_static,
    in_order,
    number_of,
    with_matches,
)

TOPICS = frozenset({"orders"})


def test_a_name_without_a_number_comes_before_the_same_with_one() -> None:
    members = {one: GroupMember(topics=TOPICS) for one in ("c-10", "c-2", "c-")}
    assert in_order(members) == ["c-", "c-2", "c-10"]


def test_the_instance_id_counts_before_the_member_id() -> None:
    members = {
        "a": GroupMember(topics=TOPICS, instance="pod-1"),
        "b": GroupMember(topics=TOPICS, instance="pod-0"),
    }
    assert in_order(members) == ["b", "a"]


def test_a_group_is_static_only_if_every_member_is() -> None:
    named = GroupMember(topics=TOPICS, instance="pod-0")
    assert are_static({"a": named})
    assert not are_static({"a": named, "b": GroupMember(topics=TOPICS)})


def test_a_member_claims_nothing_by_default() -> None:
    assert TopicPartition("orders", 0) not in GroupMember(topics=TOPICS).owned


def test_the_number_at_the_end_of_a_name_is_its_replicas() -> None:
    assert [number_of(name) for name in ("billing-12", "7", "billing", "")] == [12, 7, None, None]


def test_a_pattern_takes_what_matches_of_the_topics_that_members_name_or_read() -> None:
    read = frozenset({TopicPartition("orders-eu", 0), TopicPartition("refunds", 0)})
    members = {
        "a": GroupMember(topics=TOPICS),
        "b": GroupMember(topics=frozenset(), owned=read),
        "c": GroupMember(topics=frozenset()),
        "guest": GroupMember(topics=frozenset()),
    }
    found = with_matches(members, {"b": "orders-.*", "c": "^orders.*$"})
    assert {name: sorted(one.topics) for name, one in found.items()} == {
        "a": ["orders"],
        "b": ["orders-eu", "refunds"],  # a reader subscribes to it, whatever we make of the pattern
        "c": ["orders", "orders-eu"],
        "guest": [],
    }
    assert found["b"].owned == read


def test_a_pattern_that_is_too_large_takes_all_topics_of_the_group() -> None:
    members = {"a": GroupMember(topics=TOPICS), "b": GroupMember(topics=frozenset())}
    assert with_matches(members, {"b": "(abc){500}"})["b"].topics == TOPICS
