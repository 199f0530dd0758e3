"""Least-Loaded: packs partitions by rate and lag into few replicas, evenly.

Ajiro and Tanaka, "Improving packing algorithms for server consolidation", CMG 2007, as used in
Ezzeddine, Baude, Huet, CLOSER 2024.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from heapq import heappop, heappush
from itertools import count

from binwright.packing.score import ROUNDING, lower_bound
from binwright.protocol.model import Assignment, Slot, TopicPartition
from binwright.scaler.decide.policy import Bin, Loads, PartitionLoad

Bins = tuple[tuple[TopicPartition, ...], ...]

TRIES = 4
"""So many numbers of bins are tried one after the other; then the steps double."""


def clip(load: PartitionLoad, capacity: Bin) -> PartitionLoad:
    """Return the load, at most a full bin: a partition that exceeds one fills one alone."""
    if load.rate <= capacity.rate and load.lag <= capacity.lag:
        return load
    return PartitionLoad(min(load.rate, capacity.rate), min(load.lag, capacity.lag))


def least_loaded(loads: Loads, capacity: Bin, fewest: int = 1) -> Bins:
    """Pack partitions into as few bins as the heuristic finds.

    Partitions are taken by rate, the largest first; each goes to the bin with the most rate left
    that has room for its lag, of equal ones to that with the fewest partitions. If one fits
    nowhere, all are packed again into more bins.
    The first try has as many bins as are needed at least, by the bound L2 of each dimension. A try
    costs O(log n) for each partition (see `OpenBins`).

    Args:
        loads: Of each partition.
        capacity: Of each bin.
        fewest: The least number of bins, if there are as many partitions.

    Returns:
        The bins, none of them empty. As many as partitions suffice.
    """
    items = _clipped(loads, capacity)
    return _pack(items, capacity, _least(items, capacity, fewest))


def least_loaded_below(replicas: int, loads: Loads, capacity: Bin, fewest: int = 1) -> Bins | None:
    """Return `least_loaded` if it has fewer bins than there are replicas, else None.

    Where the lower bound says that it has not, which is most often, nothing is packed.
    """
    items = _clipped(loads, capacity)
    least = _least(items, capacity, fewest)
    if least >= replicas:
        return None
    bins = _pack(items, capacity, least)
    return bins if len(bins) < replicas else None


def _clipped(loads: Loads, capacity: Bin) -> Loads:
    rate, lag = capacity.rate, capacity.lag
    over = {p: clip(one, capacity) for p, one in loads.items() if one.rate > rate or one.lag > lag}
    return {**loads, **over} if over else loads


def _least(items: Loads, capacity: Bin, fewest: int) -> int:
    """Return the fewest bins that may do."""
    return max(
        min(fewest, len(items)),
        lower_bound(sorted([item.rate / capacity.rate for item in items.values()])),
        lower_bound(sorted([item.lag / capacity.lag for item in items.values()])),
    )


def _pack(items: Loads, capacity: Bin, least: int) -> Bins:
    ordered = sorted(items.items(), key=lambda item: (-item[1].rate, item[0]))
    return _fewest(lambda number: _packed(ordered, capacity, number), least)


def _fewest(pack: Callable[[int], Bins | None], least: int) -> Bins:
    """Return the packing into the fewest bins, from `least` on.

    Beyond `TRIES` it is a packing of which one bin less does not do, which may not be the fewest:
    with more bins the heuristic may fail once more.
    """
    for number in range(least, least + TRIES):
        if (bins := pack(number)) is not None:
            return bins
    failed, step = least + TRIES - 1, 1
    while (bins := pack(failed + step)) is None:
        failed, step = failed + step, 2 * step
    while len(bins) - failed > 1:
        between = pack(middle := (failed + len(bins)) // 2)
        failed, bins = (middle, bins) if between is None else (failed, between)
    return bins


def _packed(
    items: Sequence[tuple[TopicPartition, PartitionLoad]], capacity: Bin, number: int
) -> Bins | None:
    """Return the items in `number` bins; None: one fits nowhere."""
    room = OpenBins(number, capacity)
    rate_slack, lag_slack = ROUNDING * capacity.rate, ROUNDING * capacity.lag
    bins: list[list[TopicPartition]] = [[] for _ in range(number)]
    for partition, load in items:
        at, rate = room.find(load.lag - lag_slack)
        if at < 0 or rate + rate_slack < load.rate:
            return None
        room.fill(at, load.rate, load.lag)
        bins[at].append(partition)
    return tuple(map(tuple, bins))


def exceeds(bins: Iterable[Iterable[TopicPartition]], loads: Loads, capacity: Bin) -> bool:
    """Return whether some bin has more than its capacity, of clipped loads."""
    most_rate, most_lag = capacity.rate * (1 + ROUNDING), capacity.lag * (1 + ROUNDING)
    for inside in bins:
        rate = lag = 0.0
        for partition in inside:
            load = clip(loads[partition], capacity)
            rate += load.rate
            lag += load.lag
        if rate > most_rate or lag > most_lag:
            return True
    return False


_Key = tuple[float, int, int]
"""- rate left, partitions, number: the least key is the bin to fill next."""
_NONE: _Key = (1.0, 0, 0)


class OpenBins:
    """Bins 0 to n - 1 as a tree; each node has the least key and the most lag left below it.

    To take a bin costs O(log n), and so does to find one, where rate and lag are not opposed: nodes
    without enough lag are not entered.
    """

    def __init__(self, number: int, capacity: Bin) -> None:
        leaves = 1 << (number - 1).bit_length()
        missing = leaves - number
        self._first = leaves
        self._keys = [_NONE] * leaves + [(-capacity.rate, 0, at) for at in range(number)]
        self._keys += [_NONE] * missing
        self._lags = [-1.0] * leaves + [capacity.lag] * number + [-1.0] * missing
        # Level by level, from the leaves: of equal bins the left one has the least key.
        level = leaves
        while level > 1:
            above = slice(level // 2, level)
            self._keys[above] = self._keys[level : 2 * level : 2]
            self._lags[above] = self._lags[level : 2 * level : 2]
            level //= 2

    def find(self, lag: float) -> tuple[int, float]:
        """Return the bin with the most rate left that has so much lag left, and its rate left.

        Of equal ones that with the fewest partitions, then the lowest number. Without one the rate
        left is negative.
        """
        best = self._keys[1]
        if self._lags[self._first + best[2]] >= lag:
            return best[2], -best[0]
        reached = [(best, 1)]
        while reached:
            key, node = heappop(reached)
            if node >= self._first:
                return key[2], -key[0]
            for child in (2 * node, 2 * node + 1):
                if self._lags[child] >= lag:
                    heappush(reached, (self._keys[child], child))
        return -1, -1.0

    def fill(self, number: int, rate: float, lag: float) -> None:
        """Put a partition into a bin."""
        keys, lags = self._keys, self._lags
        node = self._first + number
        left, partitions, _ = keys[node]
        key = keys[node] = (left + rate, partitions + 1, number)
        most = lags[node] = lags[node] - lag
        # Calls of `min` and `max` would double the time of a whole packing.
        while node > 1:
            if keys[node ^ 1] < key:  # noqa: PLR1730
                key = keys[node ^ 1]
            if lags[node ^ 1] > most:  # noqa: PLR1730
                most = lags[node ^ 1]
            node //= 2
            keys[node], lags[node] = key, most


def assign(bins: Bins, current: Assignment) -> dict[TopicPartition, Slot]:
    """Return who reads each partition: bin by bin, the pair that keeps the most partitions first.

    Args:
        bins: n of them; slots 0 to n - 1 get one each.
        current: Who reads each partition now.
    """
    kept = Counter(
        (current[partition], number)
        for number, inside in enumerate(bins)
        for partition in inside
        if current.get(partition, len(bins)) < len(bins)
    )
    slots: dict[int, Slot] = {}
    taken: set[Slot] = set()
    for slot, number in sorted(kept, key=lambda pair: (-kept[pair], pair)):
        if number not in slots and slot not in taken:
            slots[number] = slot
            taken.add(slot)
    free = (Slot(slot) for slot in count() if slot not in taken)
    for number in range(len(bins)):
        if number not in slots:
            slots[number] = next(free)
    return {p: slots[number] for number, inside in enumerate(bins) for p in inside}


def owned(assignment: Assignment) -> Iterator[list[TopicPartition]]:
    """Yield the partitions of each replica that has some, by slot."""
    by_slot: dict[Slot, list[TopicPartition]] = {}
    for partition in sorted(assignment):
        by_slot.setdefault(assignment[partition], []).append(partition)
    yield from (by_slot[slot] for slot in sorted(by_slot))
