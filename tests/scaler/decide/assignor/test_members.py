"""The members of a group, and who of them reads what."""

from binwright.protocol.model import TopicPartition
from binwright.scaler.decide.assignor.members import Member, are_static, in_order

TOPICS = frozenset({"orders"})


def test_a_name_without_a_number_comes_before_the_same_with_one() -> None:
    members = {one: Member(topics=TOPICS) for one in ("c-10", "c-2", "c-")}
    assert in_order(members) == ["c-", "c-2", "c-10"]


def test_the_instance_id_counts_before_the_member_id() -> None:
    members = {
        "a": Member(topics=TOPICS, instance="pod-1"),
        "b": Member(topics=TOPICS, instance="pod-0"),
    }
    assert in_order(members) == ["b", "a"]


def test_a_group_is_static_only_if_every_member_is() -> None:
    named = Member(topics=TOPICS, instance="pod-0")
    assert are_static({"a": named})
    assert not are_static({"a": named, "b": Member(topics=TOPICS)})


def test_a_member_claims_nothing_by_default() -> None:
    assert TopicPartition("orders", 0) not in Member(topics=TOPICS).owned
