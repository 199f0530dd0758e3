"""The series: a line of JSON for each night, oldest first."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

Facts = Mapping[str, Any]
Ratio = Callable[[Facts], float | None]


def _handover(figure: str) -> Ratio:
    return lambda facts: facts["ours_to_best"].get(figure)


def _live(figure: str) -> Ratio:
    def ratio(facts: Facts) -> float:
        ours, theirs = facts["live"]
        return float(ours[figure] / theirs[figure])

    return ratio


RATIOS: Mapping[str, Mapping[str, Ratio]] = {
    "landing": {
        "cores of a live load, binwright / Structured Streaming": _live("cores"),
        "age p99 of a live load, binwright / Structured Streaming": _live("age p99, s"),
    },
    "handover": {
        "partition-seconds of a bounce, binwright / the best group": _handover("bounce_paused_s"),
        "longest gap of a bounce, binwright / the best group": _handover("bounce_longest_gap_s"),
        "partition-seconds of a growth, binwright / the best group": _handover("growth_paused_s"),
        "longest gap of a growth, binwright / the best group": _handover("growth_longest_gap_s"),
    },
}
"""Bench -> what is compared in one of its runs: both sides had the same machine."""

Outcome = Literal["clean", "not clean", "broken off"]


@dataclass(frozen=True, slots=True)
class ChaosRun:
    """One run of chaos.

    Attributes:
        seed: By which it can be repeated.
        outcome: broken off: it printed no facts.
        faults: How many were injected.
        longest_s: The longest recovery, s; None: there was none.
        wrong: What was not clean, in words.
    """

    seed: int
    outcome: Outcome
    faults: int = 0
    longest_s: float | None = None
    wrong: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Night:
    """One night.

    Attributes:
        date: ISO 8601.
        version: Of binwright, with the commit.
        machine: In words.
        chaos: Its runs, in order.
        ratios: What is compared -> the ratio; None: the bench failed, or had nothing to compare.
    """

    date: str
    version: str
    machine: str
    chaos: tuple[ChaosRun, ...]
    ratios: Mapping[str, float | None]

    @property
    def clean(self) -> bool:
        """Whether chaos ran, every run was clean, and each bench gave its ratios."""
        runs = [each.outcome for each in self.chaos]
        return set(runs) == {"clean"} and None not in self.ratios.values()


def chaos_run(seed: int, facts: Facts | None) -> ChaosRun:
    """Return a run by the facts that it printed; None: it printed none."""
    if facts is None:
        return ChaosRun(seed, "broken off")
    wrong = [*(facts["wrong"] or ()), *([facts["failure"]] if facts["failure"] else ())]
    return ChaosRun(
        seed,
        "clean" if facts["clean"] else "not clean",
        len(facts["faults"]),
        facts["longest_recovery_s"],
        tuple(wrong),
    )


def ratios_of(bench: str, facts: Facts | None) -> dict[str, float | None]:
    """Return a bench's ratios by the facts that it printed; None: it failed."""
    return {name: None if facts is None else ratio(facts) for name, ratio in RATIOS[bench].items()}


def append(file: Path, night: Night) -> None:
    """Add a night at the end of a series; the file is made if it is not there."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("a") as out:
        out.write(json.dumps(asdict(night)) + "\n")


def read(file: Path) -> Sequence[Night]:
    """Return the nights of a series, oldest first.

    Raises:
        ValueError: A line is none of a series.
    """
    nights = []
    for number, line in enumerate(file.read_text().splitlines(), 1):
        try:
            found = json.loads(line)
            runs = (ChaosRun(**{**each, "wrong": tuple(each["wrong"])}) for each in found["chaos"])
            nights.append(Night(**{**found, "chaos": tuple(runs)}))
        except (ValueError, TypeError, KeyError) as exc:
            raise ValueError(f"{file}:{number}: no night of a series: {exc}") from exc
    return nights
