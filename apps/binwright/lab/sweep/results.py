"""A sweep's results: as rows, as a Delta table, and which settings to recommend."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from statistics import fmean
from typing import Any

from binwright.lab.spark_tasks import on_spark
from binwright.lab.sweep.points import PointResult
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


def candidates(results: Sequence[PointResult]) -> list[Candidate]:
    """Return the candidates in the order of their first result.

    What simulates no latencies, as the optimum without lag, is none.
    """
    grouped: dict[str, list[PointResult]] = {}
    for result in results:
        if result.score.within_sla is not None:
            grouped.setdefault(result.label, []).append(result)
    return [_candidate(label, of_label) for label, of_label in grouped.items()]


def _candidate(label: str, results: Sequence[PointResult]) -> Candidate:
    scores = [result.score for result in results]
    return Candidate(
        label=label,
        replica_minutes=fmean(score.replica_minutes for score in scores),
        within_sla=min(score.within_sla or 0.0 for score in scores),
        moves=fmean(score.moves or 0 for score in scores),
        loads=len(scores),
    )


def choose(swept: Sequence[Candidate], target: float, sla_s: float) -> Choice:
    """Return what to recommend, with the Pareto front that it was taken from.

    Args:
        swept: At least one, each with a label of its own.
        target: See `Choice`.
        sla_s: See `Choice`.
    """
    by_label = {one.label: one for one in swept}
    points = {one.label: (one.replica_minutes, 1 - one.within_sla) for one in swept}
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


SCHEMA = (
    "label string, load string, policy string, consumers_mean double, consumers_max long, "
    "replica_minutes double, changes long, moves long, moved_bytes_per_s double, "
    "paused_s double, lag_max_bytes double, p50_s double, p90_s double, p99_s double, "
    "within_sla double, cost double"
)
"""The columns of a row; see `Score` for their units."""


def rows(results: Sequence[PointResult]) -> list[dict[str, Any]]:
    """Return a row for each result: its label, its load, and its figures."""
    return [{"label": one.label, "load": one.load, **asdict(one.score)} for one in results]


def write_table(results: Sequence[PointResult], url: str, path: str) -> None:
    """Write the results into a new Delta table.

    Args:
        results: At least one.
        url: A Spark Connect server, sc://HOST:PORT.
        path: Of the table, as the server sees it.

    Raises:
        LakeUnavailable: Spark failed, or there is a table at this path.
    """
    columns = [name.split()[0] for name in SCHEMA.split(", ")]
    values = [tuple(row[column] for column in columns) for row in rows(results)]

    def write(spark: Any) -> None:
        frame = spark.createDataFrame(values, SCHEMA).coalesce(1)
        frame.write.format("delta").mode("error").save(path)

    on_spark(url, f"write the results to {path}", write)
