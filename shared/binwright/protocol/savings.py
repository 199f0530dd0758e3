"""What a group's load of a past time would have cost: a record of the orders topic.

Of the settings that it compares, a person may adopt the change that it proposes: an `AdoptOrder`.
"""

import re
from dataclasses import dataclass
from typing import Literal, get_args

from binwright.protocol.fields import Amount, Number

SettingName = Literal["packing", "replan_interval_s"]
"""Settings of the controller that a proposal changes."""
PRICED = re.compile(r"sticky:([0-9]{1,4}(?:\.[0-9]{1,6})?)")
PRICES = 0.001, 1000.0
INTERVALS_S = 1.0, 86_400.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedCost:
    """What a rule would have cost the load, and what it would have done for it."""

    rule: str  # binwright, or a policy of `binwright lab simulate`
    change: str = ""  # of the settings, as NAME=VALUE; empty: the settings as they are
    replica_minutes: Amount  # minutes of all consumers that run
    within_sla: Amount  # share of the bytes that are read in time, 0 to 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Savings:
    """What a group's load of a past time costs under its settings, other rules, other settings.

    For people: no process acts on it; its record's offset is its number.
    """

    from_ms: Number  # wall clock, ms since 1970
    until_ms: Number  # wall clock, ms since 1970
    sla_s: Amount  # within which a record is to be read, seconds
    own: SimulatedCost  # of the group's controller with its settings
    others: tuple[SimulatedCost, ...] = ()  # of other rules
    proposed: SimulatedCost | None = None  # the change that costs least; null: none is worth it
    replaces: str = ""  # what the settings give where it is proposed otherwise; empty: not known
    kind: Literal["savings/1"] = "savings/1"


def setting_text(value: str | float) -> str:
    """Return a setting's value as changes and orders have it."""
    return value if isinstance(value, str) else f"{value:g}"


def parse_change(change: str) -> tuple[SettingName, str]:
    """Return the setting and the value of a change, as NAME=VALUE.

    Raises:
        ValueError: It is not one that proposals change, or the value is out of range.
    """
    name, _, value = change.partition("=")
    for setting in get_args(SettingName):
        if name == setting:
            if fault := value_fault(setting, value):
                raise ValueError(fault)
            return setting, value
    raise ValueError(f"controller.{name} is not changed by proposals")


def value_fault(setting: SettingName, value: str) -> str:
    """Return why a setting may not have a value by an order; empty: it may."""
    if setting == "packing":
        priced = PRICED.fullmatch(value)
        low, high = PRICES
        form, number = f"sticky:PRICE with a price from {low:g} to {high:g}", priced and priced[1]
    else:
        low, high = INTERVALS_S
        form, number = f"{low:g} to {high:g} seconds", value
    try:
        in_range = low <= float(number or "") <= high
    except ValueError:
        in_range = False
    return "" if in_range else f"controller.{setting} = {value!r} is out of range: expected {form}"
