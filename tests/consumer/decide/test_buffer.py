"""A range holds every readable record between its ends, once."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from binwright.consumer.decide.buffer import (
    BatchConfig,
    Buffer,
    BufferedRange,
    TakenRows,
    interval_s,
    over_share,
)
from binwright.protocol.landing import OffsetRange
from binwright.protocol.model import TopicPartition
from binwright.protocol.ports.kafka import HEADER_BYTES, RECORD_BYTES, Record, Records

P, Q, OTHER = (TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("u", 0))
CONFIG = BatchConfig(bytes=3 * RECORD_BYTES, wait_s=1.0, cap_bytes=10 * RECORD_BYTES)


def records(*offsets: int) -> Records:
    return Records.of(Record(offset, 0, None, None) for offset in offsets)


def offsets_of(taken: BufferedRange) -> list[int]:
    return [offset for part in taken.records for offset in part.offsets]


def filled(*offsets: int, begin: int = 0, cut: bool = False) -> Buffer:
    buffer = Buffer(CONFIG)
    buffer.begin(P, begin, cut=cut)
    buffer.add(P, records(*offsets), now=5.0)
    return buffer


# --- ranges --------------------------------------------------------------------------------------


def test_a_range_begins_where_reading_was_started() -> None:
    taken = filled(4, 5, 7, begin=2).take_ranges("t")[P]
    assert taken.range == OffsetRange(2, 8)
    assert offsets_of(taken) == [4, 5, 7]


def test_a_range_has_its_number_of_rows_and_their_bytes() -> None:
    buffer = filled(4, 5)
    buffer.add(P, records(7), 5.5)
    taken = buffer.take_ranges("t")[P]
    assert (taken.count, taken.bytes) == (3, 3 * RECORD_BYTES)
    assert TakenRows("t", None, {P: taken, Q: taken}, 0.0, taken.bytes).count == 6


def test_the_next_range_begins_where_the_last_one_ended() -> None:
    buffer = filled(0, 1)
    buffer.take_ranges("t")
    buffer.add(P, records(5), 6.0)
    assert buffer.take_ranges("t")[P].range == OffsetRange(2, 6)


def test_without_records_there_is_no_range() -> None:
    assert filled().take_ranges("t") == {}


def test_only_the_ranges_of_one_topic_are_taken() -> None:
    buffer = filled(0)
    buffer.begin(OTHER, 3)
    buffer.add(OTHER, records(3), 5.0)
    assert list(buffer.take_ranges("u")) == [OTHER]
    assert list(buffer.take_ranges("t")) == [P]


def test_records_before_the_position_are_skipped() -> None:
    """A fetch that was in flight when the position changed may return them."""
    buffer = filled(0, 1, 2, begin=1)
    buffer.add(P, records(1, 2, 3), 5.0)
    assert offsets_of(buffer.take_ranges("t")[P]) == [1, 2, 3]
    buffer.add(P, records(2, 3), 5.0)
    assert buffer.take_ranges("t") == {}


def test_records_of_a_partition_that_is_not_read_are_skipped() -> None:
    buffer = Buffer(CONFIG)
    buffer.add(P, records(0), 5.0)
    assert buffer.take_ranges("t") == {}
    assert buffer.next_offset(P) is None


def test_beginning_at_another_offset_drops_the_rows() -> None:
    buffer = filled(0, 1)
    buffer.begin(P, 7)
    assert buffer.next_offset(P) == 7
    assert buffer.take_ranges("t") == {}


def test_a_dropped_partition_takes_no_more_records() -> None:
    buffer = filled(0, 1)
    buffer.drop(P)
    buffer.drop(P)
    buffer.add(P, records(2), 6.0)
    assert buffer.take_ranges("t") == {}


def test_only_the_first_range_after_a_cut_is_marked() -> None:
    buffer = filled(3, begin=3, cut=True)
    assert buffer.take_ranges("t")[P].cut
    buffer.add(P, records(4), 6.0)
    assert not buffer.take_ranges("t")[P].cut


def test_a_cut_is_marked_on_the_first_range_with_records() -> None:
    buffer = filled(begin=3, cut=True)
    buffer.take_ranges("t")
    buffer.add(P, records(3), 6.0)
    assert buffer.take_ranges("t")[P].cut


def test_a_range_ends_at_the_readers_position_also_behind_its_last_record() -> None:
    buffer = filled(0, 1)
    buffer.advance(P, 4, 5.0)
    assert buffer.take_ranges("t")[P].range == OffsetRange(0, 4)
    assert buffer.next_offset(P) == 4


def test_offsets_without_a_record_are_a_range_of_their_own_which_is_due() -> None:
    buffer = filled(0)
    buffer.take_ranges("t")
    buffer.advance(P, 3, 6.0)
    buffer.advance(P, 2, 6.5)
    buffer.advance(Q, 3, 6.5)
    assert (buffer.due(6.0), buffer.due(7.0)) == (None, "t")
    taken = buffer.take_ranges("t")
    assert [(p, part.range, list(part.records)) for p, part in taken.items()] == [
        (P, OffsetRange(1, 3), [])
    ]
    assert buffer.due(99.0) is None


def test_what_was_taken_ends_where_the_present_range_begins() -> None:
    buffer = filled(4, begin=2)
    assert (buffer.taken_before(P), buffer.taken_before(Q)) == (2, None)
    buffer.take_ranges("t")
    assert buffer.taken_before(P) == 5


def test_a_range_without_records_is_due_also_when_another_partition_is_dropped() -> None:
    buffer = filled()
    buffer.begin(Q, 0)
    buffer.advance(P, 1, 5.0)
    buffer.advance(Q, 1, 5.5)
    buffer.drop(P)
    assert buffer.due(9.0) == "t"
    buffer.drop(Q)
    assert buffer.due(9.0) is None


# --- sizes and ages ------------------------------------------------------------------------------


def test_a_row_takes_its_key_its_value_and_an_overhead() -> None:
    assert Records.of([Record(0, 0, b"key", b"value")]).bytes == 8 + RECORD_BYTES


def test_a_row_takes_its_headers_too() -> None:
    """Else rows with headers of 10 kB would take sixty times the memory that is allowed."""
    row = Record(0, 0, None, b"v", 0, (("name", b"content"), ("none", None)))
    assert Records.of([row]).bytes == RECORD_BYTES + 1 + 4 + 7 + 4 + 2 * HEADER_BYTES


def test_taking_or_dropping_rows_makes_room() -> None:
    buffer = filled(0, 1)
    assert buffer.free_bytes == 8 * RECORD_BYTES
    assert buffer.sizes == {"t": 2 * RECORD_BYTES}
    buffer.take_ranges("t")
    assert buffer.free_bytes == 10 * RECORD_BYTES
    buffer.add(P, records(2), 6.0)
    buffer.drop(P)
    assert buffer.free_bytes == 10 * RECORD_BYTES
    assert buffer.sizes == {}


def test_a_buffer_above_its_cap_has_no_room() -> None:
    assert filled(*range(11)).free_bytes == 0


def test_a_topics_rows_are_staged_when_the_oldest_has_waited_an_interval_at_the_most() -> None:
    buffer = filled(0)
    buffer.add(P, records(1), 5.9)
    due_in = buffer.due_in(5.0)
    assert due_in is not None
    assert 0.0 < due_in <= CONFIG.wait_s
    assert buffer.due(5.0 + due_in - 0.01) is None
    assert buffer.due(5.0 + due_in + 1e-9) == "t"
    assert buffer.due_in(7.0) == 0.0
    assert buffer.oldest_at("t") == 5.0


def staged_at(wall_s: float, oldest: float, topic: str = "t") -> float:
    """Return when a row is staged, on the wall clock, by a consumer with a clock of its own."""
    buffer, partition = Buffer(replace(CONFIG, wall_s=wall_s)), TopicPartition(topic, 0)
    buffer.begin(partition, 0)
    buffer.add(partition, records(0), oldest)
    due_in = buffer.due_in(oldest)
    assert due_in is not None
    return wall_s + oldest + due_in


@given(st.floats(0, 1e9), st.floats(0, 1e6), st.floats(0, 1))
def test_consumers_stage_a_topic_at_the_same_times(
    started: float, oldest: float, other: float
) -> None:
    """Whenever they started, and whenever they fetched their oldest row."""
    one = staged_at(started, oldest)
    two = staged_at(started + oldest - 7.0, 7.0 + other)
    intervals = (two - one) / CONFIG.wait_s
    assert intervals == pytest.approx(round(intervals), abs=1e-4)


def test_topics_are_staged_at_times_of_their_own() -> None:
    assert len({round(staged_at(0.0, 5.0, f"t{n}"), 3) for n in range(20)}) > 15


@given(st.floats(0.01, 10), st.floats(0, 1e6))
def test_the_interval_follows_what_a_topic_is_late_by(shortest_s: float, late_s: float) -> None:
    found = interval_s(shortest_s, late_s)
    assert found == shortest_s or found <= min(late_s / 4, 16 * shortest_s)
    assert 2 * found > min(late_s / 4, 16 * shortest_s)


@pytest.mark.parametrize(
    ("late_s", "wanted"),
    [(0.0, 1.0), (7.9, 1.0), (8.0, 2.0), (31.0, 4.0), (64.0, 16.0), (1e6, 16.0)],
)
def test_a_late_topic_is_staged_in_fewer_files(late_s: float, wanted: float) -> None:
    assert interval_s(1.0, late_s) == wanted


def test_a_late_topic_waits_unless_the_buffer_is_half_full() -> None:
    late: dict[str, float] = {}
    buffer = Buffer(replace(CONFIG, bytes=10**6, cap_bytes=1_000), late)
    buffer.begin(P, 0)
    buffer.add(P, records(0), 5.0)
    soon = buffer.due_in(5.0)
    late["t"] = 1e3
    later = buffer.due_in(5.0)
    assert soon is not None
    assert later is not None
    assert soon <= CONFIG.wait_s < later <= 16 * CONFIG.wait_s
    buffer.add(P, records(*range(1, 10)), 5.0)
    assert buffer.due_in(5.0) == soon


def test_a_topic_is_due_by_its_size() -> None:
    assert filled(0, 1, 2).due(5.0) == "t"


# --- backlogs ------------------------------------------------------------------------------------


LATE_S = 8 * CONFIG.wait_s


def behind(count: int, age_s: float = LATE_S) -> Buffer:
    """Return a buffer with so many rows of P, of this age, and offsets without a record of Q."""
    buffer = Buffer(replace(CONFIG, cap_bytes=20 * RECORD_BYTES, wall_s=1_000.0))
    buffer.begin(P, 0)
    buffer.add(P, aged(age_s, *range(count)), 5.0)
    buffer.begin(Q, 0)
    buffer.advance(Q, 1, 5.0)
    buffer.begin(OTHER, 0)
    return buffer


def aged(age_s: float, *offsets: int) -> Records:
    """Return records that are of this age when they are fetched, at 5.0."""
    return Records.of(Record(o, round(1_000 * (1_005.0 - age_s)), None, None) for o in offsets)


@pytest.mark.parametrize("rows", [1, 9])
def test_rows_of_a_backlog_wait_for_a_large_file(rows: int) -> None:
    """Neither their size nor their age has them staged, while Kafka has what they wait for."""
    ends = {P: 10}
    assert behind(rows).due(5.0 + 1.9 * CONFIG.wait_s, ends=ends) is None
    assert behind(10).due(5.0, ends=ends) == "t", "the buffer is half full"


def test_they_wait_for_two_intervals_at_the_most() -> None:
    buffer = behind(2)
    assert buffer.due_in(5.0, ends={P: 99}) == 2 * CONFIG.wait_s
    assert buffer.due(5.0 + 2 * CONFIG.wait_s, ends={P: 99}) == "t"


def test_they_do_not_wait_for_what_is_not_in_kafka_yet() -> None:
    assert behind(3).due(5.0, ends={P: 9}) == "t"
    assert behind(3).due(5.0) == "t"


def test_live_rows_do_not_wait_for_the_backlog_of_another_partition() -> None:
    buffer, ends = behind(3), {P: 99, Q: 2}
    buffer.add(Q, aged(LATE_S, 1), 5.0)
    assert buffer.due(5.0, ends=ends) is None, "it has just ended, and is late, too"
    buffer.add(Q, aged(LATE_S - 0.1, 2), 5.0)
    assert buffer.due(5.0, ends=ends) == "t"


def test_a_topic_does_not_wait_when_others_fill_the_buffer() -> None:
    buffer = behind(3)
    buffer.add(OTHER, records(*range(7)), 5.0)
    assert buffer.due(5.0, {"u"}, {P: 99, OTHER: 99}) == "t"


@given(st.integers(0, 25), st.integers(0, 40))
def test_ends_matter_only_where_rows_may_wait(rows: int, end: int) -> None:
    buffer = behind(rows)
    soon = 5.0 + CONFIG.wait_s
    assert buffer.may_wait or buffer.due(soon, ends={P: end}) == buffer.due(soon)


def test_the_topic_with_the_oldest_row_is_staged_first_unless_it_is_busy() -> None:
    buffer = filled(0)
    buffer.begin(OTHER, 0)
    buffer.add(OTHER, records(0), 4.0)
    assert buffer.due(9.0) == "u"
    assert buffer.due(9.0, busy={"u"}) == "t"
    assert buffer.due_in(5.0, busy={"u"}) == filled(0).due_in(5.0)


def test_an_empty_buffer_is_never_due() -> None:
    buffer = filled()
    assert (buffer.due(99.0), buffer.due_in(99.0), buffer.oldest_at("t")) == (None, None, None)


def test_the_age_is_unchanged_when_one_partition_is_dropped() -> None:
    buffer = filled(0)
    buffer.begin(Q, 0)
    buffer.add(Q, records(0), 7.0)
    buffer.drop(P)
    assert buffer.oldest_at("t") == 5.0


# --- shares of a limit ---------------------------------------------------------------------------


def test_a_topic_may_take_as_much_as_is_left_free() -> None:
    assert over_share(400, {"a": 199, "b": 0}) == frozenset()
    assert over_share(400, {"a": 200, "b": 0}) == {"a"}


def test_topics_that_cannot_go_on_leave_a_share_to_the_others() -> None:
    assert over_share(400, {"a": 99, "b": 99, "c": 99, "d": 0}) == frozenset()
    assert over_share(400, {"a": 100, "b": 100, "c": 100, "d": 0}) == {"a", "b", "c"}


def test_no_topic_may_take_more_when_nothing_is_free() -> None:
    assert over_share(400, {"a": 500, "b": 0}) == {"a", "b"}


def test_a_single_topic_may_take_all() -> None:
    assert over_share(400, {"a": 400}) == frozenset()


# --- properties ----------------------------------------------------------------------------------


class Tiling(RuleBasedStateMachine):
    """A log with gaps, read by one buffer whose position jumps."""

    @initialize(gaps=st.sets(st.integers(0, 29)))
    def write(self, gaps: set[int]) -> None:
        self.log = [offset for offset in range(30) if offset not in gaps]
        self.buffer = Buffer(CONFIG)
        self.expected: int | None = None  # where the next range begins
        self.fetched = 0

    @rule(offset=st.integers(0, 30))
    def begin(self, offset: int) -> None:
        self.buffer.begin(P, offset)
        self.expected = self.fetched = offset

    @rule()
    def drop(self) -> None:
        self.buffer.drop(P)
        self.expected = None

    @rule(count=st.integers(1, 5), back=st.integers(0, 3))
    def fetch(self, count: int, back: int) -> None:
        """Fetch records, some of which may have been fetched before."""
        found = [offset for offset in self.log if offset >= self.fetched - back][:count]
        self.buffer.add(P, records(*found), 0.0)
        self.fetched = max([self.fetched, *(offset + 1 for offset in found)])

    @rule()
    def pass_gap(self) -> None:
        """Pass the offsets up to the next record, as a reader does that finds none there."""
        end = min((offset for offset in self.log if offset >= self.fetched), default=30)
        self.buffer.advance(P, end, 0.0)
        self.fetched = max(self.fetched, end)

    @rule()
    def take_ranges(self) -> None:
        for taken in self.buffer.take_ranges("t").values():
            first, end = taken.range
            assert first == self.expected
            inside = [offset for offset in self.log if first <= offset < end]
            assert offsets_of(taken) == inside
            self.expected = end

    @invariant()
    def the_size_is_that_of_its_rows(self) -> None:
        rows = sum(r.bytes for r in self.buffer._rows.values())
        assert sum(self.buffer.sizes.values()) == rows
        pending = any(r.begin < r.next for r in self.buffer._rows.values())
        assert (self.buffer.oldest_at("t") is not None) == pending


TestTiling = Tiling.TestCase
TestTiling.settings = settings(max_examples=50, stateful_step_count=30, deadline=None)
