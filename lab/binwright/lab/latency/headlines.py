"""The sentences of the paper's abstract about latency, and what each of them rests on."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from binwright.lab.latency import paper
from binwright.lab.latency.experiments import LatencyOutcome
from binwright.lab.latency.queues import LatencyModel

REFERENCE = "mwf"
"""The packing that the paper compares with kd_n."""
NINETY, NINETY_NINE = 90, 99


@dataclass(frozen=True, slots=True, kw_only=True)
class Headline:
    """A claim of the paper, what this run gives, and why."""

    claim: str
    published: str
    ours: str
    rests_on: str


def headlines(outcomes: Sequence[LatencyOutcome], model: LatencyModel) -> list[Headline]:
    """Return the paper's claims about MWF as this run finds them; none without `mwf` in it."""
    found = {one.algorithm: one for one in outcomes}
    if REFERENCE not in found:
        return []
    mwf = found[REFERENCE]
    kafka = {int(n.removeprefix("kd_")): one for n, one in found.items() if n.startswith("kd_")}
    packings = [one for one in outcomes if not one.algorithm.startswith("kd_")]
    made = [_percentile(mwf, packings, model)]
    if (equal := round(mwf.consumers)) in kafka:
        made.append(_same_consumers(mwf, equal, kafka[equal]))
    if kafka:
        made.append(_more_consumers(mwf, kafka))
    return made


def _percentile(
    mwf: LatencyOutcome, packings: Sequence[LatencyOutcome], model: LatencyModel
) -> Headline:
    known = {
        one.algorithm: one.above_zero_s[NINETY] for one in packings if NINETY in one.above_zero_s
    }
    text = (
        "On the rebalance time. Bytes that are written while a partition moves are read from "
        f"{model.rebalance_s:g} s on, and the latency falls evenly to 0 while the new owner has "
        f"rate to spare, so that the p90 is near 0.9 x {model.rebalance_s:g} = "
        f"{0.9 * model.rebalance_s:.2f} s whatever moves."
    )
    if len(known) > 1:
        least, most = min(known, key=known.__getitem__), max(known, key=known.__getitem__)
        text += (
            f" All {len(known)} packings here have {known[least]:.3f} ({least}) to "
            f"{known[most]:.3f} s ({most}): it does not separate them."
        )
    worst = max(packings, key=lambda one: one.share)
    if worst is not mwf:
        text += (
            f" The share of samples above 0 does: {_percent(mwf.share)} with mwf, "
            f"{_percent(worst.share)} with {worst.algorithm}."
        )
    return Headline(
        claim="The 90th percentile of MWF's samples above 0",
        published=f"{paper.P90_S:.2f} s",
        ours=_seconds(known.get(REFERENCE)),
        rests_on=text,
    )


def _same_consumers(mwf: LatencyOutcome, number: int, rival: LatencyOutcome) -> Headline:
    published = paper.KAFKA["kd_15"]["p90_above_zero_s"] or 0.0
    ours, late = mwf.above_zero_s.get(NINETY), rival.above_zero_s.get(NINETY)
    ratio = f", {late / ours:.1f} times mwf's" if ours and late else ""
    return Headline(
        claim="The same of Kafka's assignment to as many consumers",
        published=f"{published:.1f} s (kd_15), {published / paper.P90_S:.1f} times MWF's",
        ours=f"{_seconds(late)} (kd_{number}){ratio}",
        rests_on=(
            f"On a mean of {mwf.consumers:.2f} consumers with mwf, and on kd_n never moving a "
            f"partition: {_percent(rival.share)} of its samples are above 0, up to "
            f"{rival.max_s:.1f} s."
        ),
    )


def _more_consumers(mwf: LatencyOutcome, kafka: Mapping[int, LatencyOutcome]) -> Headline:
    fewer = sorted(n for n, one in kafka.items() if one.above_zero < mwf.above_zero)
    ours = f"{_more(fewer[0], mwf)} (kd_{fewer[0]})" if fewer else "no kd_n has fewer"
    text = f"On the number of samples above 0, {mwf.above_zero:,} with mwf; "
    text += f"fewer have {_names(fewer)}." if fewer else "no kd_n here has fewer."
    if fewer and (worse := [n for n in sorted(kafka) if n > fewer[0] and n not in fewer]):
        text += (
            f" More consumers do not suffice: {_names(worse)} have more again, because round "
            "robin puts large partitions together by their number."
        )
    limit = mwf.all_s.get(NINETY_NINE, 0.0)
    better = [n for n in sorted(kafka) if kafka[n].all_s.get(NINETY_NINE, 0.0) < limit]
    if better:
        text += (
            f" By the p99 of all samples, {limit:.3f} s with mwf, {_names(better)} are better, "
            f"from {_more(better[0], mwf)} on."
        )
    return Headline(
        claim="How many more consumers Kafka's assignment needs to be better than MWF",
        published=f"+{100 * paper.MORE_CONSUMERS:.0f} % at least (kd_24)",
        ours=ours,
        rests_on=text,
    )


def _more(consumers: int, mwf: LatencyOutcome) -> str:
    return f"{100 * (consumers / mwf.consumers - 1):+.1f} %"


def _percent(share: float) -> str:
    return f"{100 * share:.2f} %"


def _names(numbers: Sequence[int]) -> str:
    names = [f"kd_{number}" for number in numbers]
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def _seconds(value: float | None) -> str:
    return "no sample above 0" if value is None else f"{value:.3f} s"
