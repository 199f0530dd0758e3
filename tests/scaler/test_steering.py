"""From settings to what steers."""

import json

import pytest

from binwright.protocol.errors import SettingsError
from binwright.runtime.settings.loading import load
from binwright.scaler.decide.bin_pack import Algorithm1, Algorithm2
from binwright.scaler.decide.config import ScaledGroup
from binwright.scaler.decide.steering_policies import LeastLoaded, StickyEven
from binwright.scaler.settings import (
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
    """As aiokafka and Kafka's Java consumer do with auto-commit; the scaler begins with it."""
    assert GROUP.commit_interval_s == ScaledGroup(group="shop").commit_interval_s == 5.0


async def test_steering_without_groups_is_refused() -> None:
    with pytest.raises(SettingsError, match=r"steering\.groups"):
        await steer(load(ScalerProgramSettings))


def test_a_group_is_a_table_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BINWRIGHT_STEERING__GROUPS", '{"shop": {"records_per_s": 50}}')
    assert load(ScalerProgramSettings).steering.groups["shop"].records_per_s == 50


@pytest.mark.parametrize("assigns", [True, False])
def test_a_group_that_the_scaler_assigns_is_not_steered_as_well(
    assigns: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    group = {"group": "shop", "assigns": assigns, "command": ["work", "{replica}"]}
    monkeypatch.setenv("BINWRIGHT_SCALER__GROUPS", json.dumps([group]))
    monkeypatch.setenv("BINWRIGHT_STEERING__GROUPS", '{"shop": {"records_per_s": 50}}')
    if not assigns:
        assert load(ScalerProgramSettings).steering.groups
        return
    with pytest.raises(SettingsError, match=r"steering\.groups\.shop: scaler\.groups assigns"):
        load(ScalerProgramSettings)
