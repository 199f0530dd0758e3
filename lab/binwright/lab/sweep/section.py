"""A sweep as a section of the lab's report: the candidates and the Pareto front."""

from collections.abc import Sequence

from matplotlib.figure import Figure

from binwright.lab.report.section import Chart, Section, Table
from binwright.lab.sweep.choice import Candidate, Choice
from binwright.lab.sweep.point import Result
from binwright.lab.sweep.results import rows


def sweep_section(results: Sequence[Result], found: Sequence[Candidate], chosen: Choice) -> Section:
    """Return the sweep: what each candidate costs and keeps, and which one is recommended."""
    best = chosen.recommended
    kept = "keeps" if chosen.keeps_target else "misses"
    return Section(
        title="Settings for a load",
        source=f"{len(results)} simulations of {len(found)} candidates; SLA {chosen.sla_s:g} s",
        expected=f"{chosen.target:.2%} of the bytes of every load are read within the SLA.",
        seen=f"{best.label} {kept} it: {best.within_sla:.3%} within the SLA at "
        f"{best.replica_minutes:,.0f} replica-minutes.",
        tables=[_candidates(found, chosen), _results(results)],
        charts=[
            Chart(
                name="sweep-front",
                caption="What each candidate costs, and what it does not read in time. The line "
                "joins those that no other one beats in both; the ring is the recommended one.",
                figure=_front(found, chosen),
            )
        ],
    )


def _candidates(found: Sequence[Candidate], chosen: Choice) -> Table:
    front = {one.label for one in chosen.front}
    columns = ("policy and settings", "replica-minutes", "within SLA, %", "moves", "loads", "front")
    return Table(
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
                "yes" if one.label in front else "",
            )
            for one in found
        ],
    )


def _results(results: Sequence[Result]) -> Table:
    every = rows(results)
    return Table(
        name="sweep-results",
        title="Every simulation",
        columns=tuple(every[0]),
        rows=[tuple(row.values()) for row in every],
    )


def _front(found: Sequence[Candidate], chosen: Choice) -> Figure:
    figure = Figure(figsize=(7, 4.5), layout="constrained")
    axes = figure.add_subplot()
    axes.plot(*_points(chosen.front), "-", color="0.6", zorder=0, label="Pareto front")
    axes.plot(*_points(found), "o", markersize=4, label="candidates")
    axes.plot(
        *_points([chosen.recommended]), "o", markersize=12, fillstyle="none", label="recommended"
    )
    axes.axhline(100 * (1 - chosen.target), linestyle=":", color="0.4", label="target")
    axes.set_xlabel("replica-minutes")
    axes.set_ylabel(f"read later than {chosen.sla_s:g} s, % of the bytes")
    axes.legend(fontsize=8)
    return figure


def _points(found: Sequence[Candidate]) -> tuple[list[float], list[float]]:
    return [one.replica_minutes for one in found], [100 * (1 - one.within_sla) for one in found]
