"""Throttles in configurations, and the marks by which ours are recognised."""

from typing import Any

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
from binwright.balancer.ports import ConfigResource, Configs
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
    assert Throttles.of_configs(OURS).until(5_000_000, [COPY]) == {}


def test_without_copies_all_of_ours_is_removed() -> None:
    assert Throttles.of_configs(OURS).until(5_000_000, []) == {
        ALL_BROKERS: {LEADER_RATE: None, FOLLOWER_RATE: None},
        ORDERS: {LEADER_LIST: None, FOLLOWER_LIST: None},
    }


def test_a_copy_that_ended_leaves_the_lists() -> None:
    both = Throttles.of_configs({**Throttles().until(1, [COPY, Copy(P1, (1,), (2,))])})  # type: ignore[dict-item]
    changes = both.until(1, [COPY])
    assert changes[ORDERS][FOLLOWER_LIST] == f"{LIST_MARK},0:3"


def test_our_lists_name_what_was_under_way() -> None:
    assert Throttles.of_configs(OURS).partitions() == {TopicPartition("orders", 0)}


def test_values_without_a_mark_are_of_another_tool() -> None:
    found = Throttles.of_configs(
        {
            ConfigResource("broker", "2"): {LEADER_RATE: "1000000"},
            ORDERS: {LEADER_LIST: "*", FOLLOWER_LIST: ""},
            ALL_BROKERS: {"log.retention.ms": "617"},
        }
    )
    assert found.ours == {}
    assert found.foreign_topics(["orders", "bills"]) == ["orders"]
    assert len(found.foreign_limits()) == 1


STATIC = {
    ConfigResource("broker", name, is_static=True): {LEADER_RATE: "4000617"} for name in ("1", "2")
}


def rates(theirs: Configs, ours: int = 5_000_000, brokers: tuple[int, ...] = (1, 2)) -> Any:
    changes = Throttles.of_configs(theirs, brokers).until(ours, [COPY])
    return {each.name: values for each, values in changes.items() if each.kind == "broker"}


def test_the_smaller_rate_of_ours_and_of_files_counts() -> None:
    """Ours hides what a file has."""
    both = {LEADER_RATE: "4000617", FOLLOWER_RATE: "5000617"}
    assert rates(STATIC) == {"": both}
    assert rates({**STATIC, ALL_BROKERS: both}) == {}, "it is found again beside ours"
    assert rates(STATIC, 1_000) == {"": {LEADER_RATE: "1617", FOLLOWER_RATE: "1617"}}
    odd = {ConfigResource("broker", "1", is_static=True): {LEADER_RATE: "4000500"}}
    assert rates(odd)[""][LEADER_RATE] == "3999617"
    assert (
        rates({ConfigResource("broker", "1", is_static=True): {LEADER_RATE: "9"}})[""][LEADER_RATE]
        == "617"
    )


def test_a_default_of_the_owner_stays_and_the_smaller_rate_counts() -> None:
    default = {LEADER_RATE: "4000000", FOLLOWER_RATE: "9000000"}
    own = {FOLLOWER_RATE: "5000617"}
    assert rates({ALL_BROKERS: default}) == {"1": own, "2": own}
    one = {ALL_BROKERS: default, ConfigResource("broker", "1"): {FOLLOWER_RATE: "8000000"}}
    assert rates(one) == {"2": own}, "what the owner has set on a broker stays"
    assert Throttles.of_configs({ALL_BROKERS: default}).until(None, []) == {}


def test_limits_of_others_are_named_with_their_values_and_where_they_are_set() -> None:
    theirs = {**STATIC, ALL_BROKERS: {LEADER_RATE: "7", FOLLOWER_RATE: "8"}, ORDERS: OURS[ORDERS]}
    assert sorted(Throttles.of_configs(theirs).foreign_limits()) == [
        f"in the files of brokers 1, 2: {LEADER_RATE} = 4000617",
        f"the default of all brokers: {LEADER_RATE} = 7, {FOLLOWER_RATE} = 8",
    ]


def test_lists_that_are_read_later_take_the_place_of_those_before() -> None:
    before = Throttles.of_configs({**OURS, ConfigResource("topic", "bills"): {LEADER_LIST: "0:1"}})
    assert before.with_lists({ORDERS: OURS[ORDERS]}).listed() == {"orders"}
    later = before.with_lists({ORDERS: {LEADER_LIST: "0:1"}})
    assert later.listed() == set()
    assert later.foreign_topics(["orders", "bills"]) == ["bills", "orders"]
    assert later.ours == {ALL_BROKERS: OURS[ALL_BROKERS]}


def test_values_of_another_tool_are_not_removed() -> None:
    theirs = Throttles.of_configs({ORDERS: {LEADER_LIST: "0:1"}})
    assert theirs.until(None, []) == {}
