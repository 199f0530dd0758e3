"""Which changes of settings a person may adopt."""

import pytest

from binwright.protocol.orders import parse_change, setting_text


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ("packing=sticky:0.5", ("packing", "sticky:0.5")),
        ("packing=sticky:1000", ("packing", "sticky:1000")),
        ("replan_interval_s=15", ("replan_interval_s", "15")),
        ("replan_interval_s=86400", ("replan_interval_s", "86400")),
    ],
)
def test_a_change_within_bounds_has_a_setting_and_a_value(
    change: str, expected: tuple[str, str]
) -> None:
    assert parse_change(change) == expected


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ("mode=act", "controller.mode is not changed by proposals"),
        ("", "controller. is not changed by proposals"),
        ("packing=mwf", "'mwf' is out of range: expected sticky:PRICE with a price from 0.001"),
        ("packing=sticky:0", "'sticky:0' is out of range"),
        ("packing=sticky:1001", "'sticky:1001' is out of range"),
        ("packing=sticky:1e-05", "'sticky:1e-05' is out of range"),
        ("replan_interval_s=0.5", "'0.5' is out of range: expected 1 to 86400 seconds"),
        ("replan_interval_s=1e9", "'1e9' is out of range"),
        ("replan_interval_s=nan", "'nan' is out of range"),
        ("replan_interval_s=often", "'often' is out of range"),
    ],
)
def test_another_change_is_refused(change: str, fault: str) -> None:
    with pytest.raises(ValueError, match=fault):
        parse_change(change)


def test_values_have_one_form() -> None:
    assert (setting_text("sticky"), setting_text(60.0), setting_text(0.25)) == (
        *("sticky", "60", "0.25"),
    )
