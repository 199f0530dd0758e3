"""Small scenarios."""

from collections.abc import Sequence

from tests.builders import configured

from binwright.group.config import GroupConfig
from binwright.lab.simulation.fluid.arrivals import arrivals
from binwright.lab.simulation.outcome import Outcome
from binwright.lab.simulation.run import Run, run
from binwright.lab.simulation.scenario import Scenario, Timing, warm_up_s
from binwright.protocol.model import BytesPerSecond, TopicPartition

PARTITIONS = [TopicPartition(topic, n) for topic in ("clicks", "orders") for n in range(3)]
CONFIG = configured(120, 100, replan_interval_s=20.0)
TIMING = Timing(measured_age_s=0.0)


def scenario(
    rows: Sequence[Sequence[float]],
    *,
    config: GroupConfig = CONFIG,
    timing: Timing = TIMING,
    sustained: float | None = None,
    row_s: float = 30.0,
) -> Scenario:
    """Return a scenario of rows with a rate for each of the first partitions, bytes/s."""
    load = arrivals(
        [dict(zip(PARTITIONS, row, strict=False)) for row in rows],
        row_s,
        warm_up_s=warm_up_s(config, timing),
    )
    limit = None if sustained is None else BytesPerSecond(sustained)
    return Scenario(load=load, config=config, sustained=limit, timing=timing)


def outcome(
    found: Scenario, policy: str = "binwright", packing: str = "sticky", *, every: bool = False
) -> Outcome:
    """Simulate one policy; `every` second if so."""
    job = Run(label=policy, policy=policy, scenario=found, packing=packing)
    return run(job, every_second=every)
