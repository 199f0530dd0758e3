"""Bins for a group of a given size: as even as few moves make them."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from binwright.packing.score import ROUNDING
from binwright.protocol.model import Assignment, TopicPartition
from binwright.scaler.decide.least_loaded import Bins

Rates = Mapping[TopicPartition, float]


class BinsProposal(NamedTuple):
    """Other bins, and why."""

    bins: Bins  # one for each member; some may be empty
    reason: str  # for people
    leaving: tuple[str, ...] = ()  # members that are to read nothing: there is no bin for them


def imbalance(bins: Sequence[Sequence[TopicPartition]], rates: Rates) -> float:
    """Return the largest load over the mean; 1 if there is no load."""
    loads = [sum(rates.get(p, 0.0) for p in inside) for inside in bins]
    every = sum(loads)
    return max(loads) * len(loads) / every if every else 1.0


def even_out(rates: Rates, current: Assignment, members: int, tolerance: float) -> Bins:
    """Return one bin for each member, even but for `tolerance`, close to who reads what now.

    Partitions without a reader, or with one beyond `members`, come first: each goes to the least
    loaded, the largest first. Then the most loaded member hands one partition to the least loaded,
    or exchanges one with it, until that helps no more.

    Args:
        rates: Of each partition, in any unit.
        current: The member that reads each partition, from 0.
        members: How many there are, > 0.
        tolerance: Up to which share of the mean the largest load may exceed it.
    """
    bins: list[list[TopicPartition]] = [[] for _ in range(members)]
    loads = [0.0] * members
    left = []
    for partition in sorted(rates):
        slot = current.get(partition, members)
        if slot < members:
            bins[slot].append(partition)
            loads[slot] += rates[partition]
        else:
            left.append(partition)
    for partition in sorted(left, key=lambda p: (-rates[p], p)):
        slot = min(range(members), key=lambda one: (loads[one], len(bins[one]), one))
        bins[slot].append(partition)
        loads[slot] += rates[partition]
    most = (1 + tolerance) * sum(loads) / members
    while max(loads) > most * (1 + ROUNDING) and _step(bins, loads, rates):
        pass  # each step makes the sum of squared loads less, so this ends
    return tuple(tuple(sorted(inside)) for inside in bins)


def _step(bins: list[list[TopicPartition]], loads: list[float], rates: Rates) -> bool:
    """Move or exchange partitions between the most and the least loaded; False: none helps."""
    high = max(range(len(loads)), key=lambda one: (loads[one], -one))
    low = min(range(len(loads)), key=lambda one: (loads[one], one))
    gap = loads[high] - loads[low]
    exchange = _closest({(p, None): rates[p] for p in bins[high]}, gap)
    if exchange is None:
        exchange = _closest(
            {(p, q): rates[p] - rates[q] for p in bins[high] for q in bins[low]}, gap
        )
    if exchange is None:
        return False
    away, back = exchange
    for partition, source, sink in ((away, high, low), (back, low, high)):
        if partition is not None:
            bins[source].remove(partition)
            bins[sink].append(partition)
            loads[source] -= rates[partition]
            loads[sink] += rates[partition]
    return True


_Exchange = tuple[TopicPartition, TopicPartition | None]


def _closest(differences: Mapping[_Exchange, float], gap: float) -> _Exchange | None:
    """Return what changes the loads by about half of the gap, and by less than all of it."""
    least = ROUNDING * gap
    able = {each: by for each, by in differences.items() if least < by < gap - least}
    if not able:
        return None
    return min(able, key=lambda each: (abs(able[each] - gap / 2), each[0], each[1] or each[0]))
