"""Which versions of a table landed which log."""

import pytest

from binwright.core.ports import Commit
from binwright.core.writer.stamp import Stamp
from binwright.lab.generations import Past, Split, past

CLAIM = 0


def commit(version: int, sequence: int = 1, **more: object) -> Commit:
    fields = {"topic_id": "old", "landing_id": "l", **more}
    stamp = Stamp(group="g", cluster="c", writer="w", epoch=1, sequence=sequence, **fields)  # type: ignore[arg-type]
    return Commit(version, stamp.encode())


def told(*commits: Commit, now: str | None = None) -> Past:
    """Commits in the order in which they were made, behind the table's creation."""
    return past([*commits[::-1], Commit(0, None)], "orders", now)


def test_one_topic_all_along_is_one_log() -> None:
    found = told(
        commit(1, CLAIM, topic_id=None),
        commit(2, committed={0: 0, 1: 5}),
        commit(3, committed={0: 40}),
        now="old",
    )
    assert found == Past(splits=(), begins={0: 0, 1: 5}, ends={0: 40, 1: 5})


def test_a_topic_made_anew_begins_with_its_first_stamp() -> None:
    found = told(
        commit(2, committed={0: 40}),
        commit(5, CLAIM, topic_id=None),
        commit(6, topic_id="new", committed={0: 0}),
        commit(7, topic_id="new", committed={0: 3}),
        now="new",
    )
    assert found == Past(splits=(Split(5),), begins={0: 0}, ends={0: 3})


def test_a_topic_made_anew_of_which_nothing_has_landed_owns_no_row() -> None:
    found = told(commit(2, committed={0: 40}), Commit(3, None), now="new")
    assert found == Past(splits=(Split(3),), begins={}, ends={})


def test_a_topic_may_be_made_anew_more_than_once() -> None:
    names = ("old", "newer", "newest")
    found = told(*(commit(n, topic_id=name) for n, name in enumerate(names, 1)), now="newest")
    assert found.splits == (Split(1), Split(2))


def test_a_cut_splits_the_rows_of_its_partitions() -> None:
    found = told(
        commit(2, committed={0: 40, 1: 9}),
        commit(3, committed={0: 38}, cuts={0: 100}),
        commit(4, committed={0: 39}, cuts={0: 100}),
        commit(5, committed={1: 7}, cuts={0: 100, 1: 130}),
        now="old",
    )
    assert found.splits == (Split(2, frozenset({0})), Split(4, frozenset({1})))
    assert found.ends == {0: 40, 1: 9}


def test_a_landing_topic_made_anew_numbers_cuts_anew() -> None:
    found = told(
        commit(2, cuts={0: 100}),
        commit(3, landing_id="m"),
        commit(4, landing_id="m", cuts={0: 100}),
        now="old",
    )
    assert found.splits == (Split(1, frozenset({0})), Split(3, frozenset({0})))


def test_cuts_from_before_what_is_known_of_the_history_split_nothing() -> None:
    known = [
        commit(9, cuts={0: 100, 1: 130}, committed={1: 3}),
        commit(8, cuts={0: 100}, committed={0: 40}),
    ]
    assert past(known, "orders", "old").splits == (Split(8, frozenset({1})),)


@pytest.mark.parametrize("text", [None, "", "{", "[]", '{"kind": "another/1"}', '{"group": 1}'])
def test_what_others_write_into_their_commits_says_nothing(text: str | None) -> None:
    found = told(commit(1, committed={0: 1}), Commit(2, text), now="old")
    assert found == Past(begins={0: 1}, ends={0: 1})


def test_brokers_that_tell_no_ids_split_nothing() -> None:
    found = told(commit(1, topic_id=None), commit(2, topic_id=None), now=None)
    assert found.splits == ()


def test_consumers_of_version_0_1_that_notice_late_do_not_bring_an_old_topic_back() -> None:
    stamp = (
        '{"kind":"binwright-stamp/1","group":"g","slot":%d,"topic_id":"%s","landed":{"orders-0":7}}'
    )
    ids = ("old", "new", "old", "new")
    found = told(*(Commit(n, stamp % (n, name)) for n, name in enumerate(ids, 1)), now="new")
    assert found.splits == (Split(1),)
