"""What the next writer resolves from the stamps of commits."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from binwright.consumer.decide.land.commits import resolve
from binwright.protocol.model import TopicPartition
from binwright.tables.operations import Operation

from .scene import ID, TABLE, TOPIC, at, claim, history, part, stamp


def test_stamps_back_to_the_last_full_one_give_what_is_committed() -> None:
    found = resolve(
        history(
            stamp({0: 1, 1: 1}, sequence=1, full=True),
            stamp({0: 5, 1: 5, 2: 5}, sequence=2, full=True),
            stamp({1: 7}, sequence=3),
            None,
            stamp({0: 6, 1: 9}, sequence=4, needed_from=8, cuts={0: 3}),
        ),
        TABLE,
        {TOPIC: ID},
    )
    assert found.committed == at({0: 6, 1: 9, 2: 5})
    assert (found.needed_from, found.landing_id, found.cuts) == (8, "landing-1", at({0: 3}))
    assert (found.whole, bool(found.written)) == (True, True)


def test_the_files_of_cuts_are_those_of_the_newest_stamp_that_has_some() -> None:
    files = {part(0): ("a", "b")}
    found = resolve(
        history(
            replace(stamp({0: 1, 1: 1}, full=True), cut_files={part(0): ("a",), part(1): ("c",)}),
            replace(stamp({0: 2}, sequence=2), cut_files=files),
        ),
        TABLE,
        {TOPIC: ID},
    )
    assert found.cut_files == {**files, part(1): ("c",)}
    recreated = resolve(
        history(replace(stamp({0: 1}, full=True), cut_files=files)), TABLE, {TOPIC: "id-2"}
    )
    assert recreated.cut_files == {}


@pytest.mark.parametrize(("topic_id", "left"), [(ID, {part(0): (0, 9)}), ("id-2", {})])
def test_a_recreated_topic_is_back_filled_no_further(
    topic_id: str, left: dict[TopicPartition, tuple[int, int]]
) -> None:
    filling = Operation(id="1", work="backfill", by="ann", state="running")
    newest = replace(stamp({0: 9}, full=True), operation=filling.with_ranges({part(0): (0, 9)}))
    found = resolve(history(newest), TABLE, {TOPIC: topic_id}).operation
    assert found is not None
    assert (found.ranges, found.state) == (left, "running" if left else "done")


def test_the_newest_offset_counts_even_if_it_is_lower() -> None:
    """After a truncation a log continues below the committed offset."""
    found = resolve(
        history(stamp({0: 9}, full=True), stamp({0: 7}, sequence=2)), TABLE, {TOPIC: ID}
    )
    assert found.committed == at({0: 7})


def test_a_claim_has_no_offsets() -> None:
    found = resolve(history(None, claim()), TABLE, {TOPIC: ID})
    assert found.committed == at({})
    assert (found.whole, bool(found.written)) == (False, False)


def test_a_stamp_of_a_later_version_ends_the_search() -> None:
    """It may have offsets that count: those of older stamps alone would land rows twice."""
    later = stamp({0: 5}, sequence=2).encode().replace("stamp/3", "stamp/5")
    found = resolve(history(stamp({0: 1}, full=True), later, None), TABLE, {TOPIC: ID})
    assert (found.later, found.whole, found.committed) == ("binwright-stamp/5", False, at({}))
    behind = resolve(history(later, stamp({0: 7}, full=True)), TABLE, {TOPIC: ID})
    assert (behind.later, behind.committed) == ("", at({0: 7}))


def test_a_history_of_partial_stamps_is_not_whole() -> None:
    assert not resolve(history(stamp({0: 9})), TABLE, {TOPIC: ID}).whole


def test_stamps_of_another_topic_end_the_search() -> None:
    found = resolve(
        history(stamp({0: 90}, topic_id="id-0", full=True), stamp({0: 2}, needed_from=5)),
        TABLE,
        {TOPIC: ID},
    )
    assert (found.committed, found.whole, found.needed_from) == (at({0: 2}), True, 5)


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(1, 5)), max_size=30),
    st.integers(2, 6),
    st.lists(st.integers(0, 30), max_size=4),
)
def test_any_prefix_of_a_history_resolves_to_what_was_committed(
    moves: list[tuple[int, int]], every: int, claims: list[int]
) -> None:
    """A stamp is full after a claim, and after a number of partial ones."""
    committed: dict[int, int] = dict.fromkeys(range(4), 0)
    stamps, since = [claim()], every
    for number, (partition, rows) in enumerate(moves):
        if number in claims:
            since = every
            stamps.append(claim())
        committed = {**committed, partition: committed[partition] + rows}
        full = since >= every
        changes = committed if full else {partition: committed[partition]}
        stamps.append(stamp(changes, sequence=number + 1, full=full))
        since = 1 if full else since + 1
        found = resolve(history(None, *stamps), TABLE, {TOPIC: ID})
        assert (found.committed, found.whole) == (at(committed), True)
