"""`make bench NAME=packing`: what a decision takes, and how far sticky is from the best there is.

Medians over decisions of a group whose rates walk on, each from the one before. Prints JSON.
"""

import argparse
import gc
import os
import statistics
import time
from collections.abc import Iterator
from itertools import pairwise
from math import log
from random import Random
from typing import NamedTuple

from tests.scans import by_scanning

from bench import figures
from binwright.cli.console import to_stderr
from binwright.packing.catalogue import Packing, algorithm
from binwright.packing.exact import Exact, objective
from binwright.packing.inputs import Load
from binwright.packing.sticky.policy import Sticky
from binwright.protocol.model import BytesPerSecond, Rates, Slot, TopicPartition
from binwright.runtime.serve import COLLECT_EVERY

CAPACITY = BytesPerSecond(100.0)
DECISIONS = {32: 400, 1_000: 60, 10_000: 16, 100_000: 5, 1_000_000: 3}
BARS_MS = {32: 1, 1_000: 10, 10_000: 60, 100_000: 1_000, 1_000_000: 8_000}
WALK = 5
SCANNED = (500, 1_000, 2_000)
"""Partitions at which the paper's quadratic form is compared with ours."""


class Taken(NamedTuple):
    """What one decision took."""

    wall_ms: float
    cpu_ms: float
    target: dict[TopicPartition, Slot]


def timed(pack: Packing, load: Load) -> Taken:
    began, spent = time.perf_counter(), time.process_time()
    target = pack(load)
    return Taken(1e3 * (time.perf_counter() - began), 1e3 * (time.process_time() - spent), target)


def walk(partitions: int, rows: int, delta: float, seed: int = 1) -> Iterator[Rates]:
    """Draw rates evenly, then let each change by up to delta, within 0 and the capacity."""
    random = Random(seed)
    names = [TopicPartition("orders", number) for number in range(partitions)]
    rates = {name: BytesPerSecond(random.uniform(0, 100)) for name in names}
    for _ in range(rows):
        yield rates
        rates = {
            name: BytesPerSecond(min(100.0, max(0.0, rate + random.uniform(-delta, delta))))
            for name, rate in rates.items()
        }


def decisions(name: str, partitions: int, rows: int) -> dict[str, float]:
    """Return medians over all decisions but the first, which places all partitions."""
    pack, current, taken = algorithm(name), dict[TopicPartition, Slot](), list[Taken]()
    for rates in walk(partitions, 1 + rows, WALK):
        taken.append(timed(pack, Load(rates, CAPACITY, current, WALK**2 / 3)))
        current = taken[-1].target
    return {
        "p50_ms": round(statistics.median(one.wall_ms for one in taken[1:]), 3),
        "p50_cpu_ms": round(statistics.median(one.cpu_ms for one in taken[1:]), 3),
        "first_ms": round(taken[0].wall_ms, 3),
    }


def times(name: str, sizes: list[int]) -> dict[str, object]:
    """Return the medians at each size, and how they grow: 1 is linear, 2 quadratic."""
    found = {size: decisions(name, size, DECISIONS[size]) for size in sizes}
    grown = {
        f"{low} to {high}": round(
            log(found[high]["p50_cpu_ms"] / found[low]["p50_cpu_ms"]) / log(high / low), 2
        )
        for low, high in pairwise(sizes)
    }
    bars = {str(size): BARS_MS[size] for size in sizes}
    return {"bars_ms": bars, **{str(size): one for size, one in found.items()}, "growth": grown}


def scans() -> dict[str, dict[str, object]]:
    """Compare MWF with the paper's form of it, which looks at every consumer every time."""
    found: dict[str, dict[str, object]] = {}
    for size in SCANNED:
        before, rates = walk(size, 2, WALK)
        current = algorithm("mwf")(Load(before, CAPACITY, {}))
        sticky = timed(algorithm("mwf"), Load(rates, CAPACITY, current))
        began = time.process_time()
        naive = by_scanning("mwf", rates, CAPACITY, current)
        found[str(size)] = {
            "cpu_ms": round(sticky.cpu_ms, 2),
            "naive_cpu_ms": round(1e3 * (time.process_time() - began), 1),
            "same": naive == sticky.target,
        }
    return found


def gaps(price: float, delta: int, rows: int) -> dict[str, float]:
    """Compare sticky with the optimum of each decision, from sticky's own state."""
    near, best = Sticky(price), Exact(price, limit_s=20.0)
    current, found = dict[TopicPartition, Slot](), list[float]()
    for rates in walk(32, 1 + rows, delta, seed=delta):
        load = Load(rates, CAPACITY, current, delta**2 / 3)
        sticky = near(load)
        if current:
            costs = near.costs(load)
            both = [objective(load, one, costs) for one in (sticky, best(load))]
            found.append(both[0] / both[1] - 1)
        current = sticky
    return {
        "mean_gap_per_cent": round(100 * statistics.fmean(found), 3),
        "most_per_cent": round(100 * max(found), 2),
        "decisions": len(found),
    }


def measure_all(sizes: list[int], rows: int) -> dict[str, object]:
    """Measure it all; `rows` decisions are compared with exact ones, at each price and delta."""
    gc.set_threshold(COLLECT_EVERY)  # as in a service
    return {
        "load_average_before": os.getloadavg()[0],
        "sticky": times("sticky", sizes),
        "mwf": times("mwf", sizes),
        "mwf_beside_scans": scans(),
        "sticky_above_exact": {
            f"price {price}, delta {delta}": gaps(price, delta, rows)
            for price in (0.8, 2.0)
            for delta in (5, 15, 25)
        },
    }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="make bench NAME=packing", description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="*", default=list(DECISIONS))
    parser.add_argument("--rows", type=int, default=20, help="decisions compared with exact ones")
    figures.add_option(parser)
    wanted = parser.parse_args()
    with to_stderr():
        found = measure_all(wanted.sizes, wanted.rows)
    figures.progress("packing", found, wanted.figures)


if __name__ == "__main__":
    main()
