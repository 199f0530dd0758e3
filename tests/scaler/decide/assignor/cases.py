"""The cases that hold for every assignor, in any language."""

import json
from pathlib import Path
from typing import Any

from binwright.protocol.model import TopicPartition
from binwright.scaler.decide.assignor.mapping import handed_over, target
from binwright.scaler.decide.assignor.members import Member

FILE = Path(__file__).with_name("vectors.json")
CASES: list[dict[str, Any]] = json.loads(FILE.read_text())


def members(case: dict[str, Any]) -> dict[str, Member]:
    return {
        name: Member(
            topics=frozenset(each["topics"]),
            owned=frozenset(map(TopicPartition.parse, each.get("owned", ()))),
            generation=each.get("generation", -1),
            instance=each.get("instance"),
        )
        for name, each in case["members"].items()
    }


def by_rule(case: dict[str, Any]) -> dict[str, dict[str, str]]:
    """Return what the Python rule makes of a case."""
    bins = [{TopicPartition.parse(p): load for p, load in one.items()} for one in case["bins"]]
    counts = case["partitions"].items()
    partitions = [TopicPartition(topic, n) for topic, count in counts for n in range(count)]
    wanted = target(bins, members(case), partitions)
    assigned = handed_over(wanted, members(case))
    return {
        "target": {str(p): name for p, name in sorted(wanted.items())},
        "assigned": {str(p): name for p, name in sorted(assigned.items())},
    }
