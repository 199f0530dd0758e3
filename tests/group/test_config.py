"""The settings of a group's controller hold together, and what it decides by follows from them."""

from typing import Any

import pytest
from pydantic import ValidationError
from tests.builders import CONFIG, configured

from binwright.group.config import ControllerSettings
from binwright.group.controls import pin_orders
from binwright.protocol.daily_windows import DailyWindow
from binwright.protocol.model import BytesPerSecond, PerSlot, Slot


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ({"limit_bytes_per_s": 10, "capacity_bytes_per_s": 20}, r"\(20\) must not exceed"),
        ({"capacity_bytes_per_s": 20}, "limit_bytes_per_s is auto: give both"),
        ({"zone_price": 1, "packing": "mwf"}, "zone_price needs the packing sticky"),
        ({"split": True, "mode": "approve"}, "split needs the mode act, not approve"),
        ({"min_slots": 4, "max_slots": 3}, r"min_slots \(4\) must not exceed max_slots \(3\)"),
        ({"slot_limits": {7: 10.0}, "max_slots": 7}, r"slot_limits: no slots \[7\]"),
        ({"pins": [{"topic": "a", "slot": 7}], "max_slots": 7}, r"pins: no slots \[7\]"),
        ({"frozen_hours": ["22:00"]}, "frozen_hours"),
    ],
)
def test_settings_that_contradict_each_other_are_refused(values: dict[str, Any], text: str) -> None:
    with pytest.raises(ValidationError, match=text):
        ControllerSettings(**values)


def test_limits_are_measured_unless_they_are_given() -> None:
    measured = ControllerSettings(slot_limits={1: 60.0})
    assert measured.limits == measured.start_limits
    assert measured.limits == PerSlot(BytesPerSecond(2.4e6), {Slot(1): BytesPerSecond(60.0)})
    assert measured.capacity == 2e6
    given = ControllerSettings(limit_bytes_per_s=120)
    assert (given.start_limits, given.capacity) == (None, 100.0)


def test_pins_and_frozen_hours_are_orders_and_windows() -> None:
    settings = ControllerSettings.model_validate(
        {
            "pins": [
                {"topic": "orders", "partitions": [1, 2], "slot": 3},
                {"topic": "clicks", "slot": 0},
            ],
            "frozen_hours": ["22:00-06:00"],
        }
    )
    orders = [(pin.topic, pin.partition, pin.slot) for pin in pin_orders(settings.pins)]
    assert orders == [("orders", 1, 3), ("orders", 2, 3), ("clicks", None, 0)]
    assert {pin.by for pin in pin_orders(settings.pins)} == {"controller.pins"}
    assert settings.frozen_windows == (DailyWindow(22 * 60, 6 * 60),)


def test_changed_settings_keep_the_limits_and_forget_what_followed_from_others() -> None:
    config = configured(120, 100, frozen_hours=("22:00-06:00",))
    assert config.settings.frozen_windows
    changed = config.with_settings(frozen_hours=())
    assert changed.settings.frozen_windows == ()
    assert (changed.limits, changed.capacity) == (config.limits, config.capacity)
    with pytest.raises(TypeError, match="slots_max"):
        CONFIG.with_settings(slots_max=3)
