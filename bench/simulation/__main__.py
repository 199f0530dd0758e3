"""`make bench NAME=simulation`: a live run beside its simulation, and what a week costs, as JSON.

The demo's stream runs through the real thing (broker, Spark, monitor, controller, consumers as
processes), then twice through the simulator with the same settings: as the monitor measured it, as
from a recording, and as the stream of per cents that was played. How long each consumer took to
start, what a hand-over took, and when in its second the controller ticked are those of the live
run. Compared is how many consumers are ready at each second of the load; the seconds that differ
are listed with what makes them differ.

The week is a random walk of 32 partitions under every policy, on all cores.
"""

import argparse
import asyncio
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, replace
from math import ceil
from pathlib import Path
from statistics import median
from typing import Any

from bench import figures
from bench.simulation.differences import RunHistory, by_cause, differences
from bench.simulation.live import LiveRun, run_live
from bench.simulation.week import week
from binwright.cli.console import to_stderr
from binwright.lab.simulation import sources
from binwright.lab.simulation.outcome import Outcome, equal_seconds
from binwright.lab.simulation.run import PRODUCT, Run, run
from binwright.lab.simulation.scenario import TICK_S, Scenario, Timing, warm_up_s
from binwright.lab.simulation.sources import Source
from binwright.local.demo import DemoOptions
from binwright.protocol.model import BytesPerSecond
from binwright.runtime.settings.group_config import group_config
from binwright.streams.generated import demo_stream
from binwright.streams.streams import Stream


def simulated(live: LiveRun, source: Source, zero_s: float, *, idle_before: bool) -> Outcome:
    """Simulate a load under the live run's settings; it begins at `zero_s`, s since 1970."""
    settings = live.settings
    found = replace(group_config(settings), topics=None)
    timing = Timing(
        start_up_s=_start_up_s(live),
        hand_over_s=median(live.pauses() or [0.1]),
        interval_s=settings.monitor.interval_s,
        window_s=settings.monitor.window_s,
        measured_age_s=median(live.ages()),
    )
    # Ticks are whole seconds after the load's beginning, that of its warm-up.
    load = source.load(warm_up_s(found, timing) + TICK_S - live.tick_phase(zero_s))
    if idle_before:
        load.rates[0] = 0.0
    scenario = Scenario(
        load=load,
        config=found,
        timing=timing,
        published=source.published(timing.window_s),
        start_ups=[replace(one, at=one.at - zero_s) for one in live.start_ups()],
    )
    return run(Run(label=PRODUCT, policy=PRODUCT, scenario=scenario))


def from_stream(live: LiveRun, stream: Stream) -> Outcome:
    """Simulate the stream as it was played: from an idle group on, in bytes as they are stored."""
    capacity = BytesPerSecond(live.settings.controller.capacity * live.framing())
    rows = [stream[n % len(stream)] for n in range(ceil(live.seconds / live.load.row_s))]
    source = sources.from_stream("demo", rows, capacity, live.load.row_s)
    return simulated(live, source, live.began, idle_before=True)


def from_recording(live: LiveRun) -> tuple[Outcome, float]:
    """Simulate what the monitor published; return also when the load began, s."""
    first_s = live.measured[0].at_ms / 1000
    source = replace(sources.recorded(live.measured), label="live")
    return simulated(live, source, first_s, idle_before=False), live.began - first_s


def compared(live: LiveRun, found: Outcome, began_s: float) -> dict[str, Any]:
    """Return in how many seconds the simulation has as many consumers as the live run, and why not.

    Args:
        live: The run.
        found: Its simulation.
        began_s: When the load began, in the simulation's time.
    """
    seen = live.ready(live.seconds)
    made = found.ready.at([began_s + second for second in range(live.seconds + 1)])
    every = [(round(c.at - began_s, 2), c.consumers, c.reasons) for c in found.changes]
    plans = [plan for plan in every if 0 <= plan[0] <= live.seconds]
    spans = differences(_course(seen, live.plans()), _course(made, every))
    return {
        "equal": equal_seconds(seen, made),
        "within_one": sum(abs(a - b) <= 1 for a, b in zip(seen, made, strict=True)) / len(seen),
        "mean": sum(made) / len(made),
        "plans": len(plans),
        "ready": made,
        "reasons": plans,
        "differences": [asdict(span) for span in spans],
        "seconds_by_cause": by_cause(spans),
    }


def _course(ready: Sequence[int], plans: Sequence[tuple[float, int, str]]) -> RunHistory:
    return RunHistory(ready, [(at, consumers) for at, consumers, _ in plans])


def _start_up_s(live: LiveRun) -> float:
    return median(one.seconds for one in live.start_ups())


def compare(live: LiveRun, stream: Stream) -> dict[str, Any]:
    """Return the live run and both simulations of it."""
    seen, plans = live.ready(live.seconds), [plan for plan in live.plans() if plan[0] >= 0]
    return {
        "seconds": live.seconds,
        "live": {
            "mean": sum(seen) / len(seen),
            "plans": len(plans),
            "start_up_s": _start_up_s(live),
            "start_ups": [(one.slot, round(one.seconds, 2)) for one in live.start_ups()],
            "tick_phase": live.tick_phase(live.began),
            "pause_s": median(live.pauses() or [0.0]),
            "measured_age_s": median(live.ages()),
            "framing": live.framing(),
            "ready": seen,
            "reasons": plans,
        },
        "recording": compared(live, *from_recording(live)),
        "stream": compared(live, from_stream(live, stream), 0.0),
    }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="make bench NAME=simulation", description=__doc__)
    parser.add_argument("--only", nargs="*", choices=["live", "week"], default=["live", "week"])
    parser.add_argument("--minutes", type=float, default=3.0, help="the length of the live load")
    figures.add_option(parser)
    wanted = parser.parse_args()
    found: dict[str, Any] = {}
    with to_stderr():
        if "week" in wanted.only:
            found["week"] = week()
        if "live" in wanted.only:
            stream, options = demo_stream(), DemoOptions(minutes=wanted.minutes)
            with tempfile.TemporaryDirectory(prefix="binwright-bench-") as name:
                live = asyncio.run(run_live(stream, options, Path(name)))
            found["live"] = compare(live, stream)
    figures.progress("simulation", found, wanted.figures)


if __name__ == "__main__":
    main()
