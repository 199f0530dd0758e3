"""`make bench NAME=zones`: what crosses zones at several prices, and what a decision takes then.

Partitions are led, and consumers run, in three zones in turn. Each packing decides over the same
stream, each time from its decision before. Prints JSON.
"""

import argparse
import statistics
from collections.abc import Iterable, Mapping
from pathlib import Path

from bench import figures
from bench.packing import CAPACITY, WALK, timed, walk
from binwright.cli.console import to_stderr
from binwright.group.rates import PERIOD_S, RateVolatility
from binwright.packing.inputs import Load
from binwright.packing.score import moved_partitions
from binwright.packing.sticky.policy import Sticky
from binwright.packing.zones import Zones, total
from binwright.protocol.model import Rates, Slot, TopicPartition
from binwright.streams import streams

NAMES = "abc"
PRICES = (0.0, 0.5, 1.0, 1.5, 3.0)
TIMED = {32: 200, 1_000: 30, 10_000: 8, 100_000: 3}
"""Decisions that are timed, by partitions."""
WARM_UP = 1
"""The first decision places all, and is left out."""


def zones_of(rates: Rates, replicas: int, price: float) -> Zones:
    """Return zones in which the nth partition has its replicas, and consumers run, in turn."""
    near = {
        p: frozenset(NAMES[(number + more) % len(NAMES)] for more in range(replicas))
        for number, p in enumerate(sorted(rates))
    }
    slots = {Slot(slot): NAMES[slot % len(NAMES)] for slot in range(len(rates) + 1)}
    return Zones(slots, near, price)


def decisions(stream: Iterable[Rates], replicas: int, price: float) -> dict[str, float]:
    """Return means over all decisions but the first."""
    current, volatility = dict[TopicPartition, Slot](), RateVolatility()
    consumers, crossing, moved, cpu_ms = [], [], [], []
    for number, rates in enumerate(stream):
        volatility = volatility.observe(rates, number * PERIOD_S)
        zones = zones_of(rates, replicas, price)
        load = Load(rates, CAPACITY, current, volatility.mean_square, zones)
        taken, bytes_s = timed(Sticky(), load), sum(rates.values())
        consumers.append(len(set(taken.target.values())))
        crossing.append(zones.crossing(rates, taken.target) / bytes_s)
        moved.append(total(rates, moved_partitions(current, taken.target)) / bytes_s)
        cpu_ms.append(taken.cpu_ms)
        current = taken.target
    return {
        "consumers": round(statistics.fmean(consumers[WARM_UP:]), 2),
        "crossing_per_cent": round(100 * statistics.fmean(crossing[WARM_UP:]), 1),
        "moved_per_cent": round(100 * statistics.fmean(moved[WARM_UP:]), 1),
        "p50_cpu_ms": round(statistics.median(cpu_ms[WARM_UP:]), 2),
    }


def at_prices(stream: list[Rates]) -> dict[str, dict[str, float]]:
    """Compare prices, with partitions that can be read in one zone and in two."""
    return {
        f"{replicas} of {len(NAMES)} zones, price {price:g}": decisions(stream, replicas, price)
        for replicas in (1, 2)
        for price in PRICES
    }


def times(sizes: Iterable[int]) -> dict[str, dict[str, float]]:
    """Compare what a decision takes without a price and with one, by partitions."""
    found = {}
    for size in sizes:
        off, on = (
            decisions(walk(size, WARM_UP + TIMED[size], WALK), 1, price) for price in (0.0, 3.0)
        )
        found[str(size)] = {
            "off_cpu_ms": off["p50_cpu_ms"],
            "on_cpu_ms": on["p50_cpu_ms"],
            "ratio": round(on["p50_cpu_ms"] / off["p50_cpu_ms"], 2),
            "crossing_off_per_cent": off["crossing_per_cent"],
            "crossing_on_per_cent": on["crossing_per_cent"],
            "consumers_off": off["consumers"],
            "consumers_on": on["consumers"],
        }
    return found


def measure_all(recorded: Path | None, rows: int, sizes: Iterable[int]) -> Mapping[str, object]:
    """Measure it all, on a recorded stream of per cent of a capacity if one is given."""
    found: dict[str, object] = {}
    if recorded is not None:
        rows_of_file = streams.parse(recorded.read_bytes())
        found["recorded"] = at_prices([streams.as_rates(row, CAPACITY) for row in rows_of_file])
    found["walk"] = at_prices(list(walk(200, rows, WALK)))
    found["times"] = times(sizes)
    return found


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="make bench NAME=zones", description=__doc__)
    parser.add_argument("--stream", type=Path, help="a recorded stream")
    parser.add_argument("--rows", type=int, default=200, help="decisions over a generated stream")
    parser.add_argument("--sizes", type=int, nargs="*", default=list(TIMED))
    figures.add_option(parser)
    wanted = parser.parse_args()
    with to_stderr():
        found = measure_all(wanted.stream, wanted.rows, wanted.sizes)
    figures.progress("zones", found, wanted.figures)


if __name__ == "__main__":
    main()
