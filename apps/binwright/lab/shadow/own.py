"""What one of binwright's groups saves: its past load under its settings, and under others."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from binwright.group.config import ControllerSettings
from binwright.lab.commands.conditions import Circumstances
from binwright.lab.shadow.costs import cheapest, cost_of, saves
from binwright.lab.simulation.outcome import Outcome
from binwright.lab.simulation.run import PRODUCT, Run
from binwright.lab.simulation.scenario import Timing
from binwright.lab.simulation.sources import Recorded
from binwright.packing.sticky.policy import PRICE
from binwright.protocol.model import PerSlot
from binwright.protocol.orders import (
    AdoptOrder,
    GroupOrder,
    Savings,
    SettingName,
    SimulatedCost,
    parse_change,
    setting_text,
    value_fault,
)
from binwright.runtime.settings.group import Settings

PEAK, LAG = "peak", "lag"
OTHERS = (PEAK, LAG)
"""Consumers for the highest load all the time, and KEDA's rule."""
FACTORS = (0.25, 0.5, 2.0, 4.0)
"""By which one setting of the controller is changed."""


@dataclass(frozen=True, slots=True)
class GroupLoad:
    """A group's load of a past time, and what its consumers sustain.

    Attributes:
        recorded: What its monitor measured.
        limits: Of its consumers, bytes/s, by its controller; None: as the settings have them.
        from_ms: Wall clock of the first measurement.
        until_ms: Wall clock of the last one.
        orders: In force.
    """

    recorded: Recorded
    limits: PerSlot | None
    from_ms: int
    until_ms: int
    orders: tuple[GroupOrder, ...] = ()


def changes(settings: Settings) -> Iterator[tuple[SettingName, str]]:
    """Yield settings of the controller that may do better, name and value: `FACTORS` of now."""
    for name, value in _changes(settings):
        if not value_fault(name, value):
            yield name, value


def _changes(settings: Settings) -> Iterator[tuple[SettingName, str]]:
    controller = settings.controller
    name, _, price = controller.packing.partition(":")
    if name == "sticky":
        for factor in FACTORS:
            yield "packing", f"sticky:{setting_text(factor * float(price or PRICE))}"
    for factor in FACTORS:
        yield "replan_interval_s", setting_text(factor * controller.replan_interval_s)


def runs(load: GroupLoad, settings: Settings, timing: Timing, sla_s: float) -> list[Run]:
    """Return what is simulated: the settings, the other rules, and each change.

    Args:
        load: Of the group.
        settings: Of the group.
        timing: How long consumers take to start, and moves.
        sla_s: Within which a record is to be read, seconds.
    """
    settings = with_adopted(settings, load.orders)
    circumstances = Circumstances(
        source=load.recorded, timing=timing, sla_s=sla_s, limits=load.limits
    )
    return [
        *(circumstances.run(policy, "", settings) for policy in (PRODUCT, *OTHERS)),
        *(
            circumstances.run(PRODUCT, f"{name}={value}", _with(settings, name, value))
            for name, value in changes(settings)
        ),
    ]


def with_adopted(settings: Settings, orders: Iterable[GroupOrder]) -> Settings:
    """Return the settings with the values that people have adopted, as the controller takes them.

    An adoption holds while the settings give what it replaces.
    """
    for order in orders:
        if isinstance(order, AdoptOrder) and order.value is not None:
            name, value = order.setting, order.value
            if _given(settings, name) == order.replaces and not value_fault(name, value):
                settings = _with(settings, name, value)
    return settings


def _given(settings: Settings, name: SettingName) -> str:
    return setting_text(getattr(settings.controller, name))


def _with(settings: Settings, name: str, value: str) -> Settings:
    controller = settings.controller.model_dump(exclude_unset=True) | {name: value}
    return settings.changed(controller=ControllerSettings.model_validate(controller))


def savings(
    load: GroupLoad, settings: Settings, outcomes: Sequence[Outcome], sla_s: float
) -> Savings:
    """Return what came of `runs`, in their order."""
    own, *rest = [cost_of(outcome, sla_s) for outcome in outcomes]
    others, changed = rest[: len(OTHERS)], rest[len(OTHERS) :]
    proposed = best_change(own, changed)
    return Savings(
        from_ms=load.from_ms,
        until_ms=load.until_ms,
        sla_s=sla_s,
        own=own,
        others=tuple(others),
        proposed=proposed,
        replaces=_given(settings, parse_change(proposed.change)[0]) if proposed else "",
    )


def best_change(own: SimulatedCost, changed: Sequence[SimulatedCost]) -> SimulatedCost | None:
    """Return the change that costs least of those that are worth it and read as much in time."""
    return cheapest([cost for cost in changed if saves(cost, own)], own.within_sla)
