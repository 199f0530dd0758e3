"""The timings as a section of the lab's report."""

from binwright.lab.report.section import Section
from binwright.lab.timings.figures import charts
from binwright.lab.timings.outcome import Timings
from binwright.lab.timings.paper import SOURCE
from binwright.lab.timings.remarks import remarks
from binwright.lab.timings.tables import capacities, durations, events

EXPECTED = (
    "Published: the monitor converges within 30 s, its window; 98 % of the triggers take 1 s at "
    "most; 88 % of the consumers are ready within 50 s, on Google's cloud; a change of state takes "
    "5 s, two cycles of a consumer; a consumer reads 2.4 MB/s whatever the partitions and tables. "
    "Here consumers are processes of one machine, acknowledge at once, and stage files, which "
    "Spark lands: the monitor, whose window is as long, should take as long, all else less. The "
    "controller compares once a second, so a trigger takes up to a second."
)


def section(found: Timings, about: str) -> Section:
    """Return tables and charts of what was timed.

    Args:
        found: What was timed.
        about: The system and its load, in sentences.
    """
    tables = [durations(found), capacities(found.capacities), events(found)]
    return Section(
        title="Timings of a live system",
        source=SOURCE,
        expected=EXPECTED,
        seen=" ".join([about, *remarks(found)]),
        tables=[table for table in tables if table.rows],
        charts=charts(found),
    )
