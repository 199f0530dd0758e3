"""A comparison of policies as a section of the lab's report."""

from collections.abc import Sequence

from binwright.controller.decide.group import ControllerConfig
from binwright.lab.report.section import Section
from binwright.lab.simulation import sources
from binwright.lab.simulation.charts import charts
from binwright.lab.simulation.outcome import HOUR_S, Outcome, Score
from binwright.lab.simulation.run import NAMES, Run, run_all
from binwright.lab.simulation.scenario import Scenario, Timing, warm_up_s
from binwright.lab.simulation.tables import MB, summary
from binwright.protocol.model import BytesPerSecond, PerSlot
from binwright.recordings.generated import Walk

LIMIT, CAPACITY = BytesPerSecond(2_400_000.0), BytesPerSecond(2_000_000.0)
SLA_S = 5.0


def random_walk(processes: int) -> Section:
    """Return all policies on two hours of a load like the paper's: 32 partitions, delta 5."""
    config = ControllerConfig(limits=PerSlot(LIMIT), capacity=CAPACITY)
    timing = Timing()
    walk = Walk(topics=("one", "two"), partitions=16, rows=240, delta=5, seed=0)
    load = sources.generated(walk, CAPACITY, None).load(warm_up_s(config, timing))
    scenario = Scenario(load=load, config=config, timing=timing)
    jobs = [Run(label=name, policy=name, scenario=scenario, sla_s=SLA_S) for name in NAMES]
    return section(scenario, run_all(jobs, lambda _: None, processes), SLA_S)


def section(
    scenario: Scenario, outcomes: Sequence[Outcome], sla_s: float, price: float | None = None
) -> Section:
    """Return what the policies cost and did; the first outcome is what others compare with."""
    scores = [found.score(sla_s, price) for found in outcomes]
    load = scenario.load
    return Section(
        title="Policies on one load",
        source=f"{len(load.partitions)} partitions, {load.ends_at / HOUR_S:.1f} hours; a consumer "
        f"sustains {scenario.largest_capacity / MB:g} MB/s and is packed to "
        f"{scenario.config.capacity / MB:g} MB/s; SLA {sla_s:g} s",
        expected="The product's controller needs fewer consumers than the paper's and moves less, "
        "and keeps more records within the SLA than rules that look at totals; no policy needs "
        "fewer than the optimum without lag.",
        seen=_seen(scores),
        tables=[summary(outcomes, scores)],
        charts=charts(scenario, outcomes, scores),
    )


def _seen(scores: Sequence[Score]) -> str:
    """Return the differences to the first policy, in numbers."""
    first, *others = scores
    found = []
    for score in others:
        more = score.replica_minutes / first.replica_minutes - 1
        text = f"{score.policy}: {more:+.1%} replica-minutes"
        if score.moves is not None and first.moves is not None:
            text += f", {score.moves} moves against {first.moves}"
        if score.within_sla is not None and first.within_sla is not None:
            text += f", {score.within_sla:.3%} within the SLA against {first.within_sla:.3%}"
        found.append(text)
    return (
        f"Beside {first.policy}: " + "; ".join(found) + "." if found else f"{first.policy} alone."
    )
