"""Which versions of a table landed which log."""

from dataclasses import replace

import pytest

from binwright.lake.log_generations import GenerationSplit, LogHistory, log_history
from binwright.protocol.model import TopicPartition
from binwright.tables.ports import Commit
from binwright.tables.stamp import Stamp

CLAIM = 0
TOPIC = "orders"


def commit(version: int, sequence: int = 1, **more: object) -> Commit:
    fields = {"landing_id": "l", **more}
    fields["topic_ids"] = {TOPIC: fields.pop("topic_id", "old")}
    for name in ("committed", "cuts"):
        offsets: dict[int, int] = fields.get(name, {})  # type: ignore[assignment]
        fields[name] = {TopicPartition(TOPIC, p): offset for p, offset in offsets.items()}
    stamp = Stamp(group="g", cluster="c", writer="w", sequence=sequence, **fields)  # type: ignore[arg-type]
    return Commit(version, stamp.encode())


def history_of(*commits: Commit, now: str | None = None) -> LogHistory:
    """Return the history of these commits, oldest first, after the table's creation."""
    return log_history([*commits[::-1], Commit(0, None)], TOPIC, now, TOPIC)


def test_commits_of_one_topic_are_one_log() -> None:
    found = history_of(
        commit(1, CLAIM, topic_id=None),
        commit(2, committed={0: 0, 1: 5}),
        commit(3, committed={0: 40}),
        now="old",
    )
    assert found == LogHistory(splits=(), begins={0: 0, 1: 5}, ends={0: 40, 1: 5})


def test_a_topic_created_again_begins_with_its_first_stamp() -> None:
    found = history_of(
        commit(2, committed={0: 40}),
        commit(5, CLAIM, topic_id=None),
        commit(6, topic_id="new", committed={0: 0}),
        commit(7, topic_id="new", committed={0: 3}),
        now="new",
    )
    assert found == LogHistory(splits=(GenerationSplit(5),), begins={0: 0}, ends={0: 3})


def test_a_topic_created_again_without_a_commit_owns_no_row() -> None:
    found = history_of(commit(2, committed={0: 40}), Commit(3, None), now="new")
    assert found == LogHistory(splits=(GenerationSplit(3),), begins={}, ends={})


def test_a_topic_may_be_created_again_more_than_once() -> None:
    names = ("old", "newer", "newest")
    found = history_of(*(commit(n, topic_id=name) for n, name in enumerate(names, 1)), now="newest")
    assert found.splits == (GenerationSplit(1), GenerationSplit(2))


def test_a_truncation_splits_the_rows_of_its_partitions() -> None:
    found = history_of(
        commit(2, committed={0: 40, 1: 9}),
        commit(3, committed={0: 38}, cuts={0: 100}),
        commit(4, committed={0: 39}, cuts={0: 100}),
        commit(5, committed={1: 7}, cuts={0: 100, 1: 130}),
        now="old",
    )
    assert found.splits == (GenerationSplit(2, frozenset({0})), GenerationSplit(4, frozenset({1})))
    assert found.ends == {0: 40, 1: 9}


def test_a_new_landing_topic_numbers_truncations_from_zero() -> None:
    found = history_of(
        commit(2, cuts={0: 100}),
        commit(3, landing_id="m"),
        commit(4, landing_id="m", cuts={0: 100}),
        now="old",
    )
    assert found.splits == (GenerationSplit(1, frozenset({0})), GenerationSplit(3, frozenset({0})))


def test_truncations_before_the_known_history_split_nothing() -> None:
    known = [
        commit(9, cuts={0: 100, 1: 130}, committed={1: 3}),
        commit(8, cuts={0: 100}, committed={0: 40}),
    ]
    assert log_history(known, TOPIC, "old", TOPIC).splits == (GenerationSplit(8, frozenset({1})),)


@pytest.mark.parametrize("text", [None, "", "{", "[]", '{"kind": "another/1"}', '{"group": 1}'])
def test_metadata_of_other_writers_is_ignored(text: str | None) -> None:
    found = history_of(commit(1, committed={0: 1}), Commit(2, text), now="old")
    assert found == LogHistory(begins={0: 1}, ends={0: 1})


def test_without_topic_ids_nothing_is_split() -> None:
    found = history_of(commit(1, topic_id=None), commit(2, topic_id=None), now=None)
    assert found.splits == ()


def test_a_topic_that_was_replaced_does_not_return() -> None:
    ids = ("old", "new", "old", "new")
    found = history_of(*(commit(n, topic_id=name) for n, name in enumerate(ids, 1)), now="new")
    assert found.splits == (GenerationSplit(1),)


def test_stamps_that_do_not_name_a_topic_have_nothing_of_it() -> None:
    other = {TopicPartition("clicks", 0): 7}
    names = {"several": True, "topic_ids": {"clicks": "c", TOPIC: "old"}}
    both = Stamp(group="g", cluster="c", writer="w", sequence=1, committed=other, **names)  # type: ignore[arg-type]
    alone = replace(both, topic_ids={"clicks": "c"})
    commits = [Commit(3, alone.encode()), Commit(2, both.encode()), commit(1, committed={0: 4})]
    assert log_history(commits, TOPIC, "old", TOPIC).ends == {0: 4}
    assert log_history(commits, "clicks", "c", TOPIC).ends == {0: 7}
