"""The rule by which an assignor gives the bins of a plan to the members of a group.

`docs/design/assignor.md` describes it, and `PlanMapping.java` does the same; the cases of
`tests/scaler/decide/assignor/vectors.json` hold for both.
"""

from collections.abc import Collection, Mapping, Sequence

from binwright.protocol.model import TopicPartition
from binwright.scaler.decide.assignor.matching import best_pairs
from binwright.scaler.decide.assignor.members import (
    Members,
    are_static,
    claimed_by_others,
    claims,
    in_order,
    owners,
    subscribers,
)

PlanBins = Sequence[Mapping[TopicPartition, int]]
"""Each for one member: partition -> its load, in thousandths of a member's capacity."""
Target = dict[TopicPartition, str]
"""Partition -> member id."""


def target(bins: PlanBins, members: Members, partitions: Collection[TopicPartition]) -> Target:
    """Return who is to read each partition.

    Args:
        bins: Of the plan.
        members: At least one.
        partitions: All of the topics that members subscribe to; the plan may name others.
    """
    order = in_order(members)
    readers = subscribers(members, order)
    present = sorted(p for p in partitions if p.topic in readers)
    current = {p: one for p, one in owners(members).items() if p.topic in members[one].topics}
    wanted = set(present)
    bins = [{p: load for p, load in each.items() if p in wanted} for each in bins]
    bins = [each for each in bins if each]
    chosen = order[: len(bins)] if bins and are_static(members) else order
    pairs = _pairs(bins, chosen, current)
    # A member has left, and the plan is for more: what the others read does not move for that.
    settled = {current[p] for p in present if p in current} if len(bins) > len(chosen) else set()
    result = {
        partition: name
        for number, name in pairs.items()
        for partition in bins[number]
        if partition.topic in members[name].topics
        and (name not in settled or current.get(partition, name) == name)
    }
    for partition in present:
        if partition not in result and partition in current:
            result[partition] = current[partition]
    filled = set(pairs.values()) or set(order)
    _spread(result, present, bins, readers, filled)
    return result


def handed_over(wanted: Target, members: Members) -> Target:
    """Return what may be assigned in this rebalance by the cooperative protocol.

    A partition that another member says it reads waits: that one gives it up, and joins again.
    """
    claimed = claims(members)
    return {p: name for p, name in wanted.items() if not claimed_by_others(p, name, claimed)}


def _pairs(
    bins: PlanBins, order: Sequence[str], current: Mapping[TopicPartition, str]
) -> dict[int, str]:
    """Return the member of each bin; bins beyond the number of members have none.

    First those that share partitions are paired, so that the fewest move; then the others.
    """
    place = {name: number for number, name in enumerate(order)}
    shared: dict[int, dict[int, int]] = {}
    for number, inside in enumerate(bins):
        for partition in inside:
            if (member := place.get(current.get(partition, ""))) is not None:
                row = shared.setdefault(number, {})
                row[member] = row.get(member, 0) + 1
    columns = sorted({member for row in shared.values() for member in row})
    rows = sorted(shared)
    kept = [[shared[number].get(member, 0) for member in columns] for number in rows]
    found = {rows[row]: columns[column] for row, column in best_pairs(kept).items()}
    free = iter(member for member in range(len(order)) if member not in set(found.values()))
    for number in range(len(bins)):
        if number not in found and (member := next(free, None)) is not None:
            found[number] = member
    return {number: order[found[number]] for number in sorted(found)}


def _spread(
    result: Target,
    present: Sequence[TopicPartition],
    bins: PlanBins,
    readers: Mapping[str, Sequence[str]],
    filled: Collection[str],
) -> None:
    """Give each partition that has no reader yet to the least loaded member, the largest first.

    Members with a bin come first. A partition without a known load counts as the mean of all.
    """
    known = {partition: load for inside in bins for partition, load in inside.items()}
    mean = max(1, sum(known.values()) // len(known)) if known else 1
    loads: dict[str, tuple[int, int]] = {}
    for partition, name in result.items():
        load, count = loads.get(name, (0, 0))
        loads[name] = load + known.get(partition, mean), count + 1
    left = [partition for partition in present if partition not in result]
    for partition in sorted(left, key=lambda p: (-known.get(p, mean), p)):
        able = readers[partition.topic]
        able = [name for name in able if name in filled] or able
        name = min(able, key=lambda one: loads.get(one, (0, 0)))  # the first of equal ones
        load, count = loads.get(name, (0, 0))
        loads[name] = load + known.get(partition, mean), count + 1
        result[partition] = name
