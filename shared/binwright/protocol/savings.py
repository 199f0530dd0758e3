"""What a group's load of a past time would have cost: a record of the orders topic."""

from dataclasses import dataclass
from typing import Literal

from binwright.protocol.fields import Amount, Number


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

    For people: no process acts on it.
    """

    from_ms: Number  # wall clock, ms since 1970
    until_ms: Number  # wall clock, ms since 1970
    sla_s: Amount  # within which a record is to be read, seconds
    own: SimulatedCost  # of the group's controller with its settings
    others: tuple[SimulatedCost, ...] = ()  # of other rules
    proposed: SimulatedCost | None = None  # the change that costs least; null: none is worth it
    kind: Literal["savings/1"] = "savings/1"
