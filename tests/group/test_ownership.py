"""What an acknowledgement changes, and the index of what each slot owns."""

from hypothesis import given
from hypothesis import strategies as some
from tests.builders import NOW, S0, S1, S2, C, P, Q, owned, released, starting, stopping

from binwright.group.ownership import (
    Ownership,
    PartitionOwnership,
    Released,
    Starting,
    State,
    Stopping,
    acknowledge_start,
    acknowledge_stop,
    unacknowledged,
)
from binwright.protocol.model import Slot, TopicPartition

SLOTS = some.sampled_from([S0, S1, S2])
STATES: some.SearchStrategy[State] = some.one_of(
    some.builds(released, some.none() | some.integers(0, 9)),
    some.builds(owned, SLOTS, some.just(1)),
    some.builds(stopping, SLOTS, some.just(1)),
    some.builds(starting, SLOTS, some.just(1)),
)
PARTITIONS = some.builds(TopicPartition, some.sampled_from("ab"), some.integers(0, 4))
CHANGES = some.dictionaries(some.sampled_from("abcd"), STATES)


@given(CHANGES, some.lists(CHANGES), some.sets(some.sampled_from("abcd")))
def test_the_index_by_slot_always_agrees_with_the_states(
    initial: dict[str, State], later: list[dict[str, State]], removed: set[str]
) -> None:
    known = Ownership(initial)
    for changes in later:
        known = known.changed(changes)
    known = known.without(removed & set(known))
    rebuilt = Ownership(dict(known))
    assert known == rebuilt
    assert known.slots == rebuilt.slots
    assert all(known.owned_by(slot) == rebuilt.owned_by(slot) for slot in (S0, S1, S2))
    assert set(known.released) == {key for key, at in known.items() if isinstance(at, Released)}
    pending = {key for key, at in known.items() if isinstance(at, Stopping | Starting)}
    assert set(known.pending) == pending


@given(some.lists(some.dictionaries(PARTITIONS, STATES)), some.sets(PARTITIONS))
def test_the_topics_are_always_those_of_the_partitions(
    changes: list[dict[TopicPartition, State]], removed: set[TopicPartition]
) -> None:
    known = PartitionOwnership()
    for each in changes:
        known = known.changed(each)
        rebuilt = PartitionOwnership(dict(known))
        assert dict(known.highest()) == dict(rebuilt.highest())
    known = known.without(removed & set(known))
    assert set(known.topics) == {p.topic for p in known}
    assert all(TopicPartition(*each) in known for each in known.highest())


def test_a_mapping_that_changes_leaves_the_old_one_as_it_was() -> None:
    before = Ownership({P: owned(S0, 1)})
    after = before.changed({P: owned(S1, 2), Q: released(4)})
    assert before == {P: owned(S0, 1)}
    assert before.owned_by(S0) == after.owned_by(S1) == {P}
    assert not after.owned_by(S0)
    assert after.slots == {S1}
    assert len(after) == 2
    assert repr(before) == f"Ownership({ {P: owned(S0, 1)} })"


def test_an_empty_change_returns_the_same_mapping() -> None:
    known = Ownership({P: owned(S0, 1)})
    assert known.changed({}) is known
    assert known.without([]) is known


def test_an_acknowledged_stop_releases_at_the_offset_of_the_reply() -> None:
    known = Ownership({P: stopping(S0, 1), Q: stopping(S0, 1), C: stopping(S0, 1)})
    assert acknowledge_stop(known, S0, 7, {P: 9, Q: None}) == {P: released(9), Q: released()}


def test_only_keys_of_the_pending_stop_are_released() -> None:
    known = Ownership({P: stopping(S0, 1), Q: owned(S0, 1)})
    assert acknowledge_stop(known, S0, 8, {P: 9}) == {}
    assert acknowledge_stop(known, S1, 7, {P: 9}) == {}
    assert acknowledge_stop(known, S0, 7, {Q: 9, C: 9}) == {}


def test_an_acknowledged_start_makes_an_owner() -> None:
    known = Ownership({"orders": starting(S0, 1), "clicks": starting(S0, 1)})
    assert acknowledge_start(known, S0, 7, ["orders"]) == {"orders": owned(S0, 1)}


def test_only_keys_of_the_pending_start_get_an_owner() -> None:
    known = Ownership({P: starting(S0, 1), Q: released()})
    assert acknowledge_start(known, S0, 8, [P]) == {}
    assert acknowledge_start(known, S1, 7, [P]) == {}
    assert acknowledge_start(known, S0, 7, [Q, C]) == {}


def test_unacknowledged_commands_are_found_by_slot_and_revision() -> None:
    late, fresh = starting(S1, 2, 5), stopping(Slot(2), 3)
    known = Ownership({P: stopping(S0, 1), Q: late, C: owned(S0, 1)})
    assert unacknowledged(known, NOW) == {(S0, 7): {P: stopping(S0, 1)}, (S1, 7): {Q: late}}
    assert unacknowledged(Ownership({P: fresh}), NOW - 1) == {}
