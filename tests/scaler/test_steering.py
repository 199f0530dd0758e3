"""From settings to what steers."""

import pytest

from binwright.protocol.errors import SettingsError
from binwright.runtime.settings import load
from binwright.scaler.decide.bin_pack import Algorithm1, Algorithm2
from binwright.scaler.decide.steering_policies import LeastLoaded, StickyEven
from binwright.scaler.settings import (
    ScaledGroupSettings,
    ScalerProgramSettings,
    SteeredGroupSettings,
)
from binwright.scaler.steering import publisher, steer, steering_policy

GROUP = SteeredGroupSettings(records_per_s=200, sla_s=0.5, pause_s=2.0)


def test_the_policy_is_sticky_unless_another_one_is_named() -> None:
    assert steering_policy(GROUP) == StickyEven()


def test_least_loaded_is_algorithm_1() -> None:
    policy = steering_policy(GROUP.model_copy(update={"policy": "least-loaded"}))
    assert isinstance(policy, LeastLoaded)
    assert type(policy.algorithm) is Algorithm1
    assert policy.algorithm.capacity.rate == 200


def test_least_loaded_lag_is_algorithm_2_with_the_pause_of_a_rebalance() -> None:
    policy = steering_policy(GROUP.model_copy(update={"policy": "least-loaded-lag"}))
    assert isinstance(policy, LeastLoaded)
    assert isinstance(policy.algorithm, Algorithm2)
    assert policy.algorithm.rebalance_s == 2.0


def test_a_rebalance_costs_what_the_settings_name() -> None:
    found = publisher(GROUP, 600.0, None)
    assert (found.rebalance.pause_s, found.rebalance.cooldown_s) == (2.0, 30.0)
    assert (found.capacity.sla_s, found.valid_s) == (0.5, 600.0)


def test_a_group_commits_every_five_seconds_unless_its_settings_differ() -> None:
    """As aiokafka and Kafka's Java consumer do with auto-commit, and as the scaler assumes."""
    scaled = ScaledGroupSettings(group="shop").config()
    assert GROUP.commit_interval_s == scaled.commit_interval_s == 5.0


async def test_steering_without_groups_is_refused() -> None:
    with pytest.raises(SettingsError, match=r"steering\.groups"):
        await steer(load(ScalerProgramSettings))


def test_a_group_is_a_table_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BINWRIGHT_STEERING__GROUPS", '{"shop": {"records_per_s": 50}}')
    assert load(ScalerProgramSettings).steering.groups["shop"].records_per_s == 50
