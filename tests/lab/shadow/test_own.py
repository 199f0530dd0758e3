"""What a group saves, and which change of its settings is proposed."""

from dataclasses import replace

import numpy as np
import pytest

from binwright.lab.shadow.costs import LATE, LEAST
from binwright.lab.shadow.own import (
    GroupLoad,
    best_change,
    changes,
    runs,
    savings,
    with_adopted,
)
from binwright.lab.simulation.run import run
from binwright.lab.simulation.scenario import Timing
from binwright.lab.simulation.sources import Recorded
from binwright.protocol.model import BytesPerSecond, PerSlot, TopicPartition
from binwright.protocol.orders import AdoptOrder, FreezeOrder, SimulatedCost
from binwright.runtime.settings.group import Settings, load_settings

MINUTES, EVERY_S = 30, 5.0
QUIET, BUSY = 100_000.0, 900_000.0
OWN = SimulatedCost(rule="binwright", replica_minutes=1000.0, within_sla=0.999)


def settings(**controller: object) -> Settings:
    limits = {"limit_bytes_per_s": 1_000_000.0, "capacity_bytes_per_s": 900_000.0}
    return load_settings(group="g", topics=("t",), controller={**limits, **controller})


def busy_for_a_third() -> GroupLoad:
    """Return half an hour of four partitions, of which ten minutes are busy."""
    times = np.arange(0.0, MINUTES * 60, EVERY_S)
    busy = (times >= 600) & (times < 1200)
    rates = np.where(busy, BUSY, QUIET)[:, None].repeat(4, axis=1)
    written = np.cumsum(rates * EVERY_S, axis=0)
    partitions = tuple(TopicPartition("t", number) for number in range(4))
    recorded = Recorded(partitions, times, rates, written, window_s=30.0)
    return GroupLoad(recorded, None, from_ms=0, until_ms=1_800_000)


def changed(minutes: float, within: float = 0.999) -> SimulatedCost:
    return SimulatedCost(rule="binwright", change="x=1", replica_minutes=minutes, within_sla=within)


def test_fewer_consumers_than_for_the_peak_all_the_time() -> None:
    load, chosen = busy_for_a_third(), settings()
    planned = runs(load, chosen, Timing(), 5.0)
    found = savings(load, chosen, [run(one) for one in planned], 5.0)

    assert [each.rule for each in found.others] == ["peak", "lag"]
    peak = found.others[0]
    assert peak.replica_minutes == pytest.approx(4 * MINUTES, rel=0.02)
    assert found.own.replica_minutes < 0.75 * peak.replica_minutes
    assert found.own.change == ""
    assert 0.9 < found.own.within_sla <= 1.0
    assert (found.from_ms, found.until_ms, found.sla_s) == (0, 1_800_000, 5.0)


def test_each_change_is_one_setting_beside_those_there_are() -> None:
    assert list(changes(settings(packing="sticky:4", replan_interval_s=60.0))) == [
        ("packing", "sticky:1"),
        ("packing", "sticky:2"),
        ("packing", "sticky:8"),
        ("packing", "sticky:16"),
        ("replan_interval_s", "15"),
        ("replan_interval_s", "30"),
        ("replan_interval_s", "120"),
        ("replan_interval_s", "240"),
    ]
    assert {name for name, _ in changes(settings(packing="mwf"))} == {"replan_interval_s"}
    planned = runs(busy_for_a_third(), settings(), Timing(), 5.0)
    assert planned[3].packing == "sticky:0.5"
    assert planned[-1].scenario.config.settings.replan_interval_s == 240.0


def test_only_changes_that_can_be_adopted_are_tried() -> None:
    assert list(changes(settings(packing="sticky:400", replan_interval_s=43_200.0))) == [
        ("packing", "sticky:100"),
        ("packing", "sticky:200"),
        ("packing", "sticky:800"),
        ("replan_interval_s", "10800"),
        ("replan_interval_s", "21600"),
        ("replan_interval_s", "86400"),
    ]


def test_what_is_adopted_is_simulated_as_long_as_the_settings_are_the_same() -> None:
    order = AdoptOrder(setting="packing", value="sticky:4", replaces="sticky", by="carol")
    load = replace(busy_for_a_third(), orders=(FreezeOrder(frozen=True, by="bob"), order))
    planned = runs(load, settings(), Timing(), 5.0)
    assert (planned[0].packing, planned[3].packing) == ("sticky:4", "sticky:1")
    assert runs(load, settings(packing="mwf"), Timing(), 5.0)[0].packing == "mwf"
    wrong = replace(order, value="mwf")
    assert with_adopted(settings(), [wrong]) == settings()
    lifted = replace(order, value=None)
    assert with_adopted(settings(), [lifted]) == settings()


def test_a_proposal_names_what_the_settings_give() -> None:
    load, chosen = busy_for_a_third(), settings(replan_interval_s=900.0)
    outcomes = [run(one) for one in runs(load, chosen, Timing(), 3600.0)]
    found = savings(load, chosen, outcomes, 3600.0)
    assert found.proposed is not None
    name = found.proposed.change.partition("=")[0]
    assert (name, found.replaces) == ("replan_interval_s", "900")
    steady = savings(load, chosen, [outcomes[0]] * len(outcomes), 3600.0)
    assert (steady.proposed, steady.replaces) == (None, "")


def test_the_limits_that_a_controller_measured_hold() -> None:
    measured = PerSlot(BytesPerSecond(2_000_000.0))
    load = busy_for_a_third()
    known = GroupLoad(load.recorded, measured, load.from_ms, load.until_ms)
    first = runs(known, settings(), Timing(), 5.0)[0].scenario.config
    assert first.limits == measured
    assert first.capacity == 1_800_000.0  # the same share of it


@pytest.mark.parametrize(
    ("tried", "best"),
    [
        ([changed(900.0), changed(800.0)], 800.0),
        ([changed(1000 * (1 - LEAST))], 995.0),
        ([changed(996.0)], None),  # too little to be worth it
        ([changed(500.0, 0.999 - 2 * LATE)], None),  # it reads late
        ([changed(500.0, 0.999 - LATE / 2)], 500.0),
        ([], None),
    ],
)
def test_a_proposed_change_costs_less_and_reads_as_much_in_time(
    tried: list[SimulatedCost], best: float | None
) -> None:
    found = best_change(OWN, tried)
    assert (found and found.replica_minutes) == best
