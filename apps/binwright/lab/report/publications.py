"""Every figure and table of the two publications, and where the report has it.

What a text copy of them shows is in words of our own; nothing of them is copied.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from binwright.lab.report.contents import Cell, PublishedComparison, ReportSection, ReportTable

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
    """Return a section that lists every published figure and table, with its difference.

    Args:
        sections: Those of the report; their numbers on the page follow this one's.
    """
    tables = [_table(key, sections) for key in PUBLICATIONS]
    rows = [row for table in tables for row in table.rows]
    shown = sum(row[2] != "" for row in rows)
    lacking = [f"{row[0]}" for row in rows if row[3] == MISSING]
    return ReportSection(
        title="Every published figure and table",
        source="; ".join(one.short for one in PUBLICATIONS.values()),
        expected="Each is on this page with how far ours is from it, or with why it is not. Named "
        "are the section of this page, and its charts and tables.",
        seen=f"{shown} of {len(rows)} are on this page"
        + (f"; not run: {', '.join(lacking)}." if lacking else "; the others say why not."),
        tables=tables,
    )


def _table(key: str, sections: Sequence[ReportSection]) -> ReportTable:
    publication = PUBLICATIONS[key]
    return ReportTable(
        name=f"published-{key}",
        title=publication.short,
        columns=("published", "shows", "on this page", "difference: ours - published"),
        rows=[_row(item, key, sections) for item in publication.items],
    )


def _row(item: Item, key: str, sections: Sequence[ReportSection]) -> Sequence[Cell]:
    numbered = list(_comparisons(item, key, sections))
    if not numbered:
        return item.name, item.shows, "", item.why_not or MISSING
    places = [f"{number}: {', '.join(one.ours)}" for number, one in numbered]
    return item.name, item.shows, "; ".join(places), " ".join(one.difference for _, one in numbered)


def _comparisons(
    item: Item, key: str, sections: Sequence[ReportSection]
) -> Iterator[tuple[int, PublishedComparison]]:
    # The overview is the first section of the page.
    for number, section in enumerate(sections, 2):
        for one in section.comparisons:
            if section.publication == key and one.of == item.name:
                yield number, one
