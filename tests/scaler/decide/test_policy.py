"""What policies observe is checked; a fixed group does not change."""

from math import inf, nan

import pytest
from tests.scaler.decide.groups import BURSTS, PAPER, observe

from binwright.protocol.errors import PackingError
from binwright.scaler.decide.policy import Bin, Fixed, Observation, ReplicaCapacity


@pytest.mark.parametrize("rate", [-1, inf, nan])
def test_a_rate_or_lag_out_of_range_is_refused_by_partition(rate: float) -> None:
    with pytest.raises(PackingError, match="orders-1"):
        observe([1, rate])
    with pytest.raises(PackingError, match="orders-1"):
        observe([1, 1], [0, rate])


def test_a_group_has_replicas_and_partitions() -> None:
    with pytest.raises(PackingError, match="at least one replica and one partition"):
        observe([1], replicas=0, owners=[0])
    with pytest.raises(PackingError, match="at least one replica and one partition"):
        Observation(time_s=0, loads={}, replicas=1)


def test_a_group_cools_until_the_period_is_over() -> None:
    assert not observe([1]).cooling(10)
    assert observe([1], time_s=20, scaled_s=10).cooling(10)
    assert not observe([1], time_s=20.1, scaled_s=10).cooling(10)


def test_a_fixed_group_keeps_its_replicas() -> None:
    decision, policy = Fixed(5).decide(observe([900]))

    assert (decision.replicas, decision.assignment) == (5, None)
    assert policy == Fixed(5)


@pytest.mark.parametrize(
    ("rate", "sla_s", "burst_s"),
    [(0, 1, 0), (inf, 1, 0), (1, 0, 0), (1, nan, 0), (1, 1, -1), (1, 1, inf)],
)
def test_a_capacity_out_of_range_is_refused(rate: float, sla_s: float, burst_s: float) -> None:
    with pytest.raises(PackingError, match="must be finite"):
        ReplicaCapacity(rate=rate, sla_s=sla_s, burst_s=burst_s)


def test_a_bin_holds_whole_records_of_lag() -> None:
    assert PAPER.bin(0.9) == Bin(180, 90)
    assert PAPER.bin(0.4) == Bin(80, 40)
    assert ReplicaCapacity(rate=7, sla_s=1).bin(0.5) == Bin(3.5, 3)
    assert ReplicaCapacity(rate=1, sla_s=0.1).bin(0.5).lag == 1  # else not even one would fit


def test_a_burst_must_be_worked_off_within_the_sla() -> None:
    """Half a second for a second's records: half of the rate. Two bursts wait after 1 s."""
    assert PAPER.sustained() == 200
    assert BURSTS.sustained() == 100
    assert BURSTS.sustained(0.9) == 100
    assert BURSTS.sustained(1) == 50
    assert ReplicaCapacity(rate=200, sla_s=0.5, burst_s=0.1).sustained() == 200


def test_what_gathers_in_a_pause_must_be_worked_off_within_the_sla() -> None:
    assert PAPER.sustained(0.5) == 200
    assert PAPER.sustained(2) == 50
