"""What a controller needs to lead a group, from its settings."""

import sys
from typing import Any

import pytest

from binwright.controller.group_context import group_context
from binwright.group.config import ControllerConfig
from binwright.protocol.daily_windows import DailyWindow
from binwright.protocol.errors import SettingsError
from binwright.protocol.model import BytesPerSecond, PerSlot, Slot
from binwright.runtime.settings.group import load_settings


def test_every_setting_of_the_machine_is_taken_over() -> None:
    own: dict[str, Any] = {
        "replan_interval_s": 61.0,
        "consumer_timeout_s": 11.0,
        "start_timeout_s": 301.0,
        "plan_timeout_s": 121.0,
        "command_retry_s": 9.0,
        "max_slots": 7,
        "min_slots": 2,
        "catch_up_s": 5.0,
        "mode": "approve",
    }
    limits = {"limit_bytes_per_s": 120.0, "capacity_bytes_per_s": 100.0, "slot_limits": {1: 60.0}}
    settings = load_settings(
        controller={**own, **limits}, monitor={"window_s": 20.0}, lake={"freshness_s": 20.0}
    )
    assert group_context(settings).config == ControllerConfig(
        limits=PerSlot(BytesPerSecond(120.0), {Slot(1): BytesPerSecond(60.0)}),
        capacity=BytesPerSecond(100.0),
        stale_s=60.0,
        on_time_s=80.0,
        topics=settings.landed_topics,
        **own,
    )


def test_pins_frozen_hours_and_budgets_reach_the_machine() -> None:
    settings = load_settings(
        controller={
            "pins": [
                {"topic": "orders", "partitions": [1, 2], "slot": 3},
                {"topic": "clicks", "slot": 0},
            ],
            "frozen_hours": ["22:00-06:00"],
            "moves_per_hour": 5,
            "moves_at_a_time": 2,
            "moving_bytes_per_s": 1e6,
        }
    )
    config = group_context(settings).config
    pins = [(pin.topic, pin.partition, pin.slot) for pin in config.pins]
    assert pins == [("orders", 1, 3), ("orders", 2, 3), ("clicks", None, 0)]
    assert {pin.by for pin in config.pins} == {"controller.pins"}
    assert config.frozen_hours == (DailyWindow(22 * 60, 6 * 60),)
    budgets = config.moves_per_hour, config.moves_at_a_time, config.moving_bytes_per_s
    assert budgets == (5, 2, 1e6)


def test_limits_are_measured_unless_they_are_given() -> None:
    settings = load_settings(controller={"slot_limits": {1: 60.0}})
    config = group_context(settings).config
    assert config.limits == PerSlot(BytesPerSecond(2.4e6), {Slot(1): BytesPerSecond(60.0)})
    assert (config.capacity, config.start_limits) == (2e6, config.limits)


def test_a_packing_that_cannot_run_here_is_a_wrong_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "scipy", None)
    settings = load_settings(controller={"packing": "exact:2"})
    with pytest.raises(SettingsError, match=r"^controller\.packing: packing 'exact:2' needs scipy"):
        group_context(settings)
