"""What a group saves: its load of a past time, simulated under its settings, and under others."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from binwright.lab.commands.conditions import Circumstances
from binwright.lab.simulation.outcome import Outcome
from binwright.lab.simulation.run import PRODUCT, Run
from binwright.lab.simulation.scenario import Timing
from binwright.lab.simulation.sources import Recorded
from binwright.packing.sticky.policy import PRICE
from binwright.protocol.model import PerSlot
from binwright.protocol.savings import Savings, SimulatedCost
from binwright.runtime.settings import ControllerSettings, Settings

PEAK, LAG = "peak", "lag"
OTHERS = (PEAK, LAG)
"""Consumers for the highest load all the time, and KEDA's rule."""
FACTORS = (0.25, 0.5, 2.0, 4.0)
"""By which one setting of the controller is changed."""
LEAST = 0.005
"""Share of the replica-minutes that a change must save to be worth a proposal."""
LATE = 0.0005
"""Share of the bytes that a proposed change may read late beyond what the settings do."""


@dataclass(frozen=True, slots=True)
class GroupLoad:
    """A group's load of a past time, and what its consumers sustain.

    Attributes:
        recorded: What its monitor measured.
        limits: Of its consumers, bytes/s, by its controller; None: as the settings have them.
        from_ms: Wall clock of the first measurement.
        until_ms: Wall clock of the last one.
    """

    recorded: Recorded
    limits: PerSlot | None
    from_ms: int
    until_ms: int


def changes(settings: Settings) -> Iterator[tuple[str, str]]:
    """Yield settings of the controller that may do better, name and value: `FACTORS` of now."""
    controller = settings.controller
    name, _, price = controller.packing.partition(":")
    if name == "sticky":
        for factor in FACTORS:
            yield "packing", f"sticky:{factor * float(price or PRICE):g}"
    for factor in FACTORS:
        yield "replan_interval_s", f"{factor * controller.replan_interval_s:g}"


def runs(load: GroupLoad, settings: Settings, timing: Timing, sla_s: float) -> list[Run]:
    """Return what is simulated: the settings, the other rules, and each change.

    Args:
        load: Of the group.
        settings: Of the group.
        timing: How long consumers take to start, and moves.
        sla_s: Within which a record is to be read, seconds.
    """
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


def _with(settings: Settings, name: str, value: str) -> Settings:
    given = settings.controller.model_dump(exclude_unset=True) | {name: value}
    return settings.changed(controller=ControllerSettings.model_validate(given))


def savings(load: GroupLoad, outcomes: Sequence[Outcome], sla_s: float) -> Savings:
    """Return what came of `runs`, in their order."""
    own, *rest = [_cost(outcome, sla_s) for outcome in outcomes]
    others, changed = rest[: len(OTHERS)], rest[len(OTHERS) :]
    return Savings(
        from_ms=load.from_ms,
        until_ms=load.until_ms,
        sla_s=sla_s,
        own=own,
        others=tuple(others),
        proposed=best_change(own, changed),
    )


def _cost(outcome: Outcome, sla_s: float) -> SimulatedCost:
    score = outcome.score(sla_s)
    rule, _, change = outcome.policy.partition(" ")
    return SimulatedCost(
        rule=rule,
        change=change,
        replica_minutes=score.replica_minutes,
        within_sla=1.0 if score.within_sla is None else score.within_sla,
    )


def best_change(own: SimulatedCost, changed: Sequence[SimulatedCost]) -> SimulatedCost | None:
    """Return the change that costs least of those that save `LEAST` and read as much in time."""
    worth = [
        each
        for each in changed
        if each.replica_minutes <= (1 - LEAST) * own.replica_minutes
        and each.within_sla >= own.within_sla - LATE
    ]
    return min(worth, key=lambda each: each.replica_minutes, default=None)
