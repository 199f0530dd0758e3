"""The rule by which an assignor gives the bins of a plan to the members of a group.

`docs/design/assignor.md` describes it, and `PlanMapping.java` does the same; the cases of
`tests/scaler/decide/vectors.json` hold for both.
"""

from collections.abc import Collection, Mapping, Sequence

from binwright.protocol.model import TopicPartition
from binwright.scaler.decide.members import (
    Members,
    Owners,
    are_static,
    in_order,
    owners,
    subscribers,
)

PlanBins = Sequence[Mapping[TopicPartition, int]]
"""Each for one member: partition -> its load, in thousandths of a member's capacity."""


def target(
    bins: PlanBins,
    members: Members,
    partitions: Collection[TopicPartition],
    leaving: Collection[str] = (),
) -> dict[TopicPartition, str]:
    """Return who is to read each partition.

    Args:
        bins: Of the plan.
        members: At least one.
        partitions: All of the topics that members subscribe to; the plan may name others.
        leaving: Ids of members that are to read nothing; there may be others.
    """
    order = in_order(members)
    readers = subscribers(members, order)
    present = sorted(p for p in partitions if p.topic in readers)
    current = {p: one for p, one in owners(members).items() if p.topic in members[one].topics}
    wanted = set(present)
    bins = [{p: load for p, load in each.items() if p in wanted} for each in bins]
    bins = [each for each in bins if each]
    # Members that leave read only what nobody else can: what no other subscribes to, or all.
    stay = [name for name in order if name not in leaving] or order
    candidates = stay[: len(bins)] if bins and are_static(members) else stay
    pairs = _pairs(bins, candidates, current)
    # A member has left, and the plan is for more: what the others read does not move for that.
    settled = (
        {current[p] for p in present if p in current} if len(bins) > len(candidates) else set()
    )
    result = {
        partition: name
        for number, name in pairs.items()
        for partition in bins[number]
        if partition.topic in members[name].topics
        and (name not in settled or current.get(partition, name) == name)
    }
    for partition in present:
        if partition not in result and current.get(partition) in stay:
            result[partition] = current[partition]
    filled = set(pairs.values()) or set(stay)
    _spread(result, present, bins, readers, filled)
    return result


def _pairs(bins: PlanBins, order: Sequence[str], current: Owners) -> dict[int, str]:
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
    members = {rows[row]: columns[column] for row, column in best_pairs(kept).items()}
    free = iter(member for member in range(len(order)) if member not in set(members.values()))
    for number in range(len(bins)):
        if number not in members and (member := next(free, None)) is not None:
            members[number] = member
    return {number: order[members[number]] for number in sorted(members)}


def _spread(
    result: dict[TopicPartition, str],
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


_FAR = 1 << 60


def best_pairs(kept: Sequence[Sequence[int]]) -> dict[int, int]:
    """Return the column of each row, such that the sum of the chosen values is the largest.

    Args:
        kept: n rows of m values each, >= 0. The shorter side is paired completely.

    Returns:
        Row -> column, min(n, m) of them.
    """
    if not kept:
        return {}
    if len(kept) > len(kept[0]):
        turned = [list(column) for column in zip(*kept, strict=True)]
        return {row: column for column, row in best_pairs(turned).items()}
    search = _BinMatching(kept)
    for row in range(len(kept)):
        search.add(row)
    return {row: column for column, row in enumerate(search.row_of) if row >= 0}


class _BinMatching:
    """The rows that are paired so far, with the potentials that prove the pairs the best."""

    def __init__(self, kept: Sequence[Sequence[int]]) -> None:
        self.kept = kept
        self.columns = len(kept[0])
        self.row_of = [-1] * self.columns
        self.of_row, self.of_column = [0] * len(kept), [0] * self.columns

    def add(self, row: int) -> None:
        """Pair one more row along the shortest path to a free column."""
        distance, before = [_FAR] * self.columns, [-1] * self.columns
        visited: list[int] = []
        seen = [False] * self.columns
        column, current = -1, row
        while current >= 0:
            nearest = self._nearest(current, column, seen, distance, before)
            step = distance[nearest]
            self.of_row[row] += step
            for each in visited:
                self.of_row[self.row_of[each]] += step
                self.of_column[each] -= step
            for each in range(self.columns):
                if not seen[each]:
                    distance[each] -= step
            column = nearest
            seen[column] = True
            visited.append(column)
            current = self.row_of[column]
        while column >= 0:
            previous = before[column]
            self.row_of[column] = self.row_of[previous] if previous >= 0 else row
            column = previous

    def _nearest(
        self, row: int, column: int, seen: list[bool], distance: list[int], before: list[int]
    ) -> int:
        """Update the distances by way of `row`, and return the nearest column; a free one first."""
        nearest = -1
        values, potential = self.kept[row], self.of_row[row]
        for each in range(self.columns):
            if seen[each]:
                continue
            cost = -values[each] - potential - self.of_column[each]
            if cost < distance[each]:
                distance[each], before[each] = cost, column
            is_nearer = nearest < 0 or distance[each] < distance[nearest]
            if is_nearer or (
                distance[each] == distance[nearest]
                and self.row_of[each] < 0
                and self.row_of[nearest] >= 0
            ):
                nearest = each
        return nearest
