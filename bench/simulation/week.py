"""A week of load under every policy: how long it takes, and what it gives."""

import os
import resource
import time
from dataclasses import asdict
from typing import Any

from binwright.group.config import ControllerSettings
from binwright.lab.simulation import sources
from binwright.lab.simulation.run import NAMES, Run, run_all
from binwright.lab.simulation.scenario import Scenario, Timing, warm_up_s
from binwright.runtime.settings.group_config import config_of
from binwright.streams.generated import Walk

WEEK = Walk(topics=("one", "two"), partitions=16, rows=20_160, delta=5, seed=1)
"""Rows of 30 s, 32 partitions: the paper's size."""
CONFIG = config_of(
    ControllerSettings(
        limit_bytes_per_s=2_400_000.0, capacity_bytes_per_s=2_000_000.0, catch_up_s=0.0
    )
)
SLA_S = 5.0


def week() -> dict[str, Any]:
    """Simulate all policies on all cores; return the seconds that took, and their figures."""
    began, cpu_s = time.monotonic(), _cpu_s()
    timing = Timing()
    source = sources.generated(WEEK, CONFIG.capacity, None)
    scenario = Scenario(load=source.load(warm_up_s(CONFIG, timing)), config=CONFIG, timing=timing)
    jobs = [Run(label=name, policy=name, scenario=scenario, sla_s=SLA_S) for name in NAMES]
    outcomes = run_all(jobs, lambda _: None, os.cpu_count() or 1)
    return {
        "load": source.label,
        "simulated_s": scenario.load.ends_at,
        "took_s": time.monotonic() - began,
        "cpu_s": _cpu_s() - cpu_s,
        "policies": [asdict(outcome.score(SLA_S)) for outcome in outcomes],
    }


def _cpu_s() -> float:
    """Return the CPU seconds of this process and of its children that have ended."""
    used = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(one.ru_utime + one.ru_stime for one in used)
