"""The paper's Figures 9 to 12 as a section of the lab's report."""

from collections.abc import Callable, Mapping, Sequence

from binwright.lab.packing import paper
from binwright.lab.packing.counterparts import counterparts, differences, in_words
from binwright.lab.packing.experiments import Score
from binwright.lab.packing.figures import Scores, fronts, per_delta
from binwright.lab.report.publications import GROUPS
from binwright.lab.report.section import Cell, Chart, Section, Table
from binwright.packing.catalogue import PAPER
from binwright.packing.score import pareto_front

Cells = Callable[[int, str], str]


def paper_section(scores: Scores, starts: Scores, seeds: int, rows: int) -> Section:
    """Return the tables and charts of Figures 9 to 12, computed beside recorded values.

    Args:
        scores: Of streams with uniformly random rates at first.
        starts: Means over all of the paper's `STARTS`.
        seeds: Streams for each delta and start.
        rows: Measurements of a stream.
    """
    return Section(
        title="Consumers and moves of the paper's packings",
        source="Landau, Andrade, Barbosa, arXiv 2402.06085, Section VI-E, Figures 9 to 12",
        expected=(
            "Of the twelve, BFD uses the fewest consumers and MWF moves the least; MWF, MBF and "
            "MBFP are on the Pareto front at each delta but 0. Published tables: 200 partitions, "
            "501 measurements."
        ),
        seen=_seen(scores, starts, seeds, rows),
        tables=_tables(scores, starts),
        charts=_charts(scores, starts),
        publication=GROUPS,
        counterparts=counterparts(scores, starts),
    )


def _seen(scores: Scores, starts: Scores, seeds: int, rows: int) -> str:
    compared = (
        ("CBS", "cbs", scores, "", 100, "points"),
        ("E[R]", "expected_rscore", scores, "", 1, "capacities"),
        ("CBS of four starts", "cbs", starts, paper.OF_FOUR_STARTS, 100, "points"),
        ("E[R] of four starts", "expected_rscore", starts, paper.OF_FOUR_STARTS, 1, "capacities"),
    )
    parts = [f"{paper.PARTITIONS} partitions, {rows} measurements, streams a delta: {seeds}."]
    for label, field, found, suffix, scale, unit in compared:
        gaps = differences(found, field, suffix)
        parts.append(f"{label} differs from the recorded by {in_words(gaps, scale, unit)}")
    return " ".join([*parts, *(f"{line}." for line in paper.headlines(scores))])


def _tables(scores: Scores, starts: Scores) -> list[Table]:
    shown = (
        ("paper-cbs", "CBS, per cent (Figures 9 and 10)", "cbs", scores, ""),
        ("paper-rscore", "E[R] (Figure 11)", "expected_rscore", scores, ""),
        ("paper-moves", "Partitions moved at a decision", "moves", scores, ""),
        ("paper-cbs-starts", "CBS of four starts (Figure 12)", "cbs", starts, paper.OF_FOUR_STARTS),
        (
            *("paper-rscore-starts", "E[R] of four starts (Figure 12)", "expected_rscore"),
            *(starts, paper.OF_FOUR_STARTS),
        ),
    )
    return [*(_table(*one) for one in shown), _pareto(starts), _headlines(scores)]


def _table(name: str, title: str, field: str, scores: Scores, suffix: str) -> Table:
    deltas = sorted({delta for delta, _ in scores})
    scale = 100 if field == "cbs" else 1
    recorded = paper.RECORDED[f"{field}{suffix}"]

    def cell(delta: int, packing: str) -> str:
        beside = recorded.get(packing, {}).get(str(delta))
        computed = f"{scale * getattr(scores[delta, packing], field):.2f}"
        return computed if beside is None else f"{computed} / {scale * beside:.2f}"

    return Table(
        name=name,
        title=f"{title}: computed / recorded",
        columns=["packing", *(f"delta {delta}" for delta in deltas)],
        rows=[
            [packing, *(cell(delta, packing) for delta in deltas)]
            for packing in dict.fromkeys(packing for _, packing in scores)
        ],
    )


def _pareto(starts: Scores) -> Table:
    """Return which of the twelve are undominated; with `sticky` among them most are not."""
    rows = list[list[Cell]]()
    for delta in sorted({delta for delta, _ in starts}):
        computed = {
            name: point
            for name, point in paper.computed_points(starts, delta).items()
            if name in PAPER
        }
        recorded = paper.recorded_points(delta, paper.OF_FOUR_STARTS)
        every = paper.computed_points(starts, delta)
        found = (computed, recorded, every)
        rows.append([delta, *(", ".join(pareto_front(points)) for points in found)])
    return Table(
        name="paper-fronts",
        title="Undominated packings, mean of four starts (Figure 12)",
        columns=("delta", "of the twelve, computed", "of the twelve, recorded", "of all, computed"),
        rows=rows,
    )


def _headlines(scores: Mapping[tuple[int, str], Score]) -> Table:
    columns = (
        *("delta", "E[R] of MWF beside the best classical, %", "recorded, %", "difference, points"),
        *("CBS of MWF, %", "recorded, %", "difference, points"),
    )
    rows = []
    for delta in paper.HEADLINE_DELTAS:
        ours = paper.saving(paper.computed_points(scores, delta))
        theirs = paper.saving(paper.recorded_points(delta))
        if ours is not None and theirs is not None:
            moved = _compared(ours.rscore_change, theirs.rscore_change)
            rows.append([delta, *moved, *_compared(ours.cbs, theirs.cbs)])
    return Table(
        name="paper-headlines",
        title="The paper's two headline ratios",
        columns=columns,
        rows=rows,
        note="The best classical algorithm is the one of least E[R], NFD in all recorded streams.",
    )


def _compared(ours: float, theirs: float) -> Sequence[float]:
    return [round(100 * value, 2) for value in (ours, theirs, ours - theirs)]


def _charts(scores: Scores, starts: Scores) -> list[Chart]:
    deltas = sorted({delta for delta, _ in starts})
    names = dict.fromkeys(name for _, name in scores)
    modified = [name for name in names if name not in paper.CLASSICAL]
    return [
        Chart(
            name="paper-figure-9",
            caption="Figure 9: CBS of the classical algorithms, computed and recorded.",
            figure=per_delta(scores, "cbs", paper.CLASSICAL),
        ),
        Chart(
            name="paper-figure-10",
            caption="Figure 10: CBS of the modified algorithms, computed and recorded, and sticky.",
            figure=per_delta(scores, "cbs", modified),
        ),
        Chart(
            name="paper-figure-11",
            caption="Figure 11: E[R], computed and recorded.",
            figure=per_delta(scores, "expected_rscore"),
        ),
        Chart(
            name="paper-figure-12",
            caption=(
                "Figure 12: means over four ways to start: rates uniformly random, or all 0, 50 or "
                "100 per cent. Lines join the undominated packings: of the twelve, dotted of all."
            ),
            figure=fronts(starts, deltas, paper.OF_FOUR_STARTS),
        ),
    ]
