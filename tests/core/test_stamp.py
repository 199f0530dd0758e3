"""What commits say, and what is concluded from it."""

import pytest

from binwright.core.model import Slot, TopicPartition
from binwright.core.ports import Commit, Hint
from binwright.core.stamp import (
    WRITES_PER_EPOCH,
    Stamp,
    app_id,
    fence_version,
    landed_already,
    read_stamp,
    resolve,
    write_version,
)

P, Q = TopicPartition("orders", 0), TopicPartition("orders", 1)
GROUP, ME = "g", Slot(3)


def stamp(
    landed: dict[TopicPartition, int],
    sequence: int = 1,
    group: str = GROUP,
    topic_id: str | None = None,
) -> str:
    made = Stamp(group=group, slot=ME, epoch=9, sequence=sequence, landed=landed, topic_id=topic_id)
    return made.encode()


def test_a_stamp_reads_back() -> None:
    text = stamp({Q: 2, P: 1})
    assert text == stamp({P: 1, Q: 2})
    found = read_stamp(text, GROUP)
    assert found is not None
    assert found.landed == {P: 1, Q: 2}


@pytest.mark.parametrize("text", [None, "", "hello", "{}", stamp({P: 1}, group="other")])
def test_what_others_write_into_the_history_is_no_stamp(text: str | None) -> None:
    assert read_stamp(text, GROUP) is None


def test_versions_of_an_epoch_lie_between_its_claim_and_any_later_number() -> None:
    claim, last, later = write_version(9), write_version(9, WRITES_PER_EPOCH - 1), write_version(10)
    assert claim < write_version(9, 1) < last < later
    assert last <= fence_version(9) < later


def test_an_epoch_that_has_used_up_its_numbers_needs_a_new_process() -> None:
    with pytest.raises(ValueError, match="an epoch has 16777216 writes"):
        write_version(9, WRITES_PER_EPOCH)


def test_everything_of_a_slot_is_written_under_one_name() -> None:
    assert app_id(GROUP, ME) == "binwright/g/3"


def test_without_hint_all_stamps_count() -> None:
    commits = [Commit(3, stamp({P: 5})), Commit(2, None), Commit(1, stamp({P: 9, Q: 4}))]
    assert resolve(P, None, commits, GROUP) == 9
    assert resolve(Q, None, commits, GROUP) == 4


def test_a_hint_is_never_the_truth() -> None:
    """† hint_truth: a stamp later than the hint may know more."""
    assert resolve(P, Hint(5, 1, "t"), [Commit(2, stamp({P: 7}))], GROUP) == 7


def test_the_maximum_counts() -> None:
    """† stamp_over_hint: the last stamp that names a partition may be older than its hint."""
    assert resolve(P, Hint(8, 1, "t"), [Commit(2, stamp({P: 7}))], GROUP) == 8


def test_a_stamp_before_the_hint_says_nothing() -> None:
    assert resolve(P, Hint(5, 2, "t"), [Commit(2, stamp({P: 7}))], GROUP) == 5


def test_offsets_of_an_earlier_topic_of_the_same_name_say_nothing() -> None:
    commits = [
        Commit(5, stamp({P: 2}, topic_id="new")),
        Commit(4, stamp({P: 70, Q: 40}, topic_id="old")),
    ]
    assert resolve(P, None, commits, GROUP, "new") == 2
    assert resolve(Q, None, commits, GROUP, "new") is None
    assert resolve(Q, None, commits, GROUP, "old") == 40


@pytest.mark.parametrize(("then", "now"), [(None, "new"), ("old", None), (None, None)])
def test_where_a_broker_tells_no_ids_the_name_counts(then: str | None, now: str | None) -> None:
    assert resolve(P, None, [Commit(4, stamp({P: 7}, topic_id=then))], GROUP, now) == 7


def test_where_nobody_tells_nothing_is_known() -> None:
    assert resolve(P, None, [Commit(1, stamp({Q: 4}))], GROUP) is None


def test_the_own_stamp_tells_landed_before_from_fenced() -> None:
    """† skip_is_landed"""
    commits = [Commit(5, stamp({P: 2}, sequence=2)), Commit(4, None), Commit(3, stamp({P: 1}))]
    assert landed_already(commits, GROUP, ME, 9, 2) == 5
    assert landed_already(commits, GROUP, ME, 9, 3) is None
    assert landed_already(commits, GROUP, Slot(4), 9, 2) is None
