"""The latency model as its equations are written, with every sample in an array."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from binwright.lab.packing.experiments import Experiment, PackingStream, decisions
from binwright.protocol.model import Slot, TopicPartition


def written_out(
    algorithm: str, source: PackingStream, limit: float = 133, t: float = 30, t_reb: float = 5
) -> NDArray[np.float64]:
    """Return all samples, eq. 16 to 27, for streams in which every queue can be read."""
    parts, last = [np.zeros(0)], dict[Slot, float]()
    for number, made in enumerate(decisions(Experiment(algorithm, source))):
        if number == 0:
            continue
        for slot in sorted(set(made.target.values())):
            owned = [p for p, owner in made.target.items() if owner == slot]
            rebalanced = [p for p in owned if made.current.get(p) != slot]
            w_f = _sum(made.rates, [p for p in owned if p not in rebalanced])
            w_r = _sum(made.rates, rebalanced)
            r_f = limit if w_r == 0 else min(limit, w_f)
            if b_f := int(t * w_f):
                l_f = (1 / r_f - 1 / w_f) * np.arange(b_f) + last.get(slot, 0)
                parts.append(np.maximum(l_f, 0))
                last[slot] = parts[-1][-1]
            if b_r := int(t * w_r):
                l_r = (1 / (limit - r_f) - 1 / w_r) * np.arange(b_r) + t_reb
                parts.append(np.maximum(l_r, 0))
                last[slot] = parts[-1][-1]
    return np.concatenate(parts)


def _sum(rates: Mapping[TopicPartition, float], partitions: list[TopicPartition]) -> float:
    return sum(rates[p] for p in partitions)
