"""The bins that policies propose for a group of a given size."""

from tests.scaler.decide.policies.groups import PAPER, PARTITIONS, observe

from binwright.scaler.decide.assignor.even import imbalance
from binwright.scaler.decide.assignor.policies import LeastLoaded, StickyEven
from binwright.scaler.decide.policies.bin_pack import Algorithm1, Algorithm2

ONE = LeastLoaded(algorithm=Algorithm1(capacity=PAPER))
TWO = LeastLoaded(algorithm=Algorithm2(capacity=PAPER, rebalance_s=0.5))


def test_sticky_leaves_an_even_group_alone() -> None:
    assert StickyEven().propose(observe([50, 50, 50, 50], replicas=2)) is None


def test_sticky_moves_one_partition_of_an_uneven_group() -> None:
    observation = observe([50, 50, 50, 50], replicas=2, owners=[0, 0, 0, 1])
    proposal = StickyEven().propose(observation)
    assert proposal is not None
    assert [len(inside) for inside in proposal.bins] == [2, 2]
    assert PARTITIONS[3] in proposal.bins[1]


def test_the_reason_of_sticky_is_how_even_the_group_becomes() -> None:
    proposal = StickyEven().propose(observe([50, 50], replicas=2, owners=[0, 0]))
    assert proposal is not None
    assert proposal.reason == "the largest load becomes 1.00 of the mean"


def test_least_loaded_leaves_a_group_alone_that_serves_in_time() -> None:
    assert ONE.propose(observe([80, 80], replicas=2)) is None


def test_least_loaded_leaves_a_group_alone_that_has_too_many_members() -> None:
    assert ONE.propose(observe([10, 10], replicas=2)) is None


def test_least_loaded_packs_again_where_a_member_has_too_much() -> None:
    observation = observe([80, 80, 80, 80], replicas=2, owners=[0, 0, 0, 1])
    proposal = ONE.propose(observation)
    assert proposal is not None
    assert [len(inside) for inside in proposal.bins] == [2, 2]
    assert proposal.reason == "a replica has more than it serves in time, and others have room"


def test_a_group_with_too_few_members_gets_bins_that_are_as_even_as_can_be() -> None:
    observation = observe([150, 100, 100, 150], replicas=2, owners=[0, 0, 0, 1])
    proposal = ONE.propose(observation)
    assert proposal is not None
    rates = {p: load.rate for p, load in observation.loads.items()}
    assert imbalance(proposal.bins, rates) == 1
    assert proposal.reason == "rate and lag need more replicas: 4, and there are 2"


def test_a_member_that_is_not_needed_gets_an_empty_bin() -> None:
    observation = observe([90, 90, 90, 0], replicas=3, owners=[0, 0, 0, 1])
    proposal = ONE.propose(observation)
    assert proposal is not None
    assert len(proposal.bins) == 3


def test_algorithm_2_counts_the_lag_of_its_own_rebalance() -> None:
    """At 90/s 45 records gather within 0.5 s, so that two partitions do not fit one member."""
    observation = observe([90, 90, 90], [10, 10, 10], replicas=2, owners=[0, 0, 0])
    first, second = ONE.propose(observation), TWO.propose(observation)
    assert first is not None
    assert second is not None
    assert "and there are" not in first.reason
    assert second.reason.endswith("3, and there are 2")
