"""Who has what: what an order's acknowledgement changes, and what each slot has."""

from hypothesis import given
from hypothesis import strategies as some

from binwright.core.model import Slot, TopicPartition
from binwright.core.ownership import (
    Ownership,
    Partitions,
    Released,
    Starting,
    State,
    Stopping,
    started,
    stopped,
    unanswered,
)

from .builders import NOW, S0, S1, S2, C, P, Q, free, owned, starting, stopping

SLOTS = some.sampled_from([S0, S1, S2])
STATES: some.SearchStrategy[State] = some.one_of(
    some.builds(free, some.none() | some.integers(0, 9)),
    some.builds(owned, SLOTS, some.just(1)),
    some.builds(stopping, SLOTS, some.just(1)),
    some.builds(starting, SLOTS, some.just(1)),
)
PARTITIONS = some.builds(TopicPartition, some.sampled_from("ab"), some.integers(0, 4))
CHANGES = some.dictionaries(some.sampled_from("abcd"), STATES)


@given(CHANGES, some.lists(CHANGES), some.sets(some.sampled_from("abcd")))
def test_what_a_slot_has_is_always_what_the_states_say(
    first: dict[str, State], later: list[dict[str, State]], away: set[str]
) -> None:
    known = Ownership(first)
    for changes in later:
        known = known.changed(changes)
    known = known.without(away & set(known))
    again = Ownership(dict(known))
    assert known == again
    assert known.slots == again.slots
    assert all(known.of(slot) == again.of(slot) for slot in (S0, S1, S2))
    assert set(known.free) == {key for key, at in known.items() if isinstance(at, Released)}
    orders = {key for key, at in known.items() if isinstance(at, Stopping | Starting)}
    assert set(known.ordered) == orders


@given(some.lists(some.dictionaries(PARTITIONS, STATES)), some.sets(PARTITIONS))
def test_the_topics_are_always_those_of_the_partitions(
    changes: list[dict[TopicPartition, State]], away: set[TopicPartition]
) -> None:
    known = Partitions()
    for each in changes:
        known = known.changed(each)
        again = Partitions(dict(known))
        assert dict(known.highest()) == dict(again.highest())
    known = known.without(away & set(known))
    assert set(known.topics) == {p.topic for p in known}
    assert all(TopicPartition(*each) in known for each in known.highest())


def test_a_mapping_that_changes_leaves_the_old_one_as_it_was() -> None:
    before = Ownership({P: owned(S0, 1)})
    after = before.changed({P: owned(S1, 2), Q: free(4)})
    assert before == {P: owned(S0, 1)}
    assert before.of(S0) == after.of(S1) == {P}
    assert not after.of(S0)
    assert after.slots == {S1}
    assert len(after) == 2
    assert repr(before) == f"Ownership({ {P: owned(S0, 1)} })"


def test_nothing_new_costs_nothing() -> None:
    known = Ownership({P: owned(S0, 1)})
    assert known.changed({}) is known
    assert known.without([]) is known


def test_a_stop_that_is_answered_releases_at_the_offset_of_the_answer() -> None:
    known = Ownership({P: stopping(S0, 1), Q: stopping(S0, 1), C: stopping(S0, 1)})
    assert stopped(known, S0, 7, {P: 9, Q: None}) == {P: free(9), Q: free()}


def test_only_what_the_stop_that_is_out_asked_for_is_released() -> None:
    known = Ownership({P: stopping(S0, 1), Q: owned(S0, 1)})
    assert stopped(known, S0, 8, {P: 9}) == {}
    assert stopped(known, S1, 7, {P: 9}) == {}
    assert stopped(known, S0, 7, {Q: 9, C: 9}) == {}


def test_a_start_that_is_answered_is_owned() -> None:
    known = Ownership({"orders": starting(S0, 1), "clicks": starting(S0, 1)})
    assert started(known, S0, 7, ["orders"]) == {"orders": owned(S0, 1)}


def test_only_what_the_start_that_is_out_asked_for_is_owned() -> None:
    known = Ownership({P: starting(S0, 1), Q: free()})
    assert started(known, S0, 8, [P]) == {}
    assert started(known, S1, 7, [P]) == {}
    assert started(known, S0, 7, [Q, C]) == {}


def test_orders_without_an_answer_are_found_by_slot_and_revision() -> None:
    late, fresh = starting(S1, 2, 5), stopping(Slot(2), 3)
    known = Ownership({P: stopping(S0, 1), Q: late, C: owned(S0, 1)})
    assert unanswered(known, NOW) == {(S0, 7): {P: stopping(S0, 1)}, (S1, 7): {Q: late}}
    assert unanswered(Ownership({P: fresh}), NOW - 1) == {}
