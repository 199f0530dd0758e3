"""The cases that hold for every assignor, in any language."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from binwright.protocol.model import TopicPartition
from binwright.scaler.decide.mapping import target
from binwright.scaler.decide.members import GroupMember

FILE = Path(__file__).with_name("vectors.json")
CASES: list[dict[str, Any]] = json.loads(FILE.read_text())


def members(case: dict[str, Any]) -> dict[str, GroupMember]:
    return {
        name: GroupMember(
            topics=frozenset(each["topics"]),
            owned=frozenset(map(TopicPartition.parse, each.get("owned", ()))),
            generation=each.get("generation", -1),
            instance=each.get("instance"),
        )
        for name, each in case["members"].items()
    }


def handed_over(
    wanted: Mapping[TopicPartition, str], members: Mapping[str, GroupMember]
) -> dict[TopicPartition, str]:
    """Return what may be assigned in this rebalance by the cooperative protocol.

    A partition that another member says it reads waits: that one gives it up, and joins again.
    """
    claims = [(p, name) for name, member in members.items() for p in member.owned]
    waits = {p for p, name in claims if wanted.get(p) != name}
    return {p: name for p, name in wanted.items() if p not in waits}


def by_rule(case: dict[str, Any]) -> dict[str, dict[str, str]]:
    """Return what the Python rule makes of a case."""
    bins = [{TopicPartition.parse(p): load for p, load in one.items()} for one in case["bins"]]
    counts = case["partitions"].items()
    partitions = [TopicPartition(topic, n) for topic, count in counts for n in range(count)]
    wanted = target(bins, members(case), partitions, case.get("leaving", ()))
    assigned = handed_over(wanted, members(case))
    return {
        "target": {str(p): name for p, name in sorted(wanted.items())},
        "assigned": {str(p): name for p, name in sorted(assigned.items())},
    }
