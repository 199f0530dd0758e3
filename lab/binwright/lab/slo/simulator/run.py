"""Runs one workload through one group under one policy."""

from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from binwright.lab.slo.simulator.assignor import GroupAssignor
from binwright.lab.slo.simulator.consumer import Consumer
from binwright.lab.slo.simulator.controller import Controller
from binwright.lab.slo.simulator.eager import EagerGroup
from binwright.lab.slo.simulator.group import Group
from binwright.lab.slo.simulator.incremental import IncrementalGroup
from binwright.lab.slo.simulator.latencies import Floats
from binwright.lab.slo.simulator.settings import GroupSettings
from binwright.lab.slo.simulator.timeline import Timeline
from binwright.lab.slo.workloads.workload import Workload
from binwright.scaler.decide.policy import Policy

DRAIN_S = 120.0
"""How long records are worked off after the last one arrived."""


@dataclass(frozen=True, slots=True)
class Simulated:
    """What came of a run."""

    latencies_s: Floats  # of each record
    group: Group
    controller: Controller
    duration_s: float

    @property
    def replica_minutes(self) -> float:
        """Return the time from each replica's order to its end, within the workload."""
        ends = ((c, self.duration_s if c.ended_s is None else c.ended_s) for c in self._consumers)
        seconds = sum(min(end, self.duration_s) - c.ordered_s for c, end in ends)
        return seconds / 60

    @property
    def logged_minutes(self) -> float:
        """Return the time from each replica's first record to its last, as the paper counts."""
        return (
            sum(
                max(0.0, min(c.last_s, self.duration_s) - c.first_s)
                for c in self._consumers
                if c.first_s is not None
            )
            / 60
        )

    @property
    def _consumers(self) -> list[Consumer]:
        return self.group.consumers


def simulate(workload: Workload, policy: Policy, settings: GroupSettings, seed: int) -> Simulated:
    """Run a workload to its end; the same arguments give the same result.

    Arrivals depend on the seed alone, so policies are compared on the same records.
    """
    arrivals, control = (np.random.default_rng([seed, stream]) for stream in range(2))
    timeline = Timeline()
    partitions = len(workload.shares)
    assignor = GroupAssignor(settings.assignor, partitions)
    kind = EagerGroup if settings.protocol == "eager" else IncrementalGroup
    group = kind(timeline, settings, partitions, assignor)
    controller = Controller(group, assignor, policy, control)
    shares = np.array(workload.shares)
    chunks = max(1, round(1 / settings.burst_s))

    def send(second: int) -> None:
        events = workload.events[second]
        controller.rates = [events * share for share in workload.shares]
        bursts = _split(events, shares, chunks, arrivals, random=workload.random)
        for chunk, burst in enumerate(bursts):
            timeline.at(second + chunk / chunks, partial(group.arrive, burst))
        if second + 1 < len(workload.events):
            timeline.at(second + 1, partial(send, second + 1))

    send(0)
    controller.start(workload.duration_s)
    timeline.run(workload.duration_s + DRAIN_S)
    return Simulated(group.latencies.every(), group, controller, workload.duration_s)


def _split(
    events: int, shares: Floats, chunks: int, rng: np.random.Generator, *, random: bool
) -> list[list[int]]:
    """Return the records of each partition in each part of a second."""
    exact = np.ceil(events * shares - 1e-9).astype(np.int64)
    each: NDArray[np.int64] = rng.multinomial(events, shares) if random else exact
    if chunks == 1:
        return [[int(one) for one in each]]
    even = np.full(chunks, 1 / chunks)
    by_partition = [rng.multinomial(many, even) for many in each]
    return [[int(row[chunk]) for row in by_partition] for chunk in range(chunks)]
