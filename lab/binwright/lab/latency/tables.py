"""The tables of the latency experiment: all values, and those that were published beside ours."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from binwright.lab.latency import paper
from binwright.lab.latency.comparison import DIGITS, outside_ranges, published, values
from binwright.lab.latency.experiments import LatencyOutcome
from binwright.lab.latency.headlines import Headline
from binwright.lab.report.section import Cell, Table

LABELS: Mapping[str, str] = MappingProxyType(
    {
        "consumers": "consumers",
        "expected_rscore": "E[R]",
        "above_zero": "samples > 0",
        "share": "share > 0",
        "p90_above_zero_s": "p90 (> 0), s",
        "p99_all_s": "p99 (all), s",
        "max_s": "max, s",
    }
)
"""What is compared with published values."""
EXACT = ("above_zero", "p90_above_zero_s", "p99_all_s", "max_s")
"""Of kd_n, which does not depend on how ties are broken."""
NEAR = ("consumers", "expected_rscore", "share", "p99_all_s")
"""Of the twelve."""
_STREAM = "Published values are of the paper's recorded stream."
_ANOTHER = (
    f"{_STREAM} Ours are of another stream of the same rule, so differences are the streams'."
)

Outcomes = Sequence[LatencyOutcome]


def all_values(outcomes: Outcomes) -> Table:
    """Return what each packing gave."""
    columns = (
        *("packing", "consumers", "E[R]", "samples", "samples > 0", "share > 0, %"),
        *("p50 (> 0), s", "p90 (> 0), s", "p99 (> 0), s", "p90 (all), s", "p99 (all), s", "max, s"),
    )
    rows = []
    for one in outcomes:
        found = values(one)
        late = [_rounded(found[name]) for name in found if name.endswith("_s")]
        head = (one.algorithm, round(one.consumers, 2), round(one.expected_rscore, 3))
        rows.append((*head, one.total, one.above_zero, round(100 * one.share, 2), *late))
    note = (
        "Percentiles of the samples above 0, as the arXiv version of the paper has them, and of "
        "all samples, as the journal version has them. A sample is one hundredth of what a "
        "consumer of full capacity reads in a second."
    )
    title = "Latency of each packing"
    return Table(name="latency", title=title, columns=columns, rows=rows, note=note)


def kafka_beside_published(outcomes: Outcomes, *, recorded: bool) -> Table:
    """Return kd_n beside the published values; no row if none of them ran."""
    title, known = "kd_n beside the published values", paper.KAFKA
    columns, rows = _pairs(outcomes, known, EXACT)
    note = _STREAM if recorded else _ANOTHER
    return Table(name="latency-kafka", title=title, columns=columns, rows=rows, note=note)


def packings_beside_published(outcomes: Outcomes, *, recorded: bool) -> Table:
    """Return the twelve beside the published values; no row if none of them ran."""
    title, known = "The twelve beside the published values", paper.PACKINGS
    columns, rows = _pairs(outcomes, known, NEAR)
    stream = _STREAM if recorded else _ANOTHER
    note = f"{stream} They are means of five ways to break ties; ours is one more way."
    return Table(name="latency-packings", title=title, columns=columns, rows=rows, note=note)


def mwf_in_ranges(outcomes: Outcomes) -> Table:
    """Return MWF beside the published ranges; no row if it did not run."""
    rows = []
    for mwf in (one for one in outcomes if one.algorithm == "mwf"):
        ours, outside = values(mwf), outside_ranges(mwf)
        for name, (least, most) in paper.MWF_RANGES.items():
            inside = "no" if name in outside else "yes"
            rows.append((LABELS[name], _rounded(ours[name]), least, most, inside))
    return Table(
        name="latency-mwf",
        title="MWF beside the published ranges",
        columns=("value", "ours", "published, least", "published, most", "within"),
        rows=rows,
        note=f"{_STREAM} The ranges are of 400 ways to break ties.",
    )


def claims_and_grounds(claims: Sequence[Headline]) -> Table:
    """Return the paper's sentences."""
    return Table(
        name="latency-headlines",
        title="The paper's sentences, and what they rest on",
        columns=("claim", "published", "ours", "rests on"),
        rows=[(one.claim, one.published, one.ours, one.rests_on) for one in claims],
    )


def _pairs(
    outcomes: Outcomes,
    known: Mapping[str, Mapping[str, float | None]],
    names: Sequence[str],
) -> tuple[list[str], list[list[Cell]]]:
    columns = ["packing"]
    for name in names:
        columns += [LABELS[name], "published", "difference"]
    rows = []
    for one in outcomes:
        if one.algorithm not in known:
            continue
        ours, theirs, cells = values(one), published(one.algorithm), list[Cell]([one.algorithm])
        for name in names:
            mine, its = _rounded(ours[name]), theirs[name]
            gap = None if mine is None or its is None else _rounded(mine - its)
            cells += [mine, its, gap]
        rows.append(cells)
    return columns, rows


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, DIGITS)
