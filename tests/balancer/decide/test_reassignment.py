"""What a partition needs, and what starts now."""

import pytest

from binwright.balancer.decide.reassignment import (
    ClusterObservation,
    CopyLimits,
    PartitionStep,
    cancel,
    copy_of,
    decide,
    next_step,
    next_steps,
)
from binwright.balancer.decide.throttles import (
    ALL_BROKERS,
    LEADER_LIST,
    LEADER_RATE,
    Copy,
    Throttles,
)
from binwright.balancer.ports import ClusterState, ConfigResource, Disk, PartitionState, Replicas
from binwright.protocol.model import TopicPartition

from .states import P0, P1, P2, P3, cluster, moving, placed


@pytest.mark.parametrize(
    ("state", "target", "step"),
    [
        (placed(1, 2), (1, 2), "done"),
        (placed(1, 2, leader=2), (1, 2), "elect"),
        (placed(1, 2), (2, 1), "order"),
        (placed(1, 2), (1, 3), "copy"),
        (placed(1, 2), (1,), "copy"),
    ],
)
def test_a_partition_needs_what_differs_from_the_plan(
    state: PartitionState, target: Replicas, step: PartitionStep
) -> None:
    assert next_step(target, state) == step


@pytest.mark.parametrize(("target", "step"), [((3, 2), "copying"), ((4, 2), "foreign")])
def test_a_partition_under_way_is_ours_if_it_goes_where_the_plan_has_it(
    target: Replicas, step: PartitionStep
) -> None:
    state, under_way = moving((1, 2), (3, 2))
    assert next_step(target, state, under_way) == step


def test_a_partition_that_is_gone_needs_nothing() -> None:
    assert next_steps({P0: (1, 2), P1: (1, 2)}, cluster({P0: placed(1, 2)})) == {P0: "done"}


def test_a_copy_under_way_names_the_brokers_that_had_the_partition_as_sources() -> None:
    state, under_way = moving((1, 2), (3, 2))
    seen = cluster({P0: state}, under_way={P0: under_way})
    assert copy_of(P0, (3, 2), seen) == Copy(P0, (2, 1), (3,))


def test_a_copy_that_is_to_start_names_the_same_brokers() -> None:
    assert copy_of(P0, (3, 2), cluster({P0: placed(1, 2)})) == Copy(P0, (1, 2), (3,))


LIMITS = CopyLimits(rate=1_000_000, paused_rate=100_000, copies=1, leaders=2)
ORDERS = ConfigResource("topic", "orders")


def seen(
    state: ClusterState, throttles: Throttles | None = None, **rest: object
) -> ClusterObservation:
    return ClusterObservation(state, throttles or Throttles(), **rest)  # type: ignore[arg-type]


def throttled(*copies: Copy, rate: int = 1_000_000) -> Throttles:
    return Throttles.of_configs(Throttles().until(rate, copies))  # type: ignore[arg-type]


def test_a_plan_that_is_carried_out_is_finished() -> None:
    decided = decide({P0: (1, 2)}, LIMITS, seen(cluster({P0: placed(1, 2)})))
    assert decided.finished
    assert (decided.progress.done, decided.progress.total) == (1, 1)


def test_a_throttle_that_is_left_is_removed_before_it_is_finished() -> None:
    left = throttled(Copy(P0, (1,), (3,)))
    decided = decide({P0: (1, 2)}, LIMITS, seen(cluster({P0: placed(1, 2)}), left))
    assert not decided.finished
    assert decided.throttles[ALL_BROKERS][LEADER_RATE] is None


def test_leaders_move_before_copies_start() -> None:
    state = cluster({P0: placed(1, 2), P1: placed(1, 2)})
    decided = decide({P0: (3, 2), P1: (2, 1)}, LIMITS, seen(state))
    assert decided.reassign == {P1: (2, 1)}
    assert decided.elect == (P1,)


def test_few_leaders_move_at_once() -> None:
    state = cluster({p: placed(1, 2, leader=2) for p in (P0, P1, P2)})
    decided = decide(dict.fromkeys((P0, P1, P2), (1, 2)), LIMITS, seen(state))
    assert decided.elect == (P0, P1)
    assert decided.reassign == {}


def test_a_leader_that_is_not_in_sync_is_not_elected() -> None:
    state = cluster({P0: placed(1, 2, leader=2, lost=[1]), P1: placed(1, 2)})
    decided = decide({P0: (1, 2), P1: (1, 2)}, LIMITS, seen(state))
    assert decided.elect == ()
    assert decided.pauses == ("replicas are not in sync: orders-0",)


def test_a_copy_starts_with_its_throttle() -> None:
    decided = decide({P0: (3, 2)}, LIMITS, seen(cluster({P0: placed(1, 2)})))
    assert decided.reassign == {P0: (3, 2)}
    assert decided.throttles[ALL_BROKERS][LEADER_RATE] == "1000617"
    assert decided.throttles[ORDERS][LEADER_LIST] == "2000000617:2000000617,0:1,0:2"


def test_a_broker_sends_and_receives_few_copies_at_once() -> None:
    state = cluster({P0: placed(1, 2), P1: placed(2, 1), P2: placed(4, 1)}, brokers=5)
    decided = decide({P0: (3, 2), P1: (3, 1), P2: (5, 1)}, LIMITS, seen(state))
    assert list(decided.reassign) == [P0, P2]


def test_a_copy_under_way_counts() -> None:
    moved, under_way = moving((1, 2), (3, 2))
    state = cluster({P0: moved, P1: placed(1, 2)}, under_way={P0: under_way})
    decided = decide({P0: (3, 2), P1: (4, 2)}, LIMITS, seen(state))
    assert decided.reassign == {}
    assert decided.progress.copying == (Copy(P0, (2, 1), (3,)),)


def test_removing_replicas_keeps_no_broker_busy() -> None:
    state = cluster({P0: placed(1, 2), P1: placed(1, 2)})
    decided = decide({P0: (1,), P1: (1,)}, LIMITS, seen(state))
    assert list(decided.reassign) == [P0, P1]


def test_a_partition_without_a_leader_is_copied_all_the_same() -> None:
    """Kafka waits for a leader; the broker that receives it is busy meanwhile."""
    state = cluster({P0: placed(1, 2), P1: placed(1, 2)})
    leaderless = {**state.partitions, P0: placed(1, 2, leader=None)}
    lost = ClusterState(state.racks, leaderless)
    assert P0 in decide({P0: (3, 2)}, LIMITS, seen(lost)).reassign


def disk(usable: int, **sizes: int) -> Disk:
    names = {f"p{each.partition}": each for each in (P0, P1, P2, P3)}
    return Disk(10_000, usable, {names[name]: size for name, size in sizes.items()})


def test_a_copy_waits_until_its_broker_has_room() -> None:
    state = cluster({P0: placed(1, 2), P1: placed(1, 2)})
    disks = {1: disk(0, p0=500, p1=50), 3: disk(100)}
    decided = decide({P0: (3, 2), P1: (3, 2)}, LIMITS, seen(state, disks=disks))
    assert decided.reassign == {P1: (3, 2)}


def test_what_is_under_way_takes_its_room_with_it() -> None:
    moved, under_way = moving((1, 2), (3, 2))
    state = cluster({P0: moved, P1: placed(4, 2)}, under_way={P0: under_way})
    disks = {1: disk(0, p0=500), 4: disk(0, p1=100), 3: disk(450, p0=100)}
    two = CopyLimits(copies=2)
    assert decide({P0: (3, 2), P1: (3, 2)}, two, seen(state, disks=disks)).reassign == {}


def test_a_run_without_room_pauses() -> None:
    disks = {1: disk(0, p0=500), 3: disk(100)}
    decided = decide({P0: (3, 2)}, LIMITS, seen(cluster({P0: placed(1, 2)}), disks=disks))
    assert decided.pauses == ("no broker has room on its disks for what is left to copy",)


def test_an_old_broker_that_returns_no_room_is_not_limited() -> None:
    disks = {1: disk(0, p0=500), 3: Disk(None, None, {})}
    decided = decide({P0: (3, 2)}, LIMITS, seen(cluster({P0: placed(1, 2)}), disks=disks))
    assert decided.reassign == {P0: (3, 2)}


def test_a_pause_starts_nothing_and_slows_what_is_under_way() -> None:
    moved, under_way = moving((1, 2), (3, 2))
    state = cluster({P0: moved, P1: placed(1, 2)}, under_way={P0: under_way})
    running = throttled(Copy(P0, (2, 1), (3,)))
    decided = decide({P0: (3, 2), P1: (2, 1)}, LIMITS, seen(state, running, slow="slow"))
    assert (decided.pauses, decided.elect, decided.reassign) == (("slow",), (), {})
    assert decided.throttles == {
        ALL_BROKERS: dict.fromkeys(decided.throttles[ALL_BROKERS], "100617")
    }


def test_an_unlimited_run_stays_unlimited_while_it_is_paused() -> None:
    assert CopyLimits(rate=None).rate_now(paused=True) is None


def test_cancelling_takes_back_what_our_throttles_name_and_then_the_throttles() -> None:
    moved, under_way = moving((1, 2), (3, 2))
    state = cluster({P0: moved, P1: placed(1, 2)}, under_way={P0: under_way})
    ours = throttled(Copy(P0, (2, 1), (3,)))
    found = cancel(seen(state, ours))
    assert (found.cancel, found.throttles, found.finished) == ((P0,), {}, False)
    then = cancel(seen(cluster({P0: placed(1, 2)}), ours))
    assert then.throttles[ALL_BROKERS][LEADER_RATE] is None
    assert cancel(seen(cluster({P0: placed(1, 2)}))).finished


def test_cancelling_with_a_plan_takes_back_what_it_names() -> None:
    moved, under_way = moving((1, 2), (3, 2))
    state = cluster({P0: moved}, under_way={P0: under_way})
    assert cancel(seen(state), {P0: (3, 2)}).cancel == (P0,)
    assert cancel(seen(state), {P0: (4, 2), TopicPartition("bills", 0): (1,)}).finished


HOURLY = CopyLimits(copies=4, hourly_bytes=600)
THREE = cluster({P0: placed(1, 2), P1: placed(1, 2), P2: placed(1, 2)})
SIZES = {1: disk(0, p0=500, p1=200, p2=50), 3: disk(9_000)}
ALL_TO_3 = dict.fromkeys((P0, P1, P2), (3, 2))


def test_copies_start_within_the_bytes_of_an_hour_and_none_overtakes() -> None:
    decided = decide(ALL_TO_3, HOURLY, seen(THREE, disks=SIZES))
    assert list(decided.reassign) == [P0]
    assert decided.started_bytes == 500


def test_what_started_within_the_last_hour_counts() -> None:
    decided = decide(ALL_TO_3, HOURLY, seen(THREE, disks=SIZES, last_hour_bytes=400))
    assert decided.reassign == {}
    assert decided.pauses == ("400 of 600 bytes started within the last hour",)


def test_a_partition_larger_than_the_bytes_of_an_hour_goes_alone() -> None:
    decided = decide(ALL_TO_3, CopyLimits(copies=4, hourly_bytes=100), seen(THREE, disks=SIZES))
    assert list(decided.reassign) == [P0]
