"""Figures of controllers."""

from collections.abc import Mapping

from bench.figures.markdown import table
from bench.figures.sections.bench import Bench, Facts, Sections, pairs


def _controller(facts: Facts) -> Sections:
    return {
        "controller": table(
            [
                {
                    "group": one["group"],
                    "CPU-s a second": one["in all"],
                    "of it decoding": one["of it decoding"] + one["of measurements decoding"],
                    "MB": one["MB"],
                }
                for one in facts
            ]
        )
    }


def _groups(facts: Facts) -> Sections:
    return {"groups": table(facts)}


def _takeover(facts: Facts) -> Sections:
    return {"takeover": pairs(facts)}


def _kubernetes(facts: Facts) -> Sections:
    fifty, idle, slot = facts["deployments_50"], facts["idle_50"], facts["slot_to_ready"]
    return {
        "kubernetes": pairs(
            {
                "50 Deployments created, s": fifty["created_s"],
                "50 Deployments running, s": fifty["running_s"],
                "50 idle slots, core": idle["cores"],
                "50 idle slots, MB": idle["rss_mb"],
                "from a slot to ready, the first, s": slot["first_s"],
                "the second, s": slot["second_s"],
                "the third, s": slot["third_s"],
            }
        )
    }


BENCHES: Mapping[str, Bench] = {
    "controller": Bench("make bench-controller", {"controller": "Cost of a group"}, _controller),
    "groups": Bench("make bench-groups", {"groups": "Cost of many groups"}, _groups),
    "takeover": Bench("make bench-takeover", {"takeover": "Take-over"}, _takeover),
    "kubernetes": Bench(
        "make bench-kubernetes", {"kubernetes": "Consumers on Kubernetes"}, _kubernetes
    ),
}
