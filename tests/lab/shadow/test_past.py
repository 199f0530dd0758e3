"""What a recording shows of each group."""

from dataclasses import replace

import pytest

from binwright.lab.shadow.past import GroupPast, NotComparable, Timeliness, read_pasts
from binwright.lab.shadow.samples import GroupSample
from binwright.protocol.errors import StreamError
from binwright.protocol.metrics import Measurement
from binwright.protocol.model import TopicPartition
from binwright.scaler.decide.lags import Work
from binwright.scaler.decide.policy import PartitionLoad

from .builders import EVERY_S, busy, recorded_group, steady

WITHIN_S = 30.0
P = TopicPartition("orders", 0)
Messages = list[GroupSample | Measurement]


def past_of(messages: Messages, within_s: float = WITHIN_S) -> GroupPast:
    (past,) = read_pasts(messages, within_s)
    assert isinstance(past, GroupPast)
    return past


def assert_capacity(past: GroupPast, records_per_s: float, basis: str) -> None:
    assert past.capacity is not None
    assert past.capacity.records_per_s == pytest.approx(records_per_s, rel=0.01)
    assert past.capacity.basis == basis


def test_the_load_the_members_and_their_speed_of_a_group_that_keeps_up() -> None:
    past = past_of(list(recorded_group("orders", busy(400, 2_000), steady(2))))

    assert past.recorded.partitions == tuple(TopicPartition("orders", n) for n in range(4))
    written = past.recorded.written[-1].sum()
    assert written == pytest.approx(600 * 2_000 + 2_990 * 400, rel=0.01)
    assert past.recorded.rates.sum(axis=1).max() == 2_000
    assert (past.members_mean, past.members.end) == (2.0, 3_590.0)
    assert_capacity(past, 1_000.0, "seen")
    assert past.within == 1.0
    assert (past.until_ms - past.from_ms, past.unseen_s) == (3_590_000, 0.0)
    assert (past.clients, past.topics) == (("orders-0", "orders-1"), ("orders",))


def test_a_group_that_was_behind_shows_its_speed_and_what_was_late() -> None:
    past = past_of(list(recorded_group("orders", busy(400, 2_500), steady(2))))
    assert_capacity(past, 1_000.0, "measured")
    assert past.within is not None
    assert 0.4 < past.within < 0.7


def test_members_come_and_go() -> None:
    past = past_of(list(recorded_group("orders", steady(100), busy(2, 4))))
    assert past.members.values == (2, 4, 2)
    assert past.members.times == (0.0, 600.0, 1_200.0)
    assert past.members_mean == pytest.approx(2 + 2 * 600 / 3_590)


def test_commits_that_are_rare_are_no_lag() -> None:
    past = past_of(list(recorded_group("orders", steady(400), steady(2), commit_s=12.0)))
    assert past.within == 1.0
    assert_capacity(past, 200.0, "seen")


def test_passes_that_are_too_rare_do_not_show_what_was_late() -> None:
    messages = list(recorded_group("orders", steady(400), steady(2)))
    assert past_of(messages, within_s=2 * EVERY_S - 1).within is None


def test_a_gap_between_two_recordings_is_counted() -> None:
    first = list(recorded_group("orders", steady(400), steady(2), seconds=600))
    gone_s = 500
    later = [
        replace(message, at_ms=message.at_ms + 1000 * (600 + gone_s))
        for message in recorded_group("orders", steady(400), steady(2), seconds=600)
    ]
    past = past_of([*first, *later])
    assert past.unseen_s == gone_s + EVERY_S
    assert past.members.end == 1_690.0


def test_groups_that_cannot_be_simulated_are_named() -> None:
    messages = [
        *recorded_group("nowhere", steady(400), steady(2)),
        *recorded_group("own", steady(400), steady(0)),
        *recorded_group("orders", steady(400), steady(2)),
    ]
    kept = [m for m in messages if not (isinstance(m, Measurement) and m.topic == "nowhere")]
    found = read_pasts(kept, WITHIN_S)
    assert [type(one) for one in found] == [NotComparable, GroupPast, NotComparable]
    assert [one.group for one in found] == ["nowhere", "orders", "own"]


def test_a_recording_without_groups_is_refused() -> None:
    measured = [
        m for m in recorded_group("orders", steady(1), steady(1)) if isinstance(m, Measurement)
    ]
    with pytest.raises(StreamError, match="no consumer groups"):
        read_pasts(measured, WITHIN_S)


def test_two_groups_of_one_topic_have_the_same_load() -> None:
    messages: Messages = list(recorded_group("orders", steady(400), steady(2)))
    for one in [m for m in messages if isinstance(m, GroupSample)]:
        at = messages.index(one)
        messages.insert(at, replace(one, group="audit"))
    audit, orders = read_pasts(messages, WITHIN_S)
    assert isinstance(audit, GroupPast)
    assert isinstance(orders, GroupPast)
    assert (audit.recorded.written == orders.recorded.written).all()


def test_a_large_topic_takes_several_messages_in_a_pass() -> None:
    messages: Messages = []
    for one in recorded_group("orders", busy(400, 2_500), steady(2)):
        if isinstance(one, Measurement):
            messages += [
                replace(one, partitions=one.partitions[:2]),
                replace(one, partitions=one.partitions[2:]),
            ]
        else:
            messages.append(one)
    whole = past_of(list(recorded_group("orders", busy(400, 2_500), steady(2))))
    assert past_of(messages).capacity == whole.capacity


def test_a_group_is_first_seen_before_its_topics_are() -> None:
    messages: Messages = list(recorded_group("orders", steady(400), steady(2)))
    first = messages[0]
    assert isinstance(first, GroupSample)
    early = replace(first, at_ms=0, members=(), committed={})
    later = [replace(message, at_ms=message.at_ms + 20_000) for message in messages]
    assert past_of([early, *later]).members.values == (2,)


def look(*sights: tuple[float, int, int]) -> Timeliness:
    """Return what looks at (time, end, committed) show within 30 s."""
    found = Timeliness(WITHIN_S)
    for now_s, end, committed in sights:
        loads = {P: PartitionLoad(0.0, end - committed)}
        found.look(now_s, Work(loads=loads, committed={P: committed}))
    return found


def test_records_are_in_time_by_when_they_were_committed() -> None:
    assert look((0, 0, 0)).share == 1.0
    assert look((0, 0, 0), (10, 100, 0), (50, 100, 100)).share == 0.0  # 40 s later
    assert look((0, 0, 0), (10, 100, 0), (30, 300, 150)).share == 1.0
    # The first hundred are read at 20 s, the rest waits too long.
    assert look((0, 0, 0), (10, 100, 0), (20, 200, 100), (60, 200, 100)).share == 0.5
    assert look((0, 50, 50), (10, 50, 50)).share == 1.0


def test_a_partition_without_a_commit_is_not_judged() -> None:
    found = Timeliness(WITHIN_S)
    found.look(0.0, Work(loads={P: PartitionLoad(1.0, 100.0)}))
    assert found.share == 1.0
