"""Figures of plans for brokers, and of carrying them out."""

from collections.abc import Mapping

from bench.figures.markdown import Row, table
from bench.figures.sections.bench import Bench, Facts, Sections, pairs


def _brokers(facts: Facts) -> Sections:
    found: dict[str, str] = {}
    if large := facts.get("large"):
        found["brokers-large"] = table([_large(name, one) for name, one in large.items()])
    if optimum := facts.get("optimum"):
        found["brokers-optimum"] = pairs(optimum)
    if greedy := facts.get("greedy"):
        kinds = ("all goals", "goals of loads")
        rows = [_greedy(name, kind, one) for name, one in greedy.items() for kind in kinds]
        found["brokers-greedy"] = table(rows)
    return found


def _large(name: str, facts: Facts) -> Row:
    return {
        "cluster": name,
        **{title: facts[title] for title in ("s", "CPU-s", "MB", "bytes moved, %", "moves")},
        "broken": facts["constraints broken"],
        **_uses("before, ", facts["largest before"]),
        **_uses("", facts["largest use"]),
    }


def _greedy(name: str, kind: str, facts: Facts) -> Row:
    one = facts[kind]
    ratios = ("bytes, ours / greedy", "bytes at its balance, ours / greedy")
    return {
        "cluster": name,
        "greedy plan": kind,
        **{title: one[title] for title in ratios},
        **_uses("ours, ", facts["ours"]["largest use"]),
        **_uses("greedy, ", one["largest use"]),
    }


def _uses(whose: str, facts: Mapping[str, float]) -> Row:
    """Return the largest use of each resource, in units of the mean."""
    return {f"{whose}{resource}": number for resource, number in facts.items()}


def _moves(facts: Facts) -> Sections:
    found = {"moves-leaders": table(_leader_rows(facts["leaders"]))}
    return {**found, **({"moves-kills": pairs(facts["killed"])} if "killed" in facts else {})}


def _leader_rows(facts: Facts) -> list[Row]:
    return [
        {
            "replica.fetch.backoff.ms": backoff,
            "leaders at once": "none move" if batch == "0" else batch,
            **{
                f"{consumer}, {title}": found[consumer][quantile]
                for consumer in ("KafkaIntake", "AIOKafkaConsumer")
                for quantile, title in (("p99_s", "p99 pause, s"), ("longest_s", "longest, s"))
            },
            "longest send, s": found["longest_send_s"],
        }
        for backoff, batches in facts.items()
        for batch, found in batches.items()
        if batch.isdigit()
    ]


BENCHES: Mapping[str, Bench] = {
    "brokers": Bench(
        "make bench-brokers",
        {
            "brokers-optimum": "Beside the optimum",
            "brokers-large": "A hundred brokers",
            "brokers-greedy": "Beside a greedy plan",
        },
        _brokers,
    ),
    "moves": Bench(
        "make bench-moves",
        {"moves-leaders": "Leaders that move", "moves-kills": "Killed reassignments"},
        _moves,
    ),
}
