"""Which of the swept settings to recommend: the cheapest that keep the SLA."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from binwright.lab.sweep.point import Result
from binwright.packing.score import pareto_front


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """One policy with one choice of settings, over all loads of a sweep."""

    label: str
    replica_minutes: float  # mean over the loads
    within_sla: float  # share of the bytes, 0 to 1, of the load where it is least
    moves: float  # mean over the loads
    loads: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """What a sweep recommends.

    Attributes:
        recommended: The cheapest candidate that keeps the target, else that with the highest share.
        keeps_target: Whether it does.
        front: The candidates that no other one beats in cost and in share, the cheapest first.
        target: The share of bytes that is to be read within the SLA, 0 to 1, of every load.
        sla_s: Seconds.
    """

    recommended: Candidate
    keeps_target: bool
    front: Sequence[Candidate]
    target: float
    sla_s: float


def candidates(results: Sequence[Result]) -> list[Candidate]:
    """Return the candidates in the order of their first result.

    What simulates no latencies, as the optimum without lag, is none.
    """
    grouped: dict[str, list[Result]] = {}
    for result in results:
        if result.score.within_sla is not None:
            grouped.setdefault(result.label, []).append(result)
    return [_candidate(label, found) for label, found in grouped.items()]


def _candidate(label: str, results: Sequence[Result]) -> Candidate:
    scores = [result.score for result in results]
    return Candidate(
        label=label,
        replica_minutes=fmean(score.replica_minutes for score in scores),
        within_sla=min(score.within_sla or 0.0 for score in scores),
        moves=fmean(score.moves or 0 for score in scores),
        loads=len(scores),
    )


def choose(found: Sequence[Candidate], target: float, sla_s: float) -> Choice:
    """Return what to recommend, with the Pareto front that it was taken from.

    Args:
        found: At least one, each with a label of its own.
        target: See `Choice`.
        sla_s: See `Choice`.
    """
    by_label = {one.label: one for one in found}
    points = {one.label: (one.replica_minutes, 1 - one.within_sla) for one in found}
    front = sorted(
        (by_label[label] for label in pareto_front(points)),
        key=lambda one: (one.replica_minutes, one.moves),
    )
    keeping = [one for one in front if one.within_sla >= target]
    recommended = keeping[0] if keeping else max(front, key=lambda one: one.within_sla)
    return Choice(
        recommended=recommended,
        keeps_target=bool(keeping),
        front=front,
        target=target,
        sla_s=sla_s,
    )
