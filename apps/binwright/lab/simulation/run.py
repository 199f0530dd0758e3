"""Runs policies over a load, each in a process of its own."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from binwright.lab import processes
from binwright.lab.simulation.clock import Clock
from binwright.lab.simulation.fluid.data_path import DataPath
from binwright.lab.simulation.fluid.group import FluidGroup
from binwright.lab.simulation.outcome import ConsumerCounts, CountSteps, Outcome
from binwright.lab.simulation.policies.catalogue import POLICIES, policy
from binwright.lab.simulation.policies.optimum import optimum
from binwright.lab.simulation.product.controller import SimulatedController
from binwright.lab.simulation.scenario import Scenario
from binwright.packing.catalogue import algorithm as packing_by_name

PRODUCT, OPTIMUM = "binwright", "optimum"
NAMES: tuple[str, ...] = (PRODUCT, *POLICIES, OPTIMUM)
"""What can be simulated: the product's controller, other policies, and the offline optimum."""

WEEK_CPU_S = {
    PRODUCT: 18.0,
    "algorithm-2": 12.0,
    "algorithm-1": 11.0,
    "assigned-group": 20.0,
    "scaled-group": 15.0,
    "sla-packing": 10.0,
    "mwf": 9.0,
    "cpu": 7.0,
    "linear": 7.0,
    "lag": 5.0,
    OPTIMUM: 2.0,
    "peak": 0.5,
}
"""Roughly what each takes for a week of 32 partitions: those that take longest begin first."""

OnProgress = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One policy in one scenario.

    Attributes:
        label: Of the outcome.
        policy: One of `NAMES`, `lag:THRESHOLD`, or `AS_IS`.
        scenario: The load and its circumstances.
        packing: Of the product's controller, by name.
        sla_s: What a policy that knows its aim is held to, seconds.
    """

    label: str
    policy: str
    scenario: Scenario
    packing: str = "sticky"
    sla_s: float = 5.0


def run(job: Run, *, every_second: bool = False) -> Outcome:
    """Simulate one policy over the whole load.

    Args:
        job: What is simulated.
        every_second: Let the product's controller tick each second, also when nothing can change.

    Raises:
        PackingError: There is no such packing or policy.
    """
    if job.policy == OPTIMUM:
        return _optimum(job)
    scenario = job.scenario
    clock, counts = Clock(scenario.begin), ConsumerCounts()
    data = DataPath(scenario.load, scenario.begin)
    if job.policy == PRODUCT:
        packing = packing_by_name(job.packing)
        group: SimulatedController | FluidGroup = SimulatedController(
            scenario, packing, clock, data, counts, every_second=every_second
        )
    else:
        group = FluidGroup(scenario, policy(job.policy, scenario, job.sla_s), clock, data, counts)
    clock.run_until(0.0)
    data.begin_counting(0.0)
    end = scenario.load.ends_at
    clock.run_until(end)
    latencies = data.finish(end)  # also completes the lag
    return Outcome(
        policy=job.label,
        running=counts.running(0.0, end),
        ready=counts.were_ready(0.0, end),
        lag=data.lag.bytes,
        latencies=latencies,
        moves=data.moves,
        changes=tuple(change for change in group.changes if change.at >= 0),
    )


def _optimum(job: Run) -> Outcome:
    load = job.scenario.load
    first = load.row_at(0.0)
    fewest = optimum(load.rows[first:], job.scenario.largest_capacity)
    steps = CountSteps(tuple(load.edges[first:-1]), fewest.consumers, load.ends_at)
    rows = len(fewest.consumers)
    note = f"exact in {rows - fewest.unproved} of {rows} rows, else a lower bound"
    return Outcome(policy=job.label, running=steps, ready=steps, note=note)


def run_all(jobs: Sequence[Run], on_done: OnProgress, cores: int) -> list[Outcome]:
    """Run all jobs; return their outcomes in the same order.

    Args:
        jobs: Each runs independently.
        on_done: Called with the label of each job that ended.
        cores: Of this machine, a process on each; 1: only this process.

    Raises:
        UserError: A job names an unknown packing or policy.
    """
    return processes.run_all(
        run,
        jobs,
        lambda job: on_done(job.label),
        cores,
        cost=lambda job: WEEK_CPU_S.get(job.policy.partition(":")[0], 0.0),
    )
