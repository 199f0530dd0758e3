"""Every figure and table of the two publications, and where the report has it.

What a text copy of them shows is in words of our own; nothing of them is copied.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from binwright.lab.report.comparisons import DIFFERENCES, differences
from binwright.lab.report.contents import Cell, ReportSection, ReportTable

GROUPS, QUEUES = "groups", "queues"
"""The keys of the two."""
DRAWING = "A drawing: nothing was measured."
DEFINITIONS = "Definitions: nothing was measured."
LIVE = "Needs a live system: `binwright lab timings`."


@dataclass(frozen=True, slots=True)
class Item:
    """A figure or a table."""

    name: str
    shows: str
    why_not: str = ""  # why no experiment of the report has it; empty: one must


@dataclass(frozen=True, slots=True)
class PublishedPaper:
    """A paper, with all of its figures and tables."""

    short: str
    items: Sequence[Item]


PUBLICATIONS: Mapping[str, PublishedPaper] = MappingProxyType(
    {
        GROUPS: PublishedPaper(
            "Landau, Andrade, Barbosa (arXiv 2402.06085)",
            (
                Item("Figure 1", "the domain of the problem", DRAWING),
                Item("Figure 2", "monitor, controller, consumers and their topics", DRAWING),
                Item("Figure 3", "the cycle of a consumer", DRAWING),
                Item("Figure 4", "the states of the controller", DRAWING),
                Item("Figure 5", "latencies of kd_27 and MWF, a histogram"),
                Item("Figure 6", "mean number of consumers"),
                Item("Figure 7", "number of samples above 0"),
                Item("Figure 8", "latencies above 0, box plots"),
                Item("Figure 9", "CBS of the classical algorithms"),
                Item("Figure 10", "CBS of the modified algorithms"),
                Item("Figure 11", "average Rscore"),
                Item("Figure 12", "Pareto fronts of CBS and Rscore"),
                Item("Figure 13", "capacity of a consumer in three conditions", LIVE),
                Item("Figure 14", "the events of a change, in their order", DRAWING),
                Item("Figure 15", "time from a measurement to a plan", LIVE),
                Item("Figure 16", "time until new consumers are ready", LIVE),
                Item("Figure 17", "time until all moves are acknowledged", LIVE),
                Item("Table I", "symbols of the Rscore", DEFINITIONS),
                Item("Table II", "the modified algorithms", DEFINITIONS),
                Item("Table III", "symbols of the latency model", DEFINITIONS),
                Item("Table IV", "symbols of the metrics", DEFINITIONS),
                Item("Table V", "the machines of the live tests", DEFINITIONS),
                Item("Table VI", "the three conditions of Figure 13", LIVE),
            ),
        ),
        QUEUES: PublishedPaper(
            "Ezzeddine, Baude, Huet (CLOSER 2024)",
            (
                Item("Figure 1", "a queue, its producer and its group", DRAWING),
                Item("Figure 2", "workload 1"),
                Item("Figure 3", "workload 2"),
                Item("Figure 4", "latencies of Algorithm 2 on workload 1"),
                Item("Figure 5", "the same by consumer"),
                Item("Figure 6", "latencies of Algorithm 2 on workload 2"),
                Item("Figure 7", "distributions on the skewed workload 1"),
                Item("Figure 8", "latencies of Algorithm 2 on the skewed workload 2"),
                Item("Figure 9", "distributions by heartbeat interval"),
                Item("Figure 10", "distributions of Algorithm 1 by rebalance time"),
                Item("Figure 11", "both algorithms, rebalances of 0.5 s"),
                Item("Figure 12", "both algorithms, rebalances of 2 s"),
                Item("Table 1", "symbols of the algorithms", DEFINITIONS),
                Item("Table 2", "SLA, cost and steps on workload 1"),
                Item("Table 3", "SLA, cost and steps on workload 2"),
                Item("Section 5.1", "SLA and cost on the skewed workloads"),
            ),
        ),
    }
)
MISSING = "Not run."


def overview(sections: Sequence[ReportSection]) -> ReportSection:
    """Return a section that lists every published figure and table, with its differences.

    Args:
        sections: Those of the report; their numbers on the page follow this one's.
    """
    return ReportSection(
        title="Every published figure and table",
        source="; ".join(one.short for one in PUBLICATIONS.values()),
        about="The section of this page that has it, its charts and tables, and ours - published.",
        tables=[_table(key, sections) for key in PUBLICATIONS],
    )


def _table(key: str, sections: Sequence[ReportSection]) -> ReportTable:
    # The overview is the first section of the page.
    own = [(number, one) for number, one in enumerate(sections, 2) if one.publication == key]
    none: Sequence[Cell] = (None,) * len(DIFFERENCES)
    rows: list[Sequence[Cell]] = []
    for item in PUBLICATIONS[key].items:
        compared = [each for _, one in own for each in one.comparisons if each.figure == item.name]
        places = "; ".join(
            f"{number}: {', '.join(names)}"
            for number, one in own
            if (names := _showing(item.name, one))
        )
        why_not = "" if places or compared else item.why_not or MISSING
        gaps = list(differences(compared)) or [none]
        rows += [(item.name, item.shows, places, *gap, why_not) for gap in gaps]
    return ReportTable(
        name=f"published-{key}",
        title=PUBLICATIONS[key].short,
        columns=("published", "shows", "on this page", *DIFFERENCES, "why not"),
        rows=rows,
    )


def _showing(figure: str, section: ReportSection) -> list[str]:
    """Return the names of the section's charts and tables that show a published figure."""
    charts = [one.name for one in section.charts if figure in one.figures]
    return charts + [one.name for one in section.tables if figure in one.figures]
