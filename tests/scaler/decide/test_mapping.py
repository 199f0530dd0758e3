"""Which member of a group gets which bin of a plan."""

from dataclasses import replace
from itertools import permutations
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as some
from tests.scaler.decide.cases import CASES, by_rule, handed_over

from binwright.protocol.model import TopicPartition
from binwright.scaler.decide.mapping import best_pairs, target
from binwright.scaler.decide.members import GroupMember


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_the_rule_gives_what_the_case_has(case: dict[str, Any]) -> None:
    assert by_rule(case) == {"target": case["target"], "assigned": case["assigned"]}


PARTITIONS = [TopicPartition("a", number) for number in range(12)]


@some.composite
def groups(draw: some.DrawFn) -> tuple[list[dict[TopicPartition, int]], dict[str, GroupMember]]:
    """Draw a plan with one bin for each member or another number, and who owns what."""
    names = [f"m{n}" for n in range(draw(some.integers(1, 5)))]
    owner = {p: draw(some.sampled_from([None, *names])) for p in PARTITIONS}
    members = {
        name: GroupMember(
            topics=frozenset("a"),
            owned=frozenset(p for p, one in owner.items() if one == name),
            generation=1,
        )
        for name in names
    }
    count = draw(some.integers(1, 6))
    bins: list[dict[TopicPartition, int]] = [{} for _ in range(count)]
    for partition in PARTITIONS:
        bins[draw(some.integers(0, count - 1))][partition] = draw(some.integers(0, 900))
    return bins, members


@given(groups())
def test_every_partition_gets_one_reader(
    group: tuple[list[dict[TopicPartition, int]], dict[str, GroupMember]],
) -> None:
    bins, members = group
    assert set(target(bins, members, PARTITIONS)) == set(PARTITIONS)


def following(
    bins: list[dict[TopicPartition, int]], members: dict[str, GroupMember]
) -> tuple[dict[TopicPartition, str], dict[str, GroupMember]]:
    """Return what a rebalance assigns, and the members after it."""
    assigned = handed_over(target(bins, members, PARTITIONS), members)
    return assigned, {
        name: replace(member, owned=frozenset(p for p, one in assigned.items() if one == name))
        for name, member in members.items()
    }


@given(groups())
def test_a_second_rebalance_assigns_what_the_first_one_withheld(
    group: tuple[list[dict[TopicPartition, int]], dict[str, GroupMember]],
) -> None:
    """Unless the plan has more bins than there are members, which ends as soon as they come."""
    bins, members = group
    assume(len(bins) <= len(members))
    first, after = following(bins, members)
    second, _ = following(bins, after)
    assert set(second) == set(PARTITIONS)
    assert all(second[p] == name for p, name in first.items())


@given(groups())
def test_rebalances_of_one_plan_come_to_an_end(
    group: tuple[list[dict[TopicPartition, int]], dict[str, GroupMember]],
) -> None:
    bins, members = group
    for _ in range(len(PARTITIONS)):
        _, members = following(bins, members)
    assigned, after = following(bins, members)
    assert after == members
    assert set(assigned) == set(PARTITIONS)


@given(groups())
def test_no_member_is_to_read_what_another_one_still_reads(
    group: tuple[list[dict[TopicPartition, int]], dict[str, GroupMember]],
) -> None:
    bins, members = group
    assigned = handed_over(target(bins, members, PARTITIONS), members)
    assert all(
        partition not in member.owned
        for partition, name in assigned.items()
        for other, member in members.items()
        if other != name
    )


@given(groups(), some.data())
def test_when_members_leave_the_others_give_nothing_up(
    group: tuple[list[dict[TopicPartition, int]], dict[str, GroupMember]], data: some.DataObject
) -> None:
    """As with Kafka's cooperative assignor; only a new plan is worth further moves."""
    bins, members = group
    assume(len([one for one in bins if one]) >= len(members))
    for _ in PARTITIONS:
        _, members = following(bins, members)
    while len(members) > 1:
        gone = data.draw(some.sampled_from(sorted(members)))
        members = {name: one for name, one in members.items() if name != gone}
        before = {name: one.owned for name, one in members.items()}
        assigned, members = following(bins, members)
        assert set(assigned) == set(PARTITIONS)
        assert all(members[name].owned >= owned for name, owned in before.items())


TABLES = some.tuples(some.integers(1, 5), some.integers(1, 5)).flatmap(
    lambda size: some.lists(
        some.lists(some.integers(0, 9), min_size=size[1], max_size=size[1]),
        min_size=size[0],
        max_size=size[0],
    )
)


def largest_sum(kept: list[list[int]]) -> int:
    rows, columns = len(kept), len(kept[0])
    if rows > columns:
        return largest_sum([list(column) for column in zip(*kept, strict=True)])
    return max(
        sum(kept[row][column] for row, column in enumerate(chosen))
        for chosen in permutations(range(columns), rows)
    )


@given(TABLES)
def test_no_other_pairs_keep_more(kept: list[list[int]]) -> None:
    pairs = best_pairs(kept)
    assert sum(kept[row][column] for row, column in pairs.items()) == largest_sum(kept)


@given(TABLES)
def test_the_shorter_side_is_paired_completely(kept: list[list[int]]) -> None:
    pairs = best_pairs(kept)
    assert len(pairs) == len(set(pairs.values())) == min(len(kept), len(kept[0]))


def test_without_rows_there_are_no_pairs() -> None:
    assert best_pairs([]) == {}


def test_equal_rows_take_the_columns_in_order() -> None:
    assert best_pairs([[0, 0, 0], [0, 0, 0]]) == {0: 0, 1: 1}


def test_a_row_gives_way_where_another_one_keeps_more() -> None:
    assert best_pairs([[3, 2], [3, 0]]) == {0: 1, 1: 0}
