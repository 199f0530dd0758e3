"""`make bench NAME=prediction`: would a forecast of the load serve a group better? As JSON.

The product's controller runs in the simulator on three kinds of measurements: those of the monitor,
those with a trend (each partition's rate goes on as it changed over the last window), and those of
a seer, who knows the highest rate of the time that a consumer takes to start. Whoever packs
consumers less full buys the same with more replica-minutes, so each kind runs at several shares of
the limit, and forecasts are compared with plain measurements at equal replica-minutes.
"""

import argparse
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bench import figures
from binwright.group.config import ControllerSettings, GroupConfig
from binwright.lab.simulation import sources
from binwright.lab.simulation.fluid.arrivals import Floats, FluidLoad, arrivals
from binwright.lab.simulation.outcome import Outcome
from binwright.lab.simulation.records.arrivals import RecordLoad
from binwright.lab.simulation.run import PRODUCT, Run, run_all
from binwright.lab.simulation.scenario import Scenario, Timing, warm_up_s
from binwright.lab.slo import workloads
from binwright.protocol.model import BytesPerSecond, TopicPartition
from binwright.runtime.settings.group_config import config_of
from binwright.streams.generated import Walk
from binwright.streams.streams import parse

LIMIT = 2_400_000.0  # bytes/s that a consumer sustains
DEFAULT_SHARE = 5 / 6
SHARES = (0.7, 0.75, 0.8, DEFAULT_SHARE, 0.87, 0.91, 0.95)
"""Of the limit, to which consumers are packed."""
START_UPS_S = (5.0, 60.0)  # a pod where there is a node, and one that waits for its node
SLA_S = 5.0
CATCH_UP_S = 300.0  # the default
ROW_S = 30.0
WALK_ROWS = 720
EVENTS_PER_S = 100.0  # that a consumer sustains, as in the workloads' paper
SEER_STEP_S = 5.0
MEASURED, TREND, SEER = "measured", "trend", "seer"
FORECASTS = (TREND, SEER)


@dataclass(frozen=True, kw_only=True)
class Forecast(Scenario):
    """A scenario whose controller is told what the rates will be, instead of what they are."""

    kind: str
    ahead_s: float

    def sampled(self, numbers: Floats) -> Floats:
        """Return the rates forecast by the measurements of these numbers, as `Scenario` does."""
        now = super().sampled(numbers)
        if self.kind == TREND:
            window_s = self.timing.window_s
            before = super().sampled(numbers - window_s / self.timing.interval_s)
            # A rate over a window is that of its middle.
            ahead: Floats = now + (now - before) * (self.ahead_s + window_s / 2) / window_s
            return np.maximum(ahead, 0.0)
        at = self.begin + numbers * self.timing.interval_s
        later = np.arange(0.0, self.ahead_s + SEER_STEP_S, SEER_STEP_S)
        rates = [self.load.measured(at + after, SEER_STEP_S) for after in later]
        highest: Floats = np.max([now, *rates], axis=0)
        return highest


def loads(stream: Path | None, warm_up: float) -> Iterator[tuple[str, FluidLoad]]:
    """Yield every load with its name."""
    capacity = BytesPerSecond(LIMIT * DEFAULT_SHARE)
    for delta in (5, 25):
        walk = Walk(topics=("one", "two"), partitions=16, rows=WALK_ROWS, delta=delta, seed=1)
        source = sources.generated(walk, capacity, None)
        yield f"walk, delta {delta}, six hours", source.load(warm_up)
    for load in (workloads.first(), workloads.second()):
        yield f"workload {load.name[1:]} of ordinary groups", _fluid(load, warm_up)
    if stream is not None:
        rows = parse(stream.read_bytes())
        recorded = sources.from_stream("recorded", rows, capacity, ROW_S)
        yield "the paper's recorded stream", recorded.load(warm_up)


def _fluid(load: RecordLoad, warm_up: float) -> FluidLoad:
    """Return a workload of events as bytes, of which a consumer sustains as many as of events."""
    size = LIMIT / EVENTS_PER_S
    partitions = [TopicPartition("events", number) for number in range(len(load.shares))]
    rows = [
        {p: size * events * share for p, share in zip(partitions, load.shares, strict=True)}
        for events in load.events
    ]
    return arrivals(rows, 1.0, warm_up_s=warm_up)


def config(share: float) -> GroupConfig:
    """Return the settings under which consumers are packed to a share of their limit."""
    return config_of(
        ControllerSettings(
            limit_bytes_per_s=LIMIT, capacity_bytes_per_s=share * LIMIT, catch_up_s=CATCH_UP_S
        )
    )


def scenario(load: FluidLoad, share: float, start_up_s: float, kind: str) -> Scenario:
    """Return one scenario of the comparison."""
    found, timing = config(share), Timing(start_up_s=start_up_s)
    if kind == MEASURED:
        return Scenario(load=load, config=found, timing=timing)
    return Forecast(load=load, config=found, timing=timing, kind=kind, ahead_s=start_up_s)


def compare(name: str, load: FluidLoad, start_up_s: float, cores: int) -> dict[str, Any]:
    """Return what each kind of measurement gives on one load."""
    kinds = (MEASURED, *FORECASTS)
    jobs = [
        Run(label=kind, policy=PRODUCT, scenario=scenario(load, share, start_up_s, kind))
        for kind in kinds
        for share in SHARES
    ]
    outcomes = run_all(jobs, lambda _: None, cores)
    points = {kind: [_point(o) for o in outcomes if o.policy == kind] for kind in kinds}
    found = [
        {
            "kind": kind,
            "by_share": points[kind],
            "default": points[kind][SHARES.index(DEFAULT_SHARE)],
            "gain": None if kind == MEASURED else gain(points[MEASURED], points[kind]),
        }
        for kind in kinds
    ]
    return {"load": name, "start_up_s": start_up_s, "kinds": found}


def _point(outcome: Outcome) -> tuple[float, float]:
    score = outcome.score(SLA_S)
    return score.replica_minutes, 100 * (score.within_sla or 0.0)


def gain(
    plain: Sequence[tuple[float, float]], other: Sequence[tuple[float, float]]
) -> float | None:
    """Return how much more is read in time at equal replica-minutes, points of per cent.

    The mean over what both cost; between two points of the best that a kind gives, linearly. None:
    nothing costs the same with both.
    """
    first, second = front(plain), front(other)
    low = max(min(first), min(second))
    high = min(max(first), max(second))
    if low >= high:
        return None
    at = np.linspace(low, high, 50)
    differences = _along(second, at) - _along(first, at)
    return float(differences.mean())


def front(points: Sequence[tuple[float, float]]) -> Mapping[float, float]:
    """Return replica-minutes -> the most that is in time for so many or fewer, ascending."""
    best, found = 0.0, {}
    for minutes, within in sorted(points):
        best = max(best, within)
        found[minutes] = best
    return found


def _along(of: Mapping[float, float], at: Floats) -> Floats:
    return np.interp(at, list(of), list(of.values()))


def main() -> None:
    """Simulate and print."""
    parser = argparse.ArgumentParser(prog="make bench NAME=prediction", description=__doc__)
    parser.add_argument(
        "--stream", type=Path, help="a recorded stream of per cents, in rows of 30 s"
    )
    figures.add_option(parser)
    wanted = parser.parse_args()
    cores, compared = os.cpu_count() or 1, []
    for start_up_s in START_UPS_S:
        warm_up = warm_up_s(config(DEFAULT_SHARE), Timing(start_up_s=start_up_s))
        for name, load in loads(wanted.stream, warm_up):
            sys.stderr.write(f"{name}, start-up {start_up_s:g} s\n")
            compared.append(compare(name, load, start_up_s, cores))
    figures.progress("prediction", {"compared": compared}, wanted.figures)


if __name__ == "__main__":
    main()
