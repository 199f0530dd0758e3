"""How announced ranges join on to what is committed."""

from binwright.core.messages import Staged
from binwright.core.writer.chain import (
    Announced,
    Chain,
    announce,
    gaps,
    landed,
    next_batch,
    open_partitions,
    renew,
    renewed_id,
    same_topic,
    unknown_partitions,
    without_files,
    without_strangers,
)

from .scene import ID, staged

LARGE = 1_000


def chain_of(*files: Staged, committed: dict[int, int] | None = None) -> Chain:
    """Return a chain that has read these announcements, a second apart."""
    chain = Chain(topic_id=ID, committed=committed if committed is not None else {0: 0})
    for offset, file in enumerate(files):
        chain, _ = announce(chain, Announced(offset, file, heard_at=offset))
    return chain


def taken(chain: Chain, max_bytes: int = LARGE, max_files: int = LARGE) -> list[tuple[str, object]]:
    found = next_batch(chain, max_bytes, max_files)
    return [(s.file, dict(s.ranges)) for s in found[0].slices] if found else []


def after(chain: Chain, max_bytes: int = LARGE) -> tuple[Chain, tuple[str, ...]]:
    found = next_batch(chain, max_bytes)
    assert found is not None
    return landed(chain, found[1])


# --- what joins on -------------------------------------------------------------------------------


def test_ranges_that_follow_on_each_other_land_together() -> None:
    chain = chain_of(staged("a", {0: (0, 3)}), staged("b", {0: (3, 5)}))
    found = next_batch(chain, LARGE)
    assert found is not None
    batch, then = found
    assert taken(chain) == [("a", {0: (0, 3)}), ("b", {0: (3, 5)})]
    assert batch.files == ("a", "b")
    assert (batch.ends, batch.rows, batch.bytes) == ({0: 5}, 5, 20)
    assert then.committed == {0: 5}


def test_a_range_that_begins_later_waits() -> None:
    assert next_batch(chain_of(staged("b", {0: (3, 5)})), LARGE) is None


def test_what_landed_already_is_cut_off() -> None:
    chain = chain_of(staged("a", {0: (0, 5)}), committed={0: 3})
    found = next_batch(chain, LARGE)
    assert found is not None
    assert taken(chain) == [("a", {0: (3, 5)})]
    assert not found[0].slices[0].whole


def test_a_file_that_is_taken_whole_needs_no_filter() -> None:
    found = next_batch(chain_of(staged("a", {0: (0, 5)})), LARGE)
    assert found is not None
    assert found[0].slices[0].whole


def test_announcements_out_of_order_join_all_the_same() -> None:
    chain = chain_of(staged("b", {0: (3, 5)}), staged("a", {0: (0, 3)}))
    assert taken(chain) == [("b", {0: (3, 5)}), ("a", {0: (0, 3)})]


def test_of_a_file_only_the_partitions_that_join_on_are_taken() -> None:
    chain = chain_of(staged("a", {0: (0, 2), 1: (4, 6)}), committed={0: 0, 1: 0})
    assert taken(chain) == [("a", {0: (0, 2)})]
    chain, over = after(chain)
    assert over == ()
    chain, _ = announce(chain, Announced(1, staged("b", {1: (0, 4)}), 1))
    assert taken(chain) == [("a", {1: (4, 6)}), ("b", {1: (0, 4)})]
    assert after(chain)[1] == ("a", "b")


def test_a_file_joins_in_parts_within_one_batch() -> None:
    chain = chain_of(
        staged("a", {0: (0, 2), 1: (4, 6)}), staged("b", {1: (0, 4)}), committed={0: 0, 1: 0}
    )
    assert taken(chain) == [("a", {0: (0, 2), 1: (4, 6)}), ("b", {1: (0, 4)})]


def test_a_partition_of_which_nobody_knows_where_it_begins_waits() -> None:
    chain = chain_of(staged("a", {0: (0, 2), 1: (4, 6)}))
    assert taken(chain) == [("a", {0: (0, 2)})]
    assert unknown_partitions(chain) == {1}
    opened = open_partitions(chain, {0: 9, 1: 4})
    assert opened.committed == {0: 0, 1: 4}


def test_a_batch_holds_no_more_bytes_than_it_may() -> None:
    chain = chain_of(staged("a", {0: (0, 1)}, size=60), staged("b", {0: (1, 2)}, size=60))
    assert taken(chain, max_bytes=100) == [("a", {0: (0, 1)})]


def test_one_file_is_taken_whatever_its_size() -> None:
    assert taken(chain_of(staged("a", {0: (0, 1)}, size=60)), max_bytes=1) == [("a", {0: (0, 1)})]


def test_a_batch_holds_no_more_files_than_it_may() -> None:
    chain = chain_of(*(staged(f"f{n}", {0: (n, n + 1)}) for n in range(5)))
    assert len(taken(chain, max_files=3)) == 3


def test_nothing_is_taken_past_a_file_that_has_no_room() -> None:
    """A smaller one behind it may follow on the log's cut that is in it, not on what was before."""
    chain = chain_of(
        staged("a", {1: (0, 1)}, size=60),
        staged("cut", {0: (2, 4)}, cut=(0,), size=60),
        staged("b", {0: (4, 6)}, size=1),
        committed={0: 5, 1: 0},
    )
    assert taken(chain, max_bytes=100) == [("a", {1: (0, 1)})]
    chain, _ = after(chain, max_bytes=100)
    assert taken(chain, max_bytes=100) == [("cut", {0: (2, 4)}), ("b", {0: (4, 6)})]


# --- what is over --------------------------------------------------------------------------------


def test_a_file_is_over_when_all_of_it_is_committed() -> None:
    chain, over = after(chain_of(staged("a", {0: (0, 3)}), staged("b", {0: (4, 5)})))
    assert over == ("a",)
    assert [a.staged.file for a in chain.pending] == ["b"]
    assert (chain.needed_from, chain.next_announcement) == (1, 2)


def test_an_announcement_of_what_is_committed_is_over_at_once() -> None:
    chain = Chain(topic_id=ID, committed={0: 5})
    chain, over = announce(chain, Announced(0, staged("a", {0: (0, 5)}), 0))
    assert over == ("a",)
    assert (chain.pending, chain.needed_from) == ((), 1)


def test_an_announcement_that_was_read_before_is_passed_over() -> None:
    chain = chain_of(staged("a", {0: (0, 3)}))
    again, over = announce(chain, Announced(0, staged("a", {0: (0, 3)}), 5))
    assert (again, over) == (chain, ())


def test_announcements_that_came_during_the_commit_stay() -> None:
    chain = chain_of(staged("a", {0: (0, 3)}))
    found = next_batch(chain, LARGE)
    assert found is not None
    chain, _ = announce(chain, Announced(1, staged("b", {0: (3, 4)}), 1))
    chain, over = landed(chain, found[1])
    assert over == ("a",)
    assert taken(chain) == [("b", {0: (3, 4)})]


def test_the_oldest_row_is_that_of_the_oldest_fetch() -> None:
    chain = chain_of(staged("a", {0: (0, 3)}, age_s=1), staged("b", {0: (4, 5)}, age_s=7, size=5))
    assert (chain.oldest_at, chain.pending_bytes) == (-6, 15)
    assert Chain().oldest_at is None


# --- gaps ----------------------------------------------------------------------------------------


def test_what_waits_too_long_for_what_is_before_it_is_a_gap() -> None:
    chain = chain_of(staged("b", {0: (3, 5)}), staged("c", {0: (7, 9)}))
    assert gaps(chain, 4.9, patience_s=5) == {}
    assert gaps(chain, 5.0, patience_s=5) == {0: 0}


def test_nothing_is_missing_where_something_joins_on() -> None:
    chain = chain_of(staged("c", {0: (7, 9)}), staged("a", {0: (0, 3)}))
    assert gaps(chain, 99, patience_s=5) == {}


def test_of_a_partition_that_is_not_known_nothing_is_missing() -> None:
    assert gaps(chain_of(staged("a", {1: (7, 9)})), 99, patience_s=5) == {}


def test_a_file_that_is_lost_is_read_again_from_what_is_committed() -> None:
    chain = chain_of(staged("a", {0: (0, 3), 1: (0, 2)}), staged("b", {0: (3, 5)}))
    chain, again = without_files(chain, {"a"})
    assert again == {0: 0}
    assert [a.staged.file for a in chain.pending] == ["b"]


# --- a log that was cut --------------------------------------------------------------------------


def test_a_cut_log_goes_on_at_its_end() -> None:
    chain = chain_of(staged("cut", {0: (7, 8)}, cut=(0,)), committed={0: 9})
    assert taken(chain) == [("cut", {0: (7, 8)})]
    chain, over = after(chain)
    assert (chain.committed, chain.cuts, over) == ({0: 8}, {0: 0}, ("cut",))


def test_what_was_announced_before_the_cut_and_joins_on_lands_first() -> None:
    chain = chain_of(
        staged("a", {0: (5, 9)}), staged("cut", {0: (7, 8)}, cut=(0,)), committed={0: 5}
    )
    assert taken(chain) == [("a", {0: (5, 9)}), ("cut", {0: (7, 8)})]


def test_what_was_announced_before_the_cut_and_did_not_join_on_is_over() -> None:
    chain = chain_of(
        staged("a", {0: (6, 9)}), staged("cut", {0: (4, 6)}, cut=(0,)), committed={0: 5}
    )
    chain, over = after(chain)
    assert (chain.committed, over) == ({0: 6}, ("a", "cut"))


def test_each_cut_counts_once() -> None:
    chain, _ = after(chain_of(staged("cut", {0: (7, 8)}, cut=(0,)), committed={0: 9}))
    chain = Chain(topic_id=ID, committed=chain.committed, cuts=chain.cuts)
    chain, over = announce(chain, Announced(0, staged("cut", {0: (7, 8)}, cut=(0,)), 0))
    assert over == ("cut",)


def test_a_cut_is_no_gap() -> None:
    chain = chain_of(staged("cut", {0: (7, 8)}, cut=(0,)), committed={0: 5})
    assert gaps(chain, 99, patience_s=5) == {}


# --- a topic made anew ---------------------------------------------------------------------------


def test_ids_that_are_not_told_may_be_anyones() -> None:
    assert same_topic(None, "x")
    assert same_topic("x", None)
    assert same_topic("x", "x")
    assert not same_topic("x", "y")


def test_ranges_of_another_topic_of_this_name_wait() -> None:
    chain = chain_of(staged("new", {0: (0, 3)}, topic_id="id-2"))
    assert renewed_id(chain) == "id-2"
    assert taken(chain) == []
    assert unknown_partitions(chain) == frozenset()
    assert gaps(chain, 99, patience_s=5) == {}
    assert renewed_id(chain_of(staged("a", {0: (0, 3)}))) is None


def test_a_topic_made_anew_begins_a_new_chain() -> None:
    chain = chain_of(
        staged("cut", {0: (7, 8)}, cut=(0,)),
        staged("old", {0: (12, 13)}),
        staged("new", {0: (2, 3)}, topic_id="id-2"),
        committed={0: 9},
    )
    chain, _ = after(chain)
    chain, over = renew(chain, "id-2", {0: 2}, before=3)
    assert over == ("old",)
    assert (chain.topic_id, chain.committed, chain.cuts) == ("id-2", {0: 2}, {})
    assert taken(chain) == [("new", {0: (2, 3)})]


def test_files_that_were_announced_after_kafka_was_asked_are_not_forgotten() -> None:
    chain = chain_of(
        staged("old", {0: (0, 3)}, topic_id="id-0"), staged("new", {0: (0, 3)}, topic_id="id-2")
    )
    chain, over = without_strangers(chain, before=1)
    assert over == ("old",)
    assert renewed_id(chain) == "id-2"
