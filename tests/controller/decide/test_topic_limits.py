"""Which topics the groups of a namespace may read when it may not have all of them."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.builders import CONFIG, changed

from binwright.controller.decide.topic_limits import NamespaceTopics, TopicShare, Usage
from binwright.group.group import Group, add_partitions
from binwright.protocol.metrics import Measurement, PartitionRate
from binwright.protocol.model import BytesPerSecond, Slot, TopicPartition
from binwright.protocol.selection import Selection


def topics(number: int = 3, partitions: int = 10, *groups: str) -> NamespaceTopics:
    found = NamespaceTopics(Usage(number, partitions))
    found.order(groups or ("old", "young"))
    return found


def test_what_fits_is_read() -> None:
    of = topics()
    assert [of.allow("old", name, 2) for name in "abc"] == [2, 2, 2]
    assert of.refused("old") == {}
    assert of.older("young") == (3, 6)


def test_a_topic_too_many_is_refused_and_those_that_are_read_stay() -> None:
    of = topics()
    for name in "xyz":
        of.allow("old", name, 1)
    assert of.allow("old", "a", 4) == 0
    assert of.refused("old") == {"a": 4}
    assert of.allow("old", "z", 1) == 1


def test_a_topic_with_too_many_partitions_is_refused_whole() -> None:
    of = topics()
    assert of.allow("old", "a", 11) == 0
    assert of.allow("old", "b", 10) == 10


def test_a_topic_that_grows_too_far_keeps_what_it_has() -> None:
    of = topics()
    of.allow("old", "a", 4)
    of.allow("old", "b", 4)
    assert of.allow("old", "a", 7) == 4
    assert of.refused("old") == {"a": 3}
    assert of.allow("old", "a", 6) == 6
    assert of.refused("old") == {}


def test_what_is_deleted_makes_room() -> None:
    of = topics(1)
    of.allow("old", "a", 4)
    assert of.allow("old", "b", 4) == 0
    assert of.allow("old", "a", 0) == 0
    assert of.allow("old", "b", 4) == 4
    assert of.refused("old") == {}


def test_a_refused_topic_that_is_deleted_is_refused_no_more() -> None:
    of = topics(1)
    of.allow("old", "a", 4)
    of.allow("old", "b", 4)
    assert of.allow("old", "b", 0) == 0
    assert of.refused("old") == {}


def test_the_older_group_takes_what_the_younger_one_read_last() -> None:
    of = topics()
    assert [of.allow("young", name, 1) for name in "abc"] == [1, 1, 1]
    assert of.allow("old", "x", 1) == 1
    assert [of.allow("young", name, 1) for name in "abc"] == [1, 1, 0]
    assert of.refused("young") == {"c": 1}


def test_the_younger_group_takes_nothing_from_the_older_one() -> None:
    of = topics()
    assert [of.allow("old", name, 1) for name in "abc"] == [1, 1, 1]
    assert of.allow("young", "x", 1) == 0
    assert [of.allow("old", name, 1) for name in "abc"] == [1, 1, 1]


def test_a_group_that_is_gone_frees_what_it_read() -> None:
    of = topics()
    for name in "abc":
        of.allow("old", name, 1)
    of.order(["young"])
    assert of.allow("young", "x", 1) == 1


def test_held_topics_keep_their_order_and_others_are_forgotten() -> None:
    of = topics(2)
    of.allow("old", "z", 1)
    of.allow("old", "gone", 1)
    of.hold("old", {"a": 1, "z": 2, "b": 3})
    assert of.older("young") == (3, 6)
    assert [of.allow("old", *each) for each in (("z", 2), ("a", 1), ("b", 3))] == [2, 1, 0]


@given(
    events=st.lists(
        st.tuples(
            st.sampled_from(["one", "two", "three"]), st.sampled_from("abcdef"), st.integers(0, 6)
        ),
        max_size=40,
    )
)
def test_once_all_is_measured_again_the_limit_holds_and_age_decides(
    events: list[tuple[str, str, int]],
) -> None:
    names = ("one", "two", "three")
    of = topics(4, 12, *names)
    wanted: dict[tuple[str, str], int] = {}
    for group, topic, count in events:
        of.allow(group, topic, count)
        wanted[group, topic] = count
    for group in names:  # those that older groups take away first
        for (owner, topic), count in wanted.items():
            if owner == group:
                of.allow(group, topic, count)
    used = of.older("no other")
    assert used.within(Usage(4, 12))
    alone = topics(4, 12, "one")
    for group, topic, count in events:
        if group == "one":
            alone.allow("one", topic, count)
    for (owner, topic), count in wanted.items():
        if owner == "one":
            alone.allow("one", topic, count)
    assert dict(of.refused("one")) == dict(alone.refused("one"))  # as if there were no younger one


def group(*held: TopicPartition, planned: tuple[TopicPartition, ...] = ()) -> Group:
    selection = Selection(topics=frozenset({"a", "b", "c"}))
    config = replace(CONFIG, topics=selection)
    found = add_partitions(Group(config=config, controller="c", term=1), held)
    return changed(found, last_plan=dict.fromkeys(planned, Slot(0)))


def measured(topic: str, count: int) -> Measurement:
    partitions = tuple(
        PartitionRate(
            partition=number,
            rate=BytesPerSecond(1.0),
            window_s=30,
            end=1,
            start=0,
            bytes_per_record=None,
        )
        for number in range(count)
    )
    return Measurement(
        topic=topic,
        at_ms=0,
        monitor="m",
        number=1,
        interval_s=1.0,
        count=count,
        partitions=partitions,
    )


@pytest.mark.parametrize("held", [True, False])
def test_a_new_leader_admits_first_what_the_group_reads_or_would_by_its_last_plan(
    held: bool,
) -> None:
    known = (TopicPartition("c", 0), TopicPartition("c", 1))
    of = group(*known[:1], planned=known) if held else group()
    share = TopicShare(topics(1), "old")
    assert share.limited(measured("a", 2), of).count == (0 if held else 2)
    assert share.limited(measured("c", 2), of).count == (2 if held else 0)


def test_a_topic_that_the_group_does_not_select_any_more_takes_no_place() -> None:
    share = TopicShare(topics(1), "old")
    of = group(TopicPartition("other", 0))
    assert share.limited(measured("a", 2), of) == measured("a", 2)


def test_the_machine_sees_only_the_partitions_that_may_be_read() -> None:
    share = TopicShare(topics(), "old")
    share.limited(measured("a", 6), group())
    share.limited(measured("b", 4), group())
    assert share.limited(measured("b", 5), group()) == replace(measured("b", 4), number=1)
