"""A simulated group serves each record once, and rebalances as Kafka's protocols do."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pytest

from binwright.lab.simulation.assignors import partition
from binwright.lab.simulation.records.arrivals import RecordLoad
from binwright.lab.simulation.records.consumers import Phase
from binwright.lab.simulation.records.group import GroupSettings
from binwright.lab.simulation.records.run import RecordOutcome, simulate
from binwright.protocol.model import Slot
from binwright.scaler.decide.policy import Decision, Fixed, Observation

SETTINGS = GroupSettings(warm_up_s=10.0, start_spread_s=0.0, overhead_s=0.0)


@dataclass(frozen=True)
class Scripted:
    """Orders these replicas at these times, the earliest first."""

    orders: tuple[tuple[float, int], ...]
    assignment: tuple[int, ...] = ()

    def decide(self, observation: Observation) -> "tuple[Decision, Scripted]":
        if self.orders and observation.time_s >= self.orders[0][0]:
            plan = {partition(number): Slot(slot) for number, slot in enumerate(self.assignment)}
            decision = Decision(self.orders[0][1], "scripted", plan or None)
            return decision, replace(self, orders=self.orders[1:])
        return Decision(observation.replicas, "scripted"), self


def load(events: Sequence[int], partitions: int = 2) -> RecordLoad:
    shares = (1 / partitions,) * partitions
    return RecordLoad(name="w", events=tuple(events), shares=shares, random=False)


def play(
    events: Sequence[int], orders: Sequence[tuple[float, int]] = (), **changes: object
) -> RecordOutcome:
    settings = replace(SETTINGS, **changes)  # type: ignore[arg-type]
    return simulate(load(events), Scripted(tuple(orders)), settings, seed=0)


def late(done: RecordOutcome, from_s: float, to_s: float) -> float:
    """Return the longest latency of records that were done between two times."""
    done_s, latency_s, _ = done.group.latencies.last_of_runs()
    chosen = latency_s[(done_s >= from_s) & (done_s < to_s)]
    return float(chosen.max())


def test_a_burst_is_worked_off_one_record_after_the_other() -> None:
    done = play([10])

    assert done.latencies_s == pytest.approx([0.002 + 0.005 * n for n in range(1, 11)])


def test_a_batch_is_bounded_and_the_next_one_follows_its_commit() -> None:
    done = play([4], max_poll=3)

    assert done.latencies_s == pytest.approx([0.007, 0.012, 0.017, 0.017 + 0.003 + 0.002 + 0.005])


def test_records_wait_while_the_consumer_is_busy() -> None:
    """300 records take 1.5 s: the next burst begins half a second late."""
    done = play([300, 2])

    assert done.latencies_s[-1] == pytest.approx(0.515, abs=0.01)


@pytest.mark.parametrize("protocol", ["eager", "incremental"])
@pytest.mark.parametrize("drains", [True, False])
@pytest.mark.parametrize("callback_s", [0.0, 2.0])
def test_every_record_is_served_once_whatever_comes_and_goes(
    protocol: str, drains: bool, callback_s: float
) -> None:
    orders = [(10, 3), (12, 1), (14, 4), (20, 2), (21, 5), (30, 1)]
    done = play([90] * 40, orders, protocol=protocol, drains=drains, callback_s=callback_s)

    assert len(done.latencies_s) == 40 * 90
    assert all(one.lag == 0 for one in done.group.partitions)
    assert [c.phase for c in done.group.consumers].count(Phase.READING) == 1
    assert sum(c.phase is not Phase.ENDED for c in done.group.consumers) == 1


def test_a_new_member_reads_after_its_start_and_a_heartbeat() -> None:
    """Ordered at 10 to 11 s, it joins 4 s later; the others learn of it at 15 or 18 s."""
    done = play([20] * 30, [(10, 2)])
    done_s, _, consumer = done.group.latencies.last_of_runs()

    assert 15 <= done_s[consumer == 1].min() <= 19.2


def test_a_member_that_joins_interrupts_no_one_before_the_heartbeat() -> None:
    done = play([20] * 30, [(10, 2)], callback_s=0.0)

    assert late(done, 0, 30) < 0.2


def test_what_a_leaving_member_read_waits_for_the_heartbeat() -> None:
    done = play([20] * 40, [(10, 2), (25, 1)])

    assert late(done, 20, 25) < 0.2
    assert 1.0 < late(done, 25, 40) < 3.5


def test_a_shorter_heartbeat_shortens_that() -> None:
    done = play([20] * 40, [(10, 2), (25, 1)], heartbeat_s=0.5)

    assert late(done, 25, 40) < 1.0


def test_a_long_callback_stops_every_member_of_an_eager_group() -> None:
    eager = play([20] * 40, [(10, 2)], callback_s=2.0)
    done_s, latency_s, consumer = eager.group.latencies.last_of_runs()
    old = (consumer == 0) & (done_s > 10)

    assert latency_s[old].max() > 1.0


def test_an_incremental_rebalance_stops_only_what_moves() -> None:
    done = play([20] * 40, [(10, 2)], callback_s=2.0, protocol="incremental")
    _, latency_s, consumer = done.group.latencies.last_of_runs()

    assert latency_s[consumer == 0].max() < 0.2
    assert latency_s[consumer == 1].max() > 1.0


def test_a_draining_member_reads_on_until_its_partitions_have_moved() -> None:
    done = play([20] * 40, [(10, 2), (25, 1)], protocol="incremental", drains=True)

    assert late(done, 25, 40) < 0.3


def test_replica_minutes_are_from_the_order_to_the_end() -> None:
    """One replica for 60 s, another one from about 10 s to 40.2 s and a little more."""
    done = play([2] * 60, [(10, 2), (40, 1)])

    assert done.replica_minutes == pytest.approx((60 + 30.2) / 60, abs=0.02)
    assert done.logged_minutes < done.replica_minutes - 4 / 60


def test_the_same_seed_gives_the_same_run() -> None:
    workload = replace(load([50] * 60), random=True)
    runs = [simulate(workload, Fixed(1), SETTINGS, seed) for seed in (3, 3, 4)]

    assert np.array_equal(runs[0].latencies_s, runs[1].latencies_s)
    assert not np.array_equal(runs[0].latencies_s, runs[2].latencies_s)


def test_arrivals_depend_on_the_seed_alone() -> None:
    workload = replace(load([50] * 30), random=True)
    one, two = (
        simulate(workload, policy, SETTINGS, 7) for policy in (Fixed(1), Scripted(((12, 2),)))
    )
    before = np.count_nonzero(one.group.latencies.last_of_runs()[0] < 12)

    assert np.array_equal(
        one.group.latencies.last_of_runs()[1][:before],
        two.group.latencies.last_of_runs()[1][:before],
    )


def test_arrivals_can_be_spread_over_the_second() -> None:
    """50 records in one burst wait up to a quarter of a second; in twenty bursts not."""
    at_once, spread = (play([50] * 20, burst_s=burst_s) for burst_s in (1.0, 0.05))

    assert len(spread.latencies_s) == len(at_once.latencies_s) == 1_000
    assert at_once.latencies_s.max() > 0.25 > 2 * spread.latencies_s.max()


def test_a_replica_that_is_not_up_yet_can_be_taken_back() -> None:
    done = play([20] * 30, [(10, 3), (11, 1)])

    assert [c.first_s is None for c in done.group.consumers] == [False, True, True]


def test_an_assignment_decides_who_reads_what() -> None:
    scripted = Scripted(((10, 2),), assignment=(1, 1))
    done = simulate(load([20] * 30), scripted, SETTINGS, seed=0)

    assert [len(c.partitions) for c in done.group.consumers] == [0, 2]


def test_an_assignment_alone_makes_a_rebalance() -> None:
    scripted = Scripted(((10, 2), (20, 2)), assignment=(1, 1))
    done = simulate(load([20] * 30), scripted, SETTINGS, seed=0)

    assert done.group.rebalances == 2
    assert (done.scaler.ups, done.scaler.downs) == (1, 0)
