"""A ConsumerGroup object as settings."""

from pathlib import Path

import pytest
import yaml

from binwright.controller.kube.api import Obj
from binwright.controller.kube.spec import settings_of
from binwright.core.errors import SettingsError
from binwright.shell.settings import load_settings

CRD = Path(__file__).parents[2] / "deploy" / "base" / "consumergroups.yaml"


def made(**spec: object) -> Obj:
    return {"metadata": {"name": "orders"}, "spec": {"topics": ["orders"], **spec}}


def test_every_budget_of_the_schema_reaches_the_settings() -> None:
    crd = yaml.safe_load(CRD.read_text())
    schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    names = sorted(schema["properties"]["budgets"]["properties"])
    budgets = {name: 40.0 + number for number, name in enumerate(names)}
    found = settings_of(made(budgets=budgets), load_settings()).controller
    told = [
        found.consumer_timeout_s,
        found.look_again_s,
        found.plan_timeout_s,
        found.repeat_s,
        found.start_timeout_s,
    ]
    assert told == list(budgets.values())


@pytest.mark.parametrize("mode", ["observe", "approve", "act"])
def test_a_pause_observes_whatever_the_mode(mode: str) -> None:
    assert settings_of(made(mode=mode), load_settings()).controller.mode == mode
    assert settings_of(made(mode=mode, pause=True), load_settings()).controller.mode == "observe"


def test_a_capacity_of_the_settings_belongs_to_their_limit() -> None:
    base = load_settings(controller={"limit_bytes_per_s": 100.0, "capacity_bytes_per_s": 90.0})
    found = settings_of(made(limitBytesPerSecond=60.0), base).controller
    assert found.capacity == 50.0


def test_all_that_does_not_hold_is_named() -> None:
    with pytest.raises(SettingsError, match=r"max_slots: .*; mode: "):
        settings_of(made(mode="perhaps", maxConsumers=0), load_settings())
