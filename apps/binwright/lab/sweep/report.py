"""A sweep as a section of the lab's report: the candidates and the Pareto front."""

from collections.abc import Sequence

from matplotlib.figure import Figure

from binwright.lab.report.contents import Chart, ReportSection, ReportTable
from binwright.lab.sweep.points import PointResult
from binwright.lab.sweep.results import Candidate, Choice, rows


def sweep_section(
    results: Sequence[PointResult], swept: Sequence[Candidate], choice: Choice
) -> ReportSection:
    """Return the sweep: what each candidate costs and keeps, and which one is recommended."""
    return ReportSection(
        title="Settings for a load",
        source=f"{len(results)} simulations of {len(swept)} candidates; SLA {choice.sla_s:g} s",
        about=f"Target: {choice.target:.2%} of the bytes of every load are read within the SLA.",
        tables=[_candidates(swept, choice), _results(results)],
        charts=[
            Chart(
                name="sweep-front",
                caption="What each candidate costs, and what it does not read in time. The line "
                "joins those that no other one beats in both; the ring is the recommended one.",
                figure=_front(swept, choice),
            )
        ],
    )


def _candidates(swept: Sequence[Candidate], choice: Choice) -> ReportTable:
    front = {one.label for one in choice.front}
    columns = (
        *("policy and settings", "replica-minutes", "within SLA, %", "moves", "loads"),
        *("keeps the target", "front", "recommended"),
    )
    return ReportTable(
        name="sweep-candidates",
        title="Candidates: means over the loads, the share of the worst load",
        columns=columns,
        rows=[
            (
                one.label,
                round(one.replica_minutes, 1),
                round(100 * one.within_sla, 4),
                round(one.moves, 1),
                one.loads,
                "yes" if one.within_sla >= choice.target else "no",
                "yes" if one.label in front else "",
                "yes" if one is choice.recommended else "",
            )
            for one in swept
        ],
    )


def _results(results: Sequence[PointResult]) -> ReportTable:
    every = rows(results)
    return ReportTable(
        name="sweep-results",
        title="Every simulation",
        columns=tuple(every[0]),
        rows=[tuple(row.values()) for row in every],
    )


def _front(swept: Sequence[Candidate], choice: Choice) -> Figure:
    figure = Figure(figsize=(7, 4.5), layout="constrained")
    axes = figure.add_subplot()
    axes.plot(*_points(choice.front), "-", color="0.6", zorder=0, label="Pareto front")
    axes.plot(*_points(swept), "o", markersize=4, label="candidates")
    axes.plot(
        *_points([choice.recommended]), "o", markersize=12, fillstyle="none", label="recommended"
    )
    axes.axhline(100 * (1 - choice.target), linestyle=":", color="0.4", label="target")
    axes.set_xlabel("replica-minutes")
    axes.set_ylabel(f"read later than {choice.sla_s:g} s, % of the bytes")
    axes.legend(fontsize=8)
    return figure


def _points(swept: Sequence[Candidate]) -> tuple[list[float], list[float]]:
    return [one.replica_minutes for one in swept], [100 * (1 - one.within_sla) for one in swept]
