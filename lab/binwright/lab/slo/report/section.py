"""The experiment's section of the report."""

from collections.abc import Iterator, Sequence

from binwright.lab.report.publications import QUEUES
from binwright.lab.report.section import Cell, Section, Table
from binwright.lab.slo.contenders import DOWN, TUNED_DOWN, TUNED_UP, UP
from binwright.lab.slo.paper import GAP, MEAN_SLA_POINTS, MINUTES_SHARE, SLA_POINTS, SOURCE, STEPS
from binwright.lab.slo.report import tables
from binwright.lab.slo.report.charts import charts_of
from binwright.lab.slo.report.counterparts import counterparts
from binwright.lab.slo.report.equal_sla import TARGET, equal_sla, verdict
from binwright.lab.slo.results import BETTER, RIVAL, TableResult

EXPECTED = (
    f"Each simulated SLA within {SLA_POINTS} points of the paper's, in the mean within "
    f"{MEAN_SLA_POINTS}; replica-minutes within {MINUTES_SHARE:.0%}, of Algorithm 2 on the skewed "
    f"workload 2 within 16%; scale steps within {STEPS}; Optimal's cost on workload 1 to the last "
    f"digit. {GAP} binwright's policy in time at least as often as {RIVAL}, at fewer "
    f"replica-minutes; the scaler at most {TARGET} of the lag rule's replica-minutes at the same "
    "SLA."
)
STAND_IN = (
    "The file of workload 2 is not at hand. Its stand-in has the same length, number of events and "
    "peak, and a shape after published averages, chosen so that Optimal and Linear scale about as "
    "often: its rows show what the policies do on such a load and are no evidence for or against "
    "the paper's."
)
SETTINGS = (
    f"Settings: f_up, f_down = {UP}, {DOWN} for the paper's; {TUNED_UP} and {TUNED_DOWN} for "
    "binwright, the same in all tables and chosen on other seeds than those shown; `default` has "
    "0.9 and 0.8, which were not chosen on these workloads."
)


def section(results: Sequence[TableResult]) -> Section:
    """Return tables and charts of what was run; the paper's values are beside those it has."""
    shown = [*map(tables.comparison, results), tables.ours(results)]
    if (compared := equal_sla(results)) is not None:
        shown.append(compared)
    drawn = charts_of(results)
    return Section(
        title="SLA and cost of scaling policies on simulated consumer groups",
        source=SOURCE,
        expected=EXPECTED,
        seen=_seen(results, compared),
        tables=shown,
        charts=drawn,
        publication=QUEUES,
        counterparts=counterparts(results, shown, drawn),
    )


def _seen(results: Sequence[TableResult], compared: Table | None) -> str:
    found = []
    if errors := tables.sla_errors(results):
        found.append(
            f"Mean SLA error {tables.mean_sla_error(results):.2f} points over {len(errors)} rows "
            f"(expected: {MEAN_SLA_POINTS}), largest {max(errors):.2f}."
        )
        outside = tables.outside(results)
        found.append(f"Rows outside of the tolerance: {'; '.join(outside) or 'none'}.")
    if any(one.case.workload.is_stand_in for one in results):
        found.append(STAND_IN)
    found += _verdicts(tables.ours(results).rows)
    if compared is not None:
        found.append(verdict(compared))
    return "\n".join([*found, SETTINGS])


def _verdicts(rows: Sequence[Sequence[Cell]]) -> Iterator[str]:
    """Yield, for each of our policies, how often it is better in both, and where not."""
    for name in dict.fromkeys(row[1] for row in rows):
        own = [row for row in rows if row[1] == name]
        rest = "; ".join(f"{row[0]}: {row[-1]}" for row in own if row[-1] != BETTER)
        yield (
            f"{name} beside {RIVAL}: {BETTER}, SLA and replica-minutes, in "
            f"{sum(row[-1] == BETTER for row in own)} of {len(own)} tables"
            + (f"; else {rest}." if rest else ".")
        )
