"""Throttles in configurations, and the marks by which ours are recognised."""

import pytest

from binwright.balancer.decide.throttles import (
    ALL_BROKERS,
    FOLLOWER_LIST,
    FOLLOWER_RATE,
    LEADER_LIST,
    LEADER_RATE,
    LIST_MARK,
    Copy,
    Throttles,
    marked_rate,
)
from binwright.balancer.ports import ConfigResource
from binwright.protocol.model import TopicPartition

from .states import P0, P1

ORDERS = ConfigResource("topic", "orders")
OURS = {
    ALL_BROKERS: {LEADER_RATE: "5000617", FOLLOWER_RATE: "5000617"},
    ORDERS: {LEADER_LIST: f"{LIST_MARK},0:1,0:2", FOLLOWER_LIST: f"{LIST_MARK},0:3"},
}
COPY = Copy(P0, (1, 2), (3,))


@pytest.mark.parametrize(
    ("rate", "marked"), [(5_000_000, 5_000_617), (5_000_617, 5_000_617), (999, 1_617), (1, 617)]
)
def test_a_marked_rate_is_less_than_a_unit_above_the_rate(rate: int, marked: int) -> None:
    assert marked_rate(rate) == marked


def test_a_copy_is_limited_at_the_brokers_that_send_and_at_those_that_receive() -> None:
    assert Throttles().until(5_000_000, [COPY]) == OURS


def test_without_a_rate_the_lists_are_set_alone() -> None:
    assert Throttles().until(None, [COPY]) == {ORDERS: OURS[ORDERS]}


def test_what_is_set_already_does_not_change() -> None:
    assert Throttles.found(OURS).until(5_000_000, [COPY]) == {}


def test_without_copies_all_of_ours_is_removed() -> None:
    assert Throttles.found(OURS).until(5_000_000, []) == {
        ALL_BROKERS: {LEADER_RATE: None, FOLLOWER_RATE: None},
        ORDERS: {LEADER_LIST: None, FOLLOWER_LIST: None},
    }


def test_a_copy_that_ended_leaves_the_lists() -> None:
    both = Throttles.found({**Throttles().until(1, [COPY, Copy(P1, (1,), (2,))])})  # type: ignore[dict-item]
    changes = both.until(1, [COPY])
    assert changes[ORDERS][FOLLOWER_LIST] == f"{LIST_MARK},0:3"


def test_our_lists_name_what_was_under_way() -> None:
    assert Throttles.found(OURS).partitions() == {TopicPartition("orders", 0)}


def test_values_without_a_mark_are_of_another_tool() -> None:
    found = Throttles.found(
        {
            ConfigResource("broker", "2"): {LEADER_RATE: "1000000"},
            ORDERS: {LEADER_LIST: "*", FOLLOWER_LIST: ""},
            ALL_BROKERS: {"log.retention.ms": "617"},
        }
    )
    assert found.ours == {}
    assert found.foreign_topics(["orders", "bills"]) == ["orders"]
    assert found.foreign_brokers() == ["2"]


def test_values_of_another_tool_are_not_removed() -> None:
    theirs = Throttles.found({ORDERS: {LEADER_LIST: "0:1"}})
    assert theirs.until(None, []) == {}
