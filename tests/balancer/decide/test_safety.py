"""What is refused, and what makes a run pause."""

import pytest

from binwright.balancer.decide.reassignment import next_steps
from binwright.balancer.decide.safety import LatencyGate, dead_directories, named, pauses, refusals
from binwright.balancer.decide.throttles import LEADER_LIST, LEADER_RATE, Copy, Throttles
from binwright.balancer.ports import ClusterState, ConfigResource, Disk, Targets

from .states import P0, P1, P2, P3, cluster, moving, placed

SAFE = cluster({P0: placed(1, 2), P1: placed(2, 3)})
THEIRS = Throttles.of_configs(
    {
        ConfigResource("topic", "orders"): {LEADER_LIST: "0:1"},
        ConfigResource("broker", ""): {LEADER_RATE: "1000"},
    }
)


def refused(targets: Targets, state: ClusterState = SAFE, least: int = 1) -> tuple[str, ...]:
    return refusals(targets, state, Throttles(), {"orders": least})


def test_a_plan_of_known_brokers_and_as_many_replicas_is_safe() -> None:
    assert refused({P0: (3, 4)}, least=2) == ()


def test_a_broker_that_is_down_is_refused() -> None:
    assert refused({P0: (1, 9)}) == ("broker 9 is down, or there is none of this number",)


def test_an_unknown_partition_is_refused() -> None:
    assert refused({P3: (1, 2)}) == ("orders-3 does not exist",)


def test_a_broker_that_is_named_twice_is_refused() -> None:
    assert refused({P0: (1, 1)}) == ("orders-0: replicas must be distinct brokers, got [1, 1]",)


def test_fewer_replicas_than_must_be_in_sync_are_refused_even_if_asked_for() -> None:
    found = refusals({P0: (1,)}, SAFE, Throttles(), {"orders": 2}, replication_may_change=True)
    assert found == ("orders-0: 1 replicas are fewer than min.insync.replicas (2)",)


def test_another_number_of_replicas_is_refused() -> None:
    assert refused({P0: (1, 2, 3)}) == (
        "orders-0: changes the replication from 2 to 3, which was not asked for",
    )


def test_another_number_of_replicas_may_be_asked_for() -> None:
    assert refusals({P0: (1, 2, 3)}, SAFE, Throttles(), {}, replication_may_change=True) == ()


def test_a_plan_that_is_under_way_changes_no_replication() -> None:
    state, under_way = moving((1, 2), (3, 4))
    assert refused({P0: (3, 4)}, cluster({P0: state}, under_way={P0: under_way})) == ()


def test_a_reassignment_of_another_tool_is_refused() -> None:
    state, under_way = moving((1, 2), (3, 2))
    seen = cluster({P0: placed(1, 2), P1: state}, under_way={P1: under_way})
    assert refused({P0: (2, 1)}, seen) == ("another tool reassigns: orders-1",)


def test_what_a_killed_run_of_another_plan_has_under_way_is_refused_with_what_to_do() -> None:
    state, under_way = moving((1, 2), (3, 2))
    seen = cluster({P0: placed(1, 2), P1: state}, under_way={P1: under_way})
    ours = Throttles.of_configs(Throttles().until(1, [Copy(P1, (1, 2), (3,))]))  # type: ignore[arg-type]
    assert refusals({P0: (2, 1)}, seen, ours, {}) == (
        (
            "a run of another plan was killed and has under way: orders-1; "
            "continue it, or take it back (binwright brokers cancel)"
        ),
    )


def test_throttles_of_another_tool_are_refused() -> None:
    assert refusals({P0: (2, 1)}, SAFE, THEIRS, {}) == (
        "another tool throttles the replication of orders",
    )


def test_a_rate_without_lists_limits_nothing_and_refuses_nothing() -> None:
    owners = Throttles.of_configs(
        {
            ConfigResource("broker", ""): {LEADER_RATE: "40000000"},
            ConfigResource("broker", "1", is_static=True): {LEADER_RATE: "40000000"},
        }
    )
    assert refusals({P0: (2, 1)}, SAFE, owners, {}) == ()
    assert list(pauses({P0: (2, 1)}, {P0: (2, 1)}, SAFE, owners, None)) == []


def test_a_dead_directory_is_named_with_what_it_held() -> None:
    disks = {
        1: Disk(None, None, {P0: 10}),
        2: Disk(None, None, {P1: 10}, dead=("/data/b",)),
        3: Disk(None, None, {P1: 10}, dead=("/data/a",)),
    }
    assert list(dead_directories(SAFE, disks)) == [
        (2, "log directory /data/b of broker 2 is dead: it held orders-0"),
        (3, "log directory /data/a of broker 3 is dead"),
    ]


def test_replicas_that_are_not_in_sync_are_refused() -> None:
    seen = cluster({P0: placed(1, 2), P1: placed(2, 3, lost=[3])})
    assert refused({P0: (2, 1)}, seen) == ("replicas are not in sync: orders-1; repair them first",)


def test_replicas_of_a_dead_broker_may_be_replaced() -> None:
    seen = cluster({P0: placed(1, 5, lost=[5])})
    assert refused({P0: (1, 2)}, seen) == ()


def paused(state: ClusterState, slow: str | None = None) -> list[str]:
    targets = {P0: (3, 2)}
    steps = next_steps(targets, state)
    left = {partition: targets[partition] for partition, step in steps.items() if step != "done"}
    return list(pauses(targets, left, state, Throttles(), slow))


def test_a_run_goes_on_while_its_own_copies_are_not_in_sync() -> None:
    state, under_way = moving((1, 2), (3, 2))
    assert paused(cluster({P0: state}, under_way={P0: under_way})) == []


def test_a_run_pauses_while_others_are_not_in_sync() -> None:
    assert paused(cluster({P0: placed(1, 2), P1: placed(2, 4, lost=[2])})) == [
        "replicas are not in sync: orders-1"
    ]


def test_a_run_pauses_while_a_broker_that_it_needs_is_down() -> None:
    assert paused(cluster({P0: placed(1, 2)}, brokers=2)) == [
        "broker 3 is down, or there is none of this number"
    ]


def test_a_run_needs_no_broker_for_what_is_done() -> None:
    assert paused(cluster({P0: placed(3, 2)}, brokers=2)) == []


def test_a_run_pauses_while_producers_wait() -> None:
    assert paused(cluster({P0: placed(1, 2)}), "slow") == ["slow"]


@pytest.mark.parametrize(
    ("count", "text"), [(2, "orders-0, orders-1"), (4, "orders-0, orders-1, orders-2 and 1 more")]
)
def test_a_reason_names_the_first_partitions(count: int, text: str) -> None:
    assert named([P0, P1, P2, P3][:count]) == text


def gate(*measured: float) -> LatencyGate:
    found = LatencyGate()
    for latency_s in measured:
        found = found.measured(latency_s)
    return found


CALM = [0.01] * 5


def test_nothing_is_known_before_the_baseline() -> None:
    found = gate(0.01, 0.02)
    assert (found.baseline_s, found.limit_s, found.closed) == (None, None, False)
    assert LatencyGate().latency_s is None


def test_the_limit_is_a_tenth_of_a_second_above_a_short_baseline() -> None:
    assert gate(*CALM).limit_s == 0.11


def test_the_limit_is_three_times_a_long_baseline() -> None:
    assert gate(*[1.0] * 5).limit_s == 3.0


def test_one_slow_request_does_not_close_it() -> None:
    assert not gate(*CALM, 5.0).closed


def test_it_closes_when_the_median_of_the_last_is_above_the_limit() -> None:
    found = gate(*CALM, 5.0, 5.0)
    assert found.closed
    assert found.latency_s == 5.0


def test_it_stays_closed_between_the_limit_and_half_the_way_to_the_baseline() -> None:
    assert gate(*CALM, 5.0, 5.0, 0.1, 0.1).closed


def test_it_opens_below_half_the_way() -> None:
    assert not gate(*CALM, 5.0, 5.0, 0.02, 0.02).closed
