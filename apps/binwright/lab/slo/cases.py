"""What is run: tables of setups, each on one workload and one kind of group."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from binwright.lab.simulation.records.arrivals import RecordLoad
from binwright.lab.simulation.records.group import GroupSettings
from binwright.lab.slo.policies import PolicySetup, PolicySetups, settings_for

Make = Callable[[PolicySetups], PolicySetup]

ALGORITHM_1: Sequence[Make] = (PolicySetups.algorithm_1, PolicySetups.algorithm_1_apart)
ALGORITHM_2: Sequence[Make] = (PolicySetups.algorithm_2, PolicySetups.algorithm_2_apart)
BOTH: Sequence[Make] = (
    *ALGORITHM_2,
    PolicySetups.ours,
    PolicySetups.ours_by_default,
    PolicySetups.ours_incremental,
)
ALL: Sequence[Make] = (
    *ALGORITHM_2,
    PolicySetups.linear,
    PolicySetups.overprovision,
    PolicySetups.keda,
    PolicySetups.cpu,
    *BOTH[2:],
)
LONG: Sequence[Make] = (*ALGORITHM_1, *BOTH)


FRONTIER = "-frontier"
"""How the names of tables end in which two policies are compared at several settings."""
SHARES = (1.0, 0.95, 0.85, 0.75, 0.65)
THRESHOLDS = (10, 50, 70, 90, 120)
"""Of the lag rule: KEDA's default is 10; 90 is the lag that a replica works off within the SLA."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableCase:
    """A table: one workload, one kind of group, several policies."""

    name: str  # of its file
    title: str
    workload: RecordLoad
    setups: tuple[PolicySetup, ...]
    seeds: int = 1  # runs of each setup, from seed 0 on
    has_optimal: bool = False
    is_traced: bool = False  # whether the records of the first run are kept, for a figure


def tables_of(workload: RecordLoad, number: int) -> list[TableCase]:
    """Return the paper's tables of its workload 1 or 2, without the skewed one."""
    name = workload.name
    tables = [
        _table(
            *(name, f"Table {number + 1}: workload {number}", workload, ALL),
            has_optimal=True,
            is_traced=True,
        ),
        _table(
            *(f"{name}-heartbeat", f"Workload {number}, heartbeats of 0.5 s", workload, BOTH),
            settings=settings_for(0.05, heartbeat_s=0.5),
        ),
    ]
    if number == 1:
        tables += [
            _table(
                *(f"{name}-rebalance-{label}", f"Workload 1, rebalances of {seconds:g} s"),
                *(workload, LONG),
                settings=settings_for(seconds),
                rebalance_s=seconds,
            )
            for label, seconds in (("500ms", 0.5), ("2s", 2.0))
        ]
        # Not shown in the paper's tables, but in its Figure 10.
        tables.append(
            _table(f"{name}-algorithm-1", "Workload 1, Algorithm 1", workload, ALGORITHM_1)
        )
    return tables


def skewed_table(workload: RecordLoad, number: int) -> TableCase:
    """Return the comparison on a skewed workload."""
    title = f"Workload {number}, skewed: half of the events in two of nine partitions"
    return _table(workload.name, title, workload, ALL, is_traced=True)


def frontier_table(workload: RecordLoad, number: int) -> TableCase:
    """Return the scaler and KEDA's lag rule, each at several settings, on ordinary groups."""
    rebalance_s = 0.5
    made = PolicySetups(
        workload=workload,
        settings=replace(
            settings_for(0.05, heartbeat_s=0.5), protocol="incremental", sync_s=rebalance_s
        ),
        rebalance_s=rebalance_s,
    )
    return TableCase(
        name=f"{workload.name}{FRONTIER}",
        title=f"Workload {number}, cooperative groups: share in time for replica-minutes",
        workload=workload,
        setups=(*map(made.scaled_group, SHARES), *map(made.lag_rule, THRESHOLDS)),
    )


def other_tables(workload: RecordLoad) -> list[TableCase]:
    """Return groups that the paper does not have, from workload 1.

    Only `busy` of our policy was chosen on one of them, with arrivals spread over the second.
    """
    slow = settings_for(0.05, service_s=0.00568)
    smooth = settings_for(0.05, burst_s=0.05)
    large = replace(
        workload,
        name="w1-large",
        events=tuple(4 * events for events in workload.events),
        shares=(1 / 20,) * 20,
    )
    return [
        _table("other-slow", "Records take 5.68 ms, policies assume 5", workload, BOTH, slow),
        _table("other-smooth", "Arrivals spread over the second", workload, BOTH, smooth),
        _table("other-large", "Four times the load, 20 partitions", large, BOTH),
        _table("other-large-smooth", "The same, arrivals spread", large, BOTH, smooth),
    ]


def table_of_file(workload: RecordLoad, settings: GroupSettings) -> TableCase:
    """Return all policies on somebody's own workload."""
    title = f"{workload.name}: {sum(workload.events):,} events in {workload.duration_s:,} s"
    makes = (*ALGORITHM_1, *ALL)
    return _table(
        *("workload", title, workload, makes, settings),
        rate=1 / settings.service_s,
        has_optimal=True,
        is_traced=True,
    )


def _table(
    name: str,
    title: str,
    workload: RecordLoad,
    makes: Sequence[Make],
    settings: GroupSettings | None = None,
    *,
    rebalance_s: float = 0.05,
    rate: float = 200.0,
    has_optimal: bool = False,
    is_traced: bool = False,
) -> TableCase:
    setups = PolicySetups(
        workload=workload,
        settings=settings_for(rebalance_s) if settings is None else settings,
        rate=rate,
        rebalance_s=rebalance_s,
    )
    return TableCase(
        name=name,
        title=title,
        workload=workload,
        setups=tuple(make(setups) for make in makes),
        has_optimal=has_optimal,
        is_traced=is_traced,
    )
