"""`make bench NAME=brokers`: plans for brokers beside the optimum and greedy plans, large ones.

Prints JSON. Clusters are drawn from seeds, so two runs plan for the same ones.
"""

import argparse
import os
import resource
import statistics
import time
from collections import Counter
from collections.abc import Iterable

from tests.balancer.decide.generated import Shape, large, small

from bench import figures
from bench.goal_order import ALL_GOALS, LOAD_GOALS, goal_order
from binwright.balancer.decide.constraints import contradictions, violations
from binwright.balancer.decide.exact import Program
from binwright.balancer.decide.loads import balance_limits, imbalance
from binwright.balancer.decide.model import Cluster, Placement
from binwright.balancer.decide.planner import plan
from binwright.balancer.decide.plans import BOUND, Balance, PlacementPlan
from binwright.balancer.decide.search.draft import PlacementDraft
from binwright.balancer.decide.search.heuristic import Heuristic
from binwright.balancer.decide.search.problem import compiled
from binwright.cli.console import to_stderr

LIMIT_S = 20.0
"""For the optimum of one case; one that is not proved by then is counted and left out."""
SHAPES = {
    "five new brokers": Shape(),
    "five brokers to be emptied": Shape(new=0, draining=5),
    "uneven, small replicas": Shape(new=0, sigma=0.5),
}
GREEDY = {
    "two new brokers": Shape(brokers=30, replicas=10_000, new=2),
    "two brokers to be emptied": Shape(brokers=30, replicas=10_000, new=0, draining=2),
    "uneven": Shape(brokers=30, replicas=10_000, new=0),
}
"""Smaller ones, for the comparison: the greedy plan takes minutes for the others."""
BARS = {
    "optimum": {"mean, %": 5, "worst, %": 30},
    "large": {"s": 30, "MB": 1_000, "largest use": BOUND},
    "greedy": {"bytes": 0.5},
}


def compared(seed: int) -> dict[str, object]:
    """Solve one case by the search and by the integer program, both within the same limits."""
    cluster = small(seed)
    if contradictions(cluster):
        return {"answer": "contradiction"}
    problem = compiled(cluster, balance_limits(cluster, BOUND))
    began = time.process_time()
    near = Heuristic().place(problem)
    middle = time.process_time()
    least = Program(problem).fewest_bytes(LIMIT_S)
    took = {"search_s": middle - began, "program_s": time.process_time() - middle}
    if not least.proved:
        return {"answer": "not proved in time", **took}
    if near.feasible != (least.at is not None):
        return {"answer": "missed", **took}
    if least.at is None:
        return {"answer": "no placement", **took}
    copied = [PlacementDraft(problem, at).copied() for at in (near.at, least.at)]
    ratio = copied[0] / copied[1] if copied[1] else 1.0 + copied[0]
    return {"answer": "feasible", "ratio": ratio, "moves": copied[1] > 0, **took}


def beside_the_optimum(seeds: Iterable[int]) -> dict[str, object]:
    """Compare the search with the integer program over many cases."""
    found = [compared(seed) for seed in seeds]
    answers = Counter(str(one["answer"]) for one in found)
    ratios = [float(str(one["ratio"])) for one in found if "ratio" in one]
    moving = [float(str(one["ratio"])) for one in found if one.get("moves")]
    times = {
        name: statistics.fmean(float(str(one[name])) for one in found if name in one)
        for name in ("search_s", "program_s")
    }
    return {
        "cases": len(found),
        "both feasible": answers["feasible"],
        "both find none": answers["no placement"],
        "the search alone finds none": answers["missed"],
        "contradictions": answers["contradiction"],
        "not proved in time": answers["not proved in time"],
        "bytes above the optimum, mean, %": round(100 * (statistics.fmean(ratios) - 1), 2),
        "the same where any move, %": round(100 * (statistics.fmean(moving) - 1), 2),
        "bytes above the optimum, worst, %": round(100 * (max(ratios) - 1), 1),
        "optimal": sum(ratio <= 1.0 + 1e-9 for ratio in ratios),
        "search, CPU-s a case": round(times["search_s"], 2),
        "program, CPU-s a case": round(times["program_s"], 2),
    }


def largest(cluster: Cluster, placement: Placement) -> dict[str, float]:
    """Return the largest use of each resource in units of its mean."""
    return {one.resource: round(one.factor, 4) for one in imbalance(cluster, placement)}


def planned(shape: Shape) -> tuple[Cluster, PlacementPlan, dict[str, object]]:
    """Plan for a large cluster; return what it took and what came of it."""
    cluster = large(shape, seed=1)
    began, spent = time.perf_counter(), time.process_time()
    outcome = plan(cluster, Balance())
    wall_s, cpu_s = time.perf_counter() - began, time.process_time() - spent
    if not isinstance(outcome, PlacementPlan):
        raise TypeError(f"no plan: {outcome.conflicts}")
    everything = sum(each.size_bytes * len(each.replicas) for each in cluster.partitions)
    return cluster, outcome, {
        "s": round(wall_s, 1),
        "CPU-s": round(cpu_s, 1),
        "MB": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1_024),
        "bytes moved, %": round(100 * outcome.bytes / everything, 2),
        "moves": len(outcome.moves),
        "of leaders only": sum(move.leader_only for move in outcome.moves),
        "constraints broken": len(violations(cluster, outcome.placement)),
        "bounds relaxed by": outcome.relaxed,
        "largest before": largest(cluster, {each.id: each.replicas for each in cluster.partitions}),
        "largest use": largest(cluster, outcome.placement),
    }  # fmt: skip


def moved(cluster: Cluster, bound: float) -> int:
    """Return the bytes that a plan within a bound moves; all bytes where it is not within it."""
    outcome = plan(cluster, Balance(bound))
    if (
        not isinstance(outcome, PlacementPlan)
        or max(largest(cluster, outcome.placement).values()) > bound
    ):
        return sum(each.size_bytes * len(each.replicas) for each in cluster.partitions)
    return outcome.bytes


def beside_greedy(shape: Shape) -> dict[str, object]:
    """Compare a plan with the greedy one: with all goals, and with those of loads alone."""
    cluster, ours, facts = planned(shape)
    found: dict[str, object] = {"ours": facts}
    sizes = {each.id: each.size_bytes for each in cluster.partitions}
    homes = {each.id: each.replicas for each in cluster.partitions}
    for name, goals in (("all goals", ALL_GOALS), ("goals of loads", LOAD_GOALS)):
        began = time.process_time()
        placement = goal_order(cluster, BOUND, goals)
        copied = sum(sizes[p] * len({*at} - {*homes[p]}) for p, at in placement.items())
        uses = largest(cluster, placement)
        found[name] = {
            "CPU-s": round(time.process_time() - began, 1),
            "bytes, ours / greedy": round(ours.bytes / copied, 3),
            "bytes at its balance, ours / greedy": round(
                moved(cluster, max(uses.values())) / copied, 3
            ),
            "constraints broken": len(violations(cluster, placement)),
            "largest use": uses,
        }
    return found


def measure(only: list[str], cases: int) -> dict[str, object]:
    """Measure what is asked for; the large clusters first, so their memory is theirs."""
    found: dict[str, object] = {"bars": BARS, "load_average_before": os.getloadavg()[0]}
    if "large" in only:
        found["large"] = {name: planned(shape)[2] for name, shape in SHAPES.items()}
    if "greedy" in only:
        found["greedy"] = {name: beside_greedy(shape) for name, shape in GREEDY.items()}
    if "optimum" in only:
        found["optimum"] = beside_the_optimum(range(cases))
    return found


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="make bench NAME=brokers", description=__doc__)
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--cases", type=int, default=200, help="compared with the optimum")
    figures.add_option(parser)
    wanted = parser.parse_args()
    with to_stderr():
        found = measure(wanted.only, wanted.cases)
    figures.progress("brokers", found, wanted.figures)


PARTS = ["large", "greedy", "optimum"]

if __name__ == "__main__":
    main()
