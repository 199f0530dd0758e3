"""How announced ranges join to what is committed."""

from dataclasses import replace

import pytest

from binwright.consumer.decide.land.chain import (
    MOST_CUT_FILES,
    Announcement,
    Chain,
    _BatchBuilder,
    add_announcements,
    begin_new_topic,
    contradiction,
    gaps,
    landed,
    next_batch,
    open_partitions,
    recreated_topics,
    same_topic,
    unknown_partitions,
    without_files,
    without_old_topic,
)
from binwright.protocol.landing import OffsetRange, Staged
from binwright.protocol.model import TopicPartition
from binwright.tables.ports import Ranges

from .scene import ID, TOPIC, at, part, staged

LARGE = 1_000


def chain_of(*files: Staged, committed: dict[int, int] | None = None) -> Chain:
    """Return a chain with these announcements, one second apart."""
    chain = Chain(topic_ids={TOPIC: ID}, committed=at({0: 0} if committed is None else committed))
    for offset, file in enumerate(files):
        chain, _ = add_announcements(chain, [Announcement(offset, file, seen_at=offset)])
    return chain


def taken(chain: Chain, max_bytes: int = LARGE, max_files: int = LARGE) -> list[tuple[str, object]]:
    found = next_batch(chain, max_bytes, max_files)
    return [(s.file, dict(s.ranges)) for s in found[0].slices] if found else []


def after(chain: Chain, max_bytes: int = LARGE) -> tuple[Chain, tuple[str, ...]]:
    found = next_batch(chain, max_bytes)
    assert found is not None
    chain, finished = landed(chain, found[1])
    return chain, names(finished)


def names(announced: tuple[Announcement, ...]) -> tuple[str, ...]:
    return tuple(a.staged.file for a in announced)


# --- which ranges join ---------------------------------------------------------------------------


def test_consecutive_ranges_land_together() -> None:
    chain = chain_of(staged("a", {0: (0, 3)}), staged("b", {0: (3, 5)}))
    found = next_batch(chain, LARGE)
    assert found is not None
    batch, then = found
    assert taken(chain) == [("a", {0: (0, 3)}), ("b", {0: (3, 5)})]
    assert batch.files == ("a", "b")
    assert (batch.ends, batch.rows, batch.bytes) == (at({0: 5}), 5, 20)
    assert then.committed == at({0: 5})


def test_a_range_that_begins_later_waits() -> None:
    assert next_batch(chain_of(staged("b", {0: (3, 5)})), LARGE) is None


def test_offsets_that_have_landed_are_cut_off() -> None:
    chain = chain_of(staged("a", {0: (0, 5)}), committed={0: 3})
    found = next_batch(chain, LARGE)
    assert found is not None
    assert taken(chain) == [("a", {0: (3, 5)})]
    assert not found[0].slices[0].whole


def test_a_file_that_is_taken_whole_needs_no_filter() -> None:
    found = next_batch(chain_of(staged("a", {0: (0, 5)})), LARGE)
    assert found is not None
    assert found[0].slices[0].whole


def test_announcements_out_of_order_join() -> None:
    chain = chain_of(staged("b", {0: (3, 5)}), staged("a", {0: (0, 3)}))
    assert taken(chain) == [("b", {0: (3, 5)}), ("a", {0: (0, 3)})]


def test_only_the_partitions_of_a_file_that_join_are_taken() -> None:
    chain = chain_of(staged("a", {0: (0, 2), 1: (4, 6)}), committed={0: 0, 1: 0})
    assert taken(chain) == [("a", {0: (0, 2)})]
    chain, finished = after(chain)
    assert finished == ()
    chain, _ = add_announcements(chain, [Announcement(1, staged("b", {1: (0, 4)}), 1)])
    assert taken(chain) == [("a", {1: (4, 6)}), ("b", {1: (0, 4)})]
    assert after(chain)[1] == ("a", "b")


def test_a_file_joins_in_parts_within_one_batch() -> None:
    chain = chain_of(
        staged("a", {0: (0, 2), 1: (4, 6)}), staged("b", {1: (0, 4)}), committed={0: 0, 1: 0}
    )
    assert taken(chain) == [("a", {0: (0, 2), 1: (4, 6)}), ("b", {1: (0, 4)})]


def test_a_partition_whose_begin_is_unknown_waits() -> None:
    chain = chain_of(staged("a", {0: (0, 2), 1: (4, 6)}))
    assert taken(chain) == [("a", {0: (0, 2)})]
    assert unknown_partitions(chain) == {part(1)}
    opened = open_partitions(chain, at({0: 9, 1: 4}))
    assert opened.committed == at({0: 0, 1: 4})


def test_the_bytes_of_a_batch_are_limited() -> None:
    chain = chain_of(staged("a", {0: (0, 1)}, size=60), staged("b", {0: (1, 2)}, size=60))
    assert taken(chain, max_bytes=100) == [("a", {0: (0, 1)})]


def test_a_single_file_is_taken_whatever_its_size() -> None:
    assert taken(chain_of(staged("a", {0: (0, 1)}, size=60)), max_bytes=1) == [("a", {0: (0, 1)})]


def test_the_files_of_a_batch_are_limited() -> None:
    chain = chain_of(*(staged(f"f{n}", {0: (n, n + 1)}) for n in range(5)))
    assert len(taken(chain, max_files=3)) == 3


def test_nothing_is_taken_after_a_file_that_does_not_fit() -> None:
    """A smaller one after it may follow the log's cut that is in it, not what was before."""
    chain = chain_of(
        staged("a", {1: (0, 1)}, size=60),
        staged("cut", {0: (2, 4)}, cut=(0,), size=60),
        staged("b", {0: (4, 6)}, size=1),
        committed={0: 5, 1: 0},
    )
    assert taken(chain, max_bytes=100) == [("a", {1: (0, 1)})]
    chain, _ = after(chain, max_bytes=100)
    assert taken(chain, max_bytes=100) == [("cut", {0: (2, 4)}), ("b", {0: (4, 6)})]


# --- which files are finished --------------------------------------------------------------------


def test_a_file_is_finished_when_all_of_it_is_committed() -> None:
    chain, finished = after(chain_of(staged("a", {0: (0, 3)}), staged("b", {0: (4, 5)})))
    assert finished == ("a",)
    assert [a.staged.file for a in chain.pending] == ["b"]
    assert (chain.needed_from, chain.next_announcement) == (1, 2)


def test_an_announcement_of_committed_offsets_is_finished_at_once() -> None:
    chain = Chain(topic_ids={TOPIC: ID}, committed=at({0: 5}))
    chain, (finished, _) = add_announcements(chain, [Announcement(0, staged("a", {0: (0, 5)}), 0)])
    assert names(finished) == ("a",)
    assert (chain.pending, chain.needed_from) == ((), 1)


def test_an_announcement_that_was_read_before_is_ignored() -> None:
    chain = chain_of(staged("a", {0: (0, 3)}))
    again, (finished, _) = add_announcements(chain, [Announcement(0, staged("a", {0: (0, 3)}), 5)])
    assert (again, finished) == (chain, ())


def test_announcements_during_a_commit_stay_pending() -> None:
    chain = chain_of(staged("a", {0: (0, 3)}))
    found = next_batch(chain, LARGE)
    assert found is not None
    chain, _ = add_announcements(chain, [Announcement(1, staged("b", {0: (3, 4)}), 1)])
    chain, finished = landed(chain, found[1])
    assert names(finished) == ("a",)
    assert taken(chain) == [("b", {0: (3, 4)})]


def test_the_oldest_row_is_that_of_the_oldest_fetch() -> None:
    chain = chain_of(staged("a", {0: (0, 3)}, age_s=1), staged("b", {0: (4, 5)}, age_s=7, size=5))
    assert (chain.oldest_at, chain.pending_bytes) == (-6, 15)
    assert Chain().oldest_at is None


def test_files_of_a_commit_have_an_oldest_row() -> None:
    chain = chain_of(staged("a", {0: (0, 2)}, age_s=1.0), staged("b", {0: (2, 4)}, age_s=5.0))
    assert (chain.oldest_of({"a", "b"}), chain.oldest_of({"a"})) == (-4.0, -1.0)
    assert chain.oldest_of({"landed before"}) is None


# --- gaps ----------------------------------------------------------------------------------------


def test_a_range_that_waits_too_long_reveals_a_gap() -> None:
    chain = chain_of(staged("b", {0: (3, 5)}), staged("c", {0: (7, 9)}))
    assert gaps(chain, 4.9, patience_s=5) == {}
    assert gaps(chain, 5.0, patience_s=5) == at({0: 0})


def test_a_partition_with_a_range_that_joins_has_no_gap() -> None:
    chain = chain_of(staged("c", {0: (7, 9)}), staged("a", {0: (0, 3)}))
    assert gaps(chain, 99, patience_s=5) == {}


def test_an_unknown_partition_has_no_gap() -> None:
    assert gaps(chain_of(staged("a", {1: (7, 9)})), 99, patience_s=5) == {}


def test_a_lost_file_is_read_again_from_the_committed_offset() -> None:
    chain = chain_of(staged("a", {0: (0, 3), 1: (0, 2)}), staged("b", {0: (3, 5)}))
    chain, again = without_files(chain, {"a"})
    assert again == at({0: 0})
    assert [a.staged.file for a in chain.pending] == ["b"]


# --- a truncated log -----------------------------------------------------------------------------


def test_a_truncated_log_continues_at_its_end() -> None:
    chain = chain_of(staged("cut", {0: (7, 8)}, cut=(0,)), committed={0: 9})
    assert taken(chain) == [("cut", {0: (7, 8)})]
    chain, finished = after(chain)
    assert (chain.committed, chain.cuts, finished) == (at({0: 8}), at({0: 0}), ("cut",))


def test_a_range_announced_before_a_cut_that_joins_lands_first_in_a_batch_of_its_own() -> None:
    chain = chain_of(
        staged("a", {0: (5, 9)}), staged("cut", {0: (7, 8)}, cut=(0,)), committed={0: 5}
    )
    assert taken(chain) == [("a", {0: (5, 9)})]
    chain, finished = after(chain)
    assert (finished, taken(chain)) == (("a",), [("cut", {0: (7, 8)})])


def test_a_range_announced_before_a_cut_that_does_not_join_is_finished() -> None:
    chain = chain_of(
        staged("a", {0: (6, 9)}), staged("cut", {0: (4, 6)}, cut=(0,)), committed={0: 5}
    )
    chain, finished = after(chain)
    assert (chain.committed, finished) == (at({0: 6}), ("a", "cut"))


def test_each_cut_is_applied_once() -> None:
    chain, _ = after(chain_of(staged("cut", {0: (7, 8)}, cut=(0,)), committed={0: 9}))
    chain = Chain(topic_ids={TOPIC: ID}, committed=chain.committed, cuts=chain.cuts)
    chain, (finished, _) = add_announcements(
        chain, [Announcement(0, staged("cut", {0: (7, 8)}, cut=(0,)), 0)]
    )
    assert names(finished) == ("cut",)


def test_a_cut_is_not_a_gap() -> None:
    chain = chain_of(staged("cut", {0: (7, 8)}, cut=(0,)), committed={0: 5})
    assert gaps(chain, 99, patience_s=5) == {}


# --- a recreated topic ---------------------------------------------------------------------------


def test_an_unknown_topic_id_matches_any() -> None:
    assert same_topic(None, "x")
    assert same_topic("x", None)
    assert same_topic("x", "x")
    assert not same_topic("x", "y")


def test_ranges_of_a_recreated_topic_wait() -> None:
    chain = chain_of(staged("new", {0: (0, 3)}, topic_id="id-2"))
    assert recreated_topics(chain) == {TOPIC}
    assert taken(chain) == []
    assert unknown_partitions(chain) == frozenset()
    assert gaps(chain, 99, patience_s=5) == {}
    assert not recreated_topics(chain_of(staged("a", {0: (0, 3)})))


def test_a_recreated_topic_begins_a_new_chain() -> None:
    chain = chain_of(
        staged("cut", {0: (7, 8)}, cut=(0,)),
        staged("old", {0: (12, 13)}),
        staged("new", {0: (2, 3)}, topic_id="id-2"),
        committed={0: 9},
    )
    chain, _ = after(chain)
    chain, finished = begin_new_topic(chain, TOPIC, "id-2", before=3)
    assert names(finished) == ("old",)
    assert (chain.topic_ids, chain.committed, chain.cuts) == ({TOPIC: "id-2"}, {}, {})
    chain = open_partitions(chain, at({0: 2}))
    assert taken(chain) == [("new", {0: (2, 3)})]


def test_files_announced_after_the_query_of_kafka_are_retained() -> None:
    chain = chain_of(
        staged("old", {0: (0, 3)}, topic_id="id-0"), staged("new", {0: (0, 3)}, topic_id="id-2")
    )
    chain, finished = without_old_topic(chain, TOPIC, before=1)
    assert names(finished) == ("old",)
    assert recreated_topics(chain) == {TOPIC}


# --- announcements that no consumer sends --------------------------------------------------------

NAME = "0-1-7-0a1b2c3d.parquet"


def test_a_consumers_own_announcement_is_consistent() -> None:
    assert (
        contradiction(staged(NAME, {0: (0, 3), 1: (5, 5)}, cut=(1,)), {"orders"}.__contains__) == ""
    )


@pytest.mark.parametrize(
    ("forged", "reason"),
    [
        (staged("part-0.parquet", {0: (0, 3)}), "no name of a staged file"),
        (staged("0-2-7-0a1b2c3d.parquet", {0: (0, 3)}), "another consumer"),
        (staged("1-1-7-0a1b2c3d.parquet", {0: (0, 3)}), "another consumer"),
        (staged(NAME, {0: (3, 0)}), "ends before it begins"),
        (replace(staged(NAME, {0: (0, 3)}), topic="clicks"), "it is of topic clicks"),
        (
            replace(staged(NAME, {}), ranges={TopicPartition("clicks", 0): OffsetRange(0, 3)}),
            "partitions of another topic",
        ),
        (replace(staged(NAME, {}), cut=(TopicPartition("clicks", 0),)), "another topic"),
    ],
)
def test_an_announcement_that_contradicts_itself_is_not_a_consumers(
    forged: Staged, reason: str
) -> None:
    assert reason in contradiction(forged, {"orders"}.__contains__)


# --- files that are announced again --------------------------------------------------------------


def added(chain: Chain, offset: int, *files: Staged) -> Chain:
    return add_announcements(chain, [Announcement(offset, file, 1.0) for file in files])[0]


def cut_file(number: int, first: int, end: int, consumer: str = "0-1") -> Staged:
    return staged(f"{consumer}-{number}-0a1b2c3d.parquet", {0: (first, end)}, cut=(0,))


def plain_file(number: int, first: int, end: int) -> Staged:
    return staged(f"0-1-{number}-0a1b2c3d.parquet", {0: (first, end)})


def test_a_cut_that_is_announced_twice_counts_once() -> None:
    cut = cut_file(3, 50, 60)
    chain = chain_of(cut, cut, committed={0: 100})
    assert taken(chain) == [(cut.file, {0: (50, 60)})]
    chain, finished = after(chain)
    assert (chain.committed, chain.pending, finished) == (at({0: 60}), (), (cut.file,))


def test_a_cut_that_is_announced_again_later_does_not_set_its_partition_back() -> None:
    cut = cut_file(3, 50, 60)
    chain, _ = after(chain_of(cut, committed={0: 100}))
    chain, _ = after(added(chain, 5, plain_file(4, 60, 80)))
    chain = added(chain, 6, cut)
    assert (taken(chain), chain.committed) == ([], at({0: 80}))


def test_a_cut_of_another_consumer_since_then_does_not_make_it_new() -> None:
    cut = cut_file(3, 50, 60)
    chain, _ = after(chain_of(cut, committed={0: 100}))
    chain, _ = after(added(chain, 5, cut_file(7, 20, 30, consumer="1-9")))
    chain = added(chain, 6, cut)
    assert (taken(chain), chain.committed) == ([], at({0: 30}))


def test_an_older_file_of_the_consumer_that_saw_the_cut_is_from_before_it() -> None:
    chain, _ = after(chain_of(cut_file(3, 50, 60), committed={0: 100}))
    chain = added(chain, 5, plain_file(2, 55, 100))
    assert (taken(chain), chain.pending) == ([], ())


def test_the_cuts_of_a_few_consumers_are_remembered() -> None:
    chain = chain_of(committed={0: 100})
    for epoch in range(MOST_CUT_FILES + 2):
        chain, _ = after(added(chain, epoch, cut_file(1, 50, 60, consumer=f"0-{epoch}")))
    assert [f.split("-")[1] for f in chain.cut_files[part(0)]] == [
        str(epoch) for epoch in range(2, MOST_CUT_FILES + 2)
    ]


def test_two_cuts_of_a_partition_land_in_two_commits() -> None:
    first, second = cut_file(3, 50, 60), cut_file(4, 55, 58)
    chain = chain_of(first, second, committed={0: 100})
    assert taken(chain) == [(first.file, {0: (50, 60)})]
    chain, _ = after(chain)
    assert taken(chain) == [(second.file, {0: (55, 58)})]


def test_a_file_waits_by_one_announcement() -> None:
    file = plain_file(1, 3, 5)
    chain, (_, refused) = add_announcements(
        chain_of(file), [Announcement(1, replace(file, age_s=9.0, table=TOPIC, bytes=11), 1.0)]
    )
    assert (len(chain.pending), chain.next_announcement, refused) == (1, 2, ())


@pytest.mark.parametrize(
    "forged",
    [
        {"cut": (part(0),)},
        {"rows": 0},
        {"rows": 1 << 62},
        {"ranges": {part(0): OffsetRange(0, 2)}},
        {"topic_id": "id-2"},
    ],
)
def test_a_second_announcement_that_states_something_else_is_refused(
    forged: dict[str, object],
) -> None:
    file = plain_file(1, 3, 5)
    other = Announcement(1, replace(file, **forged), 1.0)  # type: ignore[arg-type]
    before = chain_of(file, committed={0: 3})
    chain, (finished, refused) = add_announcements(before, [other])
    assert (chain.pending, finished, refused) == (before.pending, (), (other,))


def test_the_work_for_a_batch_grows_with_its_files_whatever_their_order(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls = 0
    take_ranges = _BatchBuilder.take_ranges

    def counted(self: _BatchBuilder, announced: Announcement) -> Ranges:
        nonlocal calls
        calls += 1
        return take_ranges(self, announced)

    monkeypatch.setattr(_BatchBuilder, "take_ranges", counted)
    files = [staged(f"f{n}", {0: (n, n + 1)}) for n in reversed(range(300))]
    found = next_batch(chain_of(*files), 10_000)
    assert found is not None
    assert (len(found[0].slices), calls) == (300, 2 * 300 - 1)
