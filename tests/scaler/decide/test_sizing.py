"""A scaled group from one decision to the next."""

from dataclasses import replace
from typing import Literal

import pytest
from tests.scaler.decide.scaled_groups import CONFIG, ZERO, changed, step, verdict, work

from binwright.protocol.model import TopicPartition
from binwright.scaler.decide.lags import TopicTrend, Work
from binwright.scaler.decide.sizing import (
    LEFT_ALONE_S,
    LOOK_S,
    ReplicaChange,
    ReplicaUsage,
    ScalingState,
    approve,
    ordered,
    rounded,
)


def test_replicas_are_a_packing_of_the_rates() -> None:
    """Nine tenths of 100/s, of which nine tenths are left for catching up."""
    found = verdict(CONFIG, work([40] * 6), 1)

    assert (found.wanted, found.order, len(found.packing)) == (3, 3, 3)
    assert found.reasons[0] == "240 records/s and a lag of 0 need 3 replicas of 100/s"


def test_lag_counts_by_the_time_in_which_it_is_to_be_caught_up() -> None:
    assert verdict(CONFIG, work([10] * 4, [600] * 4), 1).wanted == 1
    assert verdict(changed(CONFIG, sla_s=10.0), work([10] * 4, [600] * 4), 1).wanted == 4


def test_lag_that_waits_for_a_commit_counts_for_nothing() -> None:
    config = changed(CONFIG, sla_s=1.0, commit_interval_s=5.0)

    assert verdict(config, work([10] * 4, [50] * 4), 1).wanted == 1


BURSTY = changed(CONFIG, sla_s=0.5, burst_s=1.0)
"""A replica has 50 records of a burst in time, and is filled to 45."""


def test_bursts_count_with_an_sla() -> None:
    assert verdict(changed(BURSTY, sla_s=None), work([10] * 5), 1).wanted == 1
    assert verdict(changed(BURSTY, burst_s=0.0), work([10] * 5), 1).wanted == 1
    assert verdict(BURSTY, work([10] * 5), 1).wanted == 2


def test_a_share_that_may_be_late_needs_fewer_replicas() -> None:
    """Of 50 records in a burst 5 are late; the packing that is shown has them too."""
    found = verdict(changed(BURSTY, sla_share=0.9), work([10] * 5), 1)

    assert (found.wanted, len(found.packing)) == (1, 1)
    assert verdict(changed(BURSTY, sla_share=0.95), work([10] * 5), 1).wanted == 2


def test_a_rising_rate_is_met_before_it_is_there() -> None:
    rising = replace(work([11] * 4), trends={"t": TopicTrend(age_s=10, growth=0.05)})

    assert verdict(CONFIG, rising, 1).wanted == 1
    found = verdict(changed(CONFIG, start_s=20.0), rising, 1)
    assert found.wanted == 2
    assert "sized for 88 records/s, as the rate is changing" in found.reasons
    assert verdict(changed(CONFIG, start_s=20.0), work([10] * 4), 1).reasons == (
        "40 records/s and a lag of 0 need 1 replica of 100/s",
        "rate and lag fit",
    )


def test_there_are_never_more_replicas_than_partitions() -> None:
    found = verdict(changed(CONFIG, min_replicas=5, max_replicas=10), work([10, 10]), 1)
    assert found.wanted == 2

    found = verdict(CONFIG, work([500, 500]), 3)
    assert found.wanted == 2
    assert "the bounds are" not in found.reasons


def test_a_partition_faster_than_a_replica_is_named_and_gets_one_replica() -> None:
    found = verdict(CONFIG, work([900, 10, 10]), 1)

    assert found.wanted == 2
    assert found.hot == (TopicPartition("t", 0),)
    assert found.reasons[-1] == ("faster than a replica, so that more replicas do not help: t-0")


def test_only_the_first_of_many_hot_partitions_are_named() -> None:
    assert verdict(CONFIG, work([900] * 12), 10).reasons[-2].endswith("t-9 and 2 more")


def test_the_bounds_hold_at_once_and_what_is_missing_is_a_reason() -> None:
    found = verdict(changed(CONFIG, min_replicas=1, max_replicas=2), work([80] * 6), 5)

    assert found.wanted == 2
    assert "6 are needed, and 2 are allowed" in found.reasons
    many = verdict(
        changed(CONFIG, min_replicas=4, max_replicas=9),
        work([1] * 6),
        2,
        state=ScalingState(scaled_s=999),
    )
    assert many.wanted == 4
    assert many.reasons[-1] == "the bounds are 4 to 9"


def test_a_schedule_changes_the_bounds() -> None:
    """The tests' wall clock shows midnight on a Thursday."""
    night = {"days": ["thu"], "start": "00:00", "end": "01:00", "max_replicas": 0}
    found = verdict(changed(CONFIG, schedules=(night,)), work([40] * 6), 3)

    assert (found.order, found.reasons) == (0, ("the bounds allow no replica",))


def test_a_cooldown_is_waited_for() -> None:
    recent = ScalingState(scaled_s=990.0)

    assert verdict(CONFIG, work([40] * 6), 1, state=recent).order is None
    assert verdict(CONFIG, work([40] * 6), 1, state=recent, now_s=1_021).order == 3
    assert verdict(CONFIG, work([1] * 6), 3, state=recent, now_s=1_021).order is None
    assert verdict(CONFIG, work([1] * 6), 3, state=recent, now_s=1_291).order == 1


def test_a_group_without_a_known_capacity_is_measured_while_it_is_behind() -> None:
    config = changed(CONFIG, records_per_s=None)
    behind = work([100] * 4, [9_000] * 4)
    first = replace(behind, committed=dict.fromkeys(behind.loads, 0))
    state, unknown = step(config, first, 1, now_s=0)
    second = replace(behind, committed=dict.fromkeys(behind.loads, 1_500))
    _, known = step(config, second, 1, state=state, now_s=30)

    assert (unknown.wanted, unknown.capacity) == (1, None)
    assert unknown.reasons == (
        "what a replica serves is not known yet: it is measured while the group is behind",
    )
    assert (known.wanted, known.capacity) == (4, 200)


def test_a_group_that_has_never_read_gets_its_least() -> None:
    """Until its consumers commit, nothing is known of it."""
    assert verdict(CONFIG, Work(), 0).order == 1
    assert verdict(CONFIG, Work(missing=1), 0).order == 1
    assert verdict(ZERO, Work(missing=1), 0).order is None


def test_a_group_of_which_neither_commits_nor_topics_are_known_is_started_and_named() -> None:
    """At zero it would never show what it reads."""
    found = verdict(ZERO, Work(is_new=True), 0)

    assert (found.order, "group orders" in found.fault) == (1, True)
    assert verdict(ZERO, Work(is_new=True), 3).order is None


NEW = replace(work([0.0] * 4), uncommitted=4, is_new=True)
"""A group that has not committed, and records that it may begin with."""
EARLY, LATE = changed(ZERO, starts_at="earliest"), changed(ZERO, starts_at="latest")


def test_before_the_first_commit_records_start_one_replica_unless_the_group_skips_them() -> None:
    assert verdict(ZERO, NEW, 0).order == 1
    assert verdict(LATE, NEW, 0).order is None
    assert verdict(ZERO, replace(NEW, uncommitted=0), 0).order is None


def test_before_its_first_commit_a_group_keeps_its_replicas() -> None:
    idle = ScalingState(idle_since_s=0.0)
    for config in (ZERO, LATE):
        assert verdict(config, NEW, 3, state=idle).order is None
    assert verdict(LATE, replace(NEW, uncommitted=0), 3, state=idle).order == 0


def test_a_partition_without_a_commit_beside_others_holds_the_last_replica_only() -> None:
    some, idle = replace(NEW, is_new=False), ScalingState(idle_since_s=0.0)

    assert verdict(ZERO, some, 3, state=idle).order == 1
    assert verdict(LATE, some, 3, state=idle).order == 0
    assert verdict(ZERO, some, 0).order == 1


def test_members_of_a_group_that_has_not_committed_are_not_sized_by_a_guess() -> None:
    """Where the workload does not tell that they run."""
    assert verdict(ZERO, NEW, 0, members=2).fault
    assert not verdict(ZERO, NEW, 0, members=0).fault
    assert not verdict(EARLY, NEW, 0, members=2).fault
    assert verdict(LATE, NEW, 0, members=2).wanted == 1


def test_a_named_topic_that_does_not_exist_is_a_fault_and_holds_nothing() -> None:
    named = changed(
        ZERO,
        topics=(
            "t",
            "nosuch",
        ),
    )
    seen, idle = replace(work([0.0] * 4), absent=("nosuch",)), ScalingState(idle_since_s=0.0)
    found = verdict(named, seen, 3, state=idle)

    assert (found.order, "nosuch" in found.fault) == (0, True)
    assert not verdict(ZERO, seen, 3).fault, "a topic that its commits once named was deleted"


def test_a_group_none_of_whose_topics_exists_sleeps() -> None:
    gone, idle = Work(absent=("t",)), ScalingState(idle_since_s=0.0)

    assert verdict(ZERO, gone, 3, state=idle).order == 0
    assert verdict(CONFIG, gone, 3, state=idle).order == 1
    assert verdict(ZERO, gone, 3).order is None
    assert verdict(ZERO, gone, 0).order is None


def test_why_kafka_does_not_describe_a_topic_is_shown() -> None:
    assert verdict(ZERO, Work(missing=1, refused=("topic t: no right",)), 3).fault


def test_records_that_were_deleted_unread_are_shown_and_are_no_lag() -> None:
    reasons = verdict(CONFIG, replace(work([1.0]), lost=5_000), 1).reasons

    assert "5000" in reasons[-1]


def test_lag_that_only_markers_make_is_none_where_that_is_set() -> None:
    markers, idle = work([0.0] * 4, [1.0] * 4), ScalingState(idle_since_s=0.0)
    settled = changed(ZERO, idle_lag=1)

    assert verdict(ZERO, markers, 1, state=idle).order is None
    assert verdict(settled, markers, 1, state=idle).order == 0
    assert verdict(settled, markers, 0).order is None
    assert verdict(settled, work([0.0] * 4, [2.0, 0, 0, 0]), 0).order == 1
    assert verdict(settled, work([0.1, 0, 0, 0], [1.0, 0, 0, 0]), 0).order == 1, "one arrives"


def test_at_zero_what_is_not_known_is_reported() -> None:
    assert "2 partitions" in verdict(ZERO, work([0.0] * 2, missing=2), 0).reasons[0]


def test_no_replica_is_taken_away_while_something_is_not_known() -> None:
    found = verdict(CONFIG, work([1] * 6, missing=1), 3)

    assert found.order is None
    assert found.reasons[-1].startswith("1 partitions have no fresh end or rate")
    assert verdict(CONFIG, work([40] * 6, missing=1), 1).order == 3
    assert verdict(CONFIG, work([1] * 16, missing=1), 12).order == 10


def test_an_idle_group_goes_to_zero_after_its_time() -> None:
    state, first = step(ZERO, work([0] * 4), 1, now_s=0)
    state, before = step(ZERO, work([0] * 4), 1, state=state, now_s=299)
    _, after = step(ZERO, work([0] * 4), 1, state=state, now_s=300)

    assert (first.order, before.order, after.order) == (None, None, 0)
    assert after.reasons == ("no lag and no records for 300 s",)


def test_a_record_begins_the_idle_time_again() -> None:
    state, _ = step(ZERO, work([0] * 4), 1, now_s=0)
    state, _ = step(ZERO, work([0] * 4, [0, 1, 0, 0]), 1, state=state, now_s=299)

    assert step(ZERO, work([0] * 4), 1, state=state, now_s=300)[1].order is None


def test_a_group_with_a_least_stays_at_it_when_idle() -> None:
    state, _ = step(CONFIG, work([0] * 4), 1, now_s=0)

    assert step(CONFIG, work([0] * 4), 1, state=state, now_s=900)[1].wanted == 1


def test_a_group_at_zero_wakes_with_its_first_record() -> None:
    asleep = verdict(ZERO, work([0] * 4), 0)
    awake = verdict(ZERO, work([0] * 4, [0, 1, 0, 0]), 0, state=ScalingState(scaled_s=999.0))

    assert (asleep.order, asleep.reasons) == (None, ("no records wait",))
    assert awake.order == 1
    assert awake.reasons[0] == "records wait, or the bounds ask for more"


def test_a_group_that_keeps_up_with_its_records_is_not_taken_for_idle() -> None:
    """Of a group that KEDA scales, only the recommendation is known: zero at first."""
    assert verdict(ZERO, work([40] * 6), 0).wanted == 3


def test_a_group_at_zero_wakes_with_as_many_replicas_as_it_needs() -> None:
    assert verdict(ZERO, work([0] * 4, [6_000] * 4), 0).order == 4


def test_a_group_at_zero_with_a_least_gets_it() -> None:
    assert verdict(CONFIG, work([0] * 4), 0).order == 1


def test_observe_and_pause_change_nothing_and_show_what_would_be() -> None:
    for config in (changed(CONFIG, mode="observe"), changed(CONFIG, paused=True)):
        found = verdict(config, work([40] * 6), 1)
        assert (found.order, found.proposal) == (None, ReplicaChange(1, 3))


def test_a_proposal_waits_for_its_approval() -> None:
    config = changed(CONFIG, mode="approve")
    state, found = step(config, work([40] * 6), 1)
    assert (found.order, found.waits, found.proposal) == (None, True, ReplicaChange(1, 3))

    state, refused = approve(config, state, 7)
    assert refused == "proposal 7 does not wait; 1 does"
    state, refused = approve(config, state, 1)
    state, found = step(config, work([40] * 6), 1, state=state)
    assert (found.order, found.waits, refused) == (3, False, "")


@pytest.mark.parametrize("mode", ["observe", "act"])
def test_a_change_that_does_not_wait_cannot_be_approved(mode: Literal["observe", "act"]) -> None:
    """Else an approval would count once the mode is `approve`, for a change nobody looked at."""
    config = changed(CONFIG, mode=mode)
    state, seen = step(config, work([40] * 6), 1)
    assert seen.proposal is not None
    after, refused = approve(config, state, 1)
    assert after == state
    assert refused == f"proposal 1 does not wait: mode {mode} takes no approvals"


def test_an_approval_holds_for_its_own_proposal_only() -> None:
    config = changed(CONFIG, mode="approve")
    state, _ = step(config, work([40] * 6), 1)
    state, _ = approve(config, state, 1)
    state, found = step(config, work([40] * 8), 1, state=state)

    assert (found.order, found.proposal) == (None, ReplicaChange(2, 4))


def test_a_proposal_that_nothing_asks_for_any_more_is_withdrawn() -> None:
    config = changed(CONFIG, mode="approve")
    state, _ = step(config, work([40] * 6), 1)
    state, _ = step(config, work([1] * 6), 1, state=state)

    assert approve(config, state, 1)[1] == "proposal 1 does not wait; none does"


def test_an_order_begins_the_cooldown_and_ends_the_proposal() -> None:
    state, _ = step(CONFIG, work([40] * 6), 1)
    state = ordered(state, 3, 1_000)

    assert (state.last_order, state.scaled_s, state.proposal) == (3, 1_000, None)


def test_another_autoscaler_is_named_and_not_fought() -> None:
    found = verdict(CONFIG, work([40] * 6), 1, scaled_by="HorizontalPodAutoscaler orders")

    assert (found.order, found.blocked) == (
        None,
        "HorizontalPodAutoscaler orders scales the workload, too",
    )


def test_what_another_manager_has_set_is_left_alone_for_a_time() -> None:
    state = ordered(ScalingState(), 3, 0)
    state, found = step(CONFIG, work([80] * 6), 2, state=state, changed_by="kubectl")
    assert found.order is None
    assert found.blocked.startswith("kubectl set 2 replicas")

    later = 1_000 + LEFT_ALONE_S
    _, held = step(CONFIG, work([80] * 6), 2, state=state, changed_by="kubectl", now_s=later - 1)
    _, free = step(CONFIG, work([80] * 6), 2, state=state, changed_by="kubectl", now_s=later)
    assert (held.order, free.order) == (None, 6)


def test_the_number_that_a_manifest_began_with_is_no_conflict() -> None:
    assert verdict(CONFIG, work([40] * 6), 1, changed_by="kubectl").order == 3


def test_another_manager_that_sets_the_same_number_is_no_conflict() -> None:
    state = ordered(ScalingState(), 1, 0)

    assert verdict(CONFIG, work([40] * 6), 1, state=state, changed_by="kubectl").order == 3


def test_amounts_are_rounded_up_to_two_digits() -> None:
    assert [rounded(n) for n in (-1, 0, 0.2, 7, 99.5, 101, 12_345)] == [
        0,
        0,
        1,
        7,
        100,
        110,
        13_000,
    ]


def test_a_number_that_others_set_is_shown_and_never_ordered() -> None:
    state, found = step(CONFIG, work([80.0] * 4), 1, of_others=True)
    assert (found.wanted, found.order, found.proposal, state.proposals) == (4, None, None, 0)


def used(mode: Literal["observe", "act"], *looks: tuple[float, int]) -> ReplicaUsage:
    """Return the usage of a group after looks at (time, replicas)."""
    state = ScalingState()
    for now_s, replicas in looks:
        state, _ = step(changed(CONFIG, mode=mode), work([10]), replicas, state=state, now_s=now_s)
    return state.usage


def test_replicas_are_counted_from_look_to_look_once_the_group_is_scaled() -> None:
    usage = used("act", (100.0, 4), (110.0, 4), (130.0, 2))
    assert (usage.seconds, usage.replica_s) == (30.0, 80.0)
    assert usage.saved_s(6.0) == 100.0
    assert usage.saved_s(1.0) == -50.0
    assert used("observe", (100.0, 4), (110.0, 4)) == ReplicaUsage()


def test_what_was_between_looks_far_apart_is_not_known() -> None:
    usage = used("act", (0.0, 4), (3_600.0, 2))
    assert (usage.seconds, usage.replica_s) == (LOOK_S, 2 * LOOK_S)
