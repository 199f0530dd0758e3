"""The machine decides by values that people adopted, while the settings give what they replace."""

from typing import Any

from tests.controller.decide.running_group import (
    PATIENT,
    at,
    running,
)

from binwright.group.plans import Pack
from binwright.protocol.orders import AdoptOrder


def adopt(setting: Any, value: str | None, replaces: str) -> AdoptOrder:
    return AdoptOrder(setting=setting, value=value, replaces=replaces, by="carol")


def test_plans_are_made_by_an_adopted_packing_until_the_settings_give_another() -> None:
    driver = running(at(0, 0), rate=70.0)
    driver.read(adopt("packing", "sticky:4", "sticky"))
    (asked,) = (a for a in driver.tick() if isinstance(a, Pack))
    assert asked.packing == "sticky:4"
    changed = running(at(0, 0), rate=70.0, packing="mwf")
    changed.read(adopt("packing", "sticky:4", "sticky"))
    (asked,) = (a for a in changed.tick() if isinstance(a, Pack))
    assert asked.packing is None
    text = "controller.packing is sticky:4 instead of sticky, as proposal 0 has it by carol"
    assert changed.group.people.held == (f"{text}; the settings give mwf by now",)


def test_smaller_plans_are_computed_at_an_adopted_interval() -> None:
    interval = f"{PATIENT.settings.replan_interval_s:g}"
    driver = running(at(0, 1), rate=10.0)
    driver.read(adopt("replan_interval_s", f"{4 * PATIENT.settings.replan_interval_s:g}", interval))
    later = PATIENT.settings.replan_interval_s + 1
    assert not any(isinstance(a, Pack) for a in driver.tick(later))
    driver.read(adopt("replan_interval_s", None, interval))
    assert any(isinstance(a, Pack) for a in driver.tick())


def test_what_an_object_gives_is_not_changed_by_an_order() -> None:
    driver = running(at(0, 0), rate=70.0, given=frozenset({"packing"}))
    driver.read(adopt("packing", "sticky:4", "sticky"))
    (asked,) = (a for a in driver.tick() if isinstance(a, Pack))
    assert asked.packing is None
    assert driver.group.people.held[0].endswith(
        "the group's object gives it, and is to be changed instead"
    )
