"""One packing over one stream, decision by decision: what is compared in the lab.

A trial is a value and its outcome is a value; both go as JSON, so it can be played anywhere.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import fmean

from binwright.core.drift import PERIOD_S, Drift
from binwright.core.model import BytesPerSecond, Slot, TopicPartition
from binwright.core.packing.capacity import PerSlot
from binwright.core.packing.catalogue import PAPER
from binwright.core.score import cardinal_bin_score, expected_rscore, fewest_of, moved, rscore
from binwright.lab import streams
from binwright.lab.packings import packing

CAPACITY = BytesPerSecond(100.0)
TOPICS = ("one", "two")
"""The paper's streams are of two topics."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Where a stream comes from: drawn by a seed, or written down."""

    label: str
    partitions: int = 0
    rows: int = 0
    delta: int = 0
    seed: int = 0
    start: int | None = None
    text: str | None = None  # a stream as JSON, instead of all that

    def stream(self) -> list[dict[TopicPartition, streams.PerCent]]:
        """Return the measurements; raise `StreamError` if they make no stream."""
        if self.text is not None:
            return streams.parse(self.text)
        walk = streams.Walk(
            topics=TOPICS,
            partitions=-(-self.partitions // 2),
            rows=self.rows,
            delta=self.delta,
            seed=self.seed,
            start=self.start,
        )
        # Of an odd number the last one is not taken.
        return [dict(list(row.items())[: self.partitions]) for row in streams.generate(walk)]


@dataclass(frozen=True, slots=True)
class Trial:
    """A packing, by name, and a stream."""

    algorithm: str
    source: Source
    capacities: Sequence[float] = ()  # of slots 0, 1, ..., per cent; 100 of all others

    def encode(self) -> str:
        """Return it as JSON."""
        return json.dumps(asdict(self))

    @classmethod
    def decode(cls, text: str) -> "Trial":
        """Read it back."""
        found = json.loads(text)
        return cls(found["algorithm"], Source(**found["source"]), tuple(found["capacities"]))


@dataclass(frozen=True, slots=True)
class Outcome:
    """What each decision took: consumers, Rscore, partitions moved."""

    algorithm: str
    label: str
    delta: int
    consumers: Sequence[int]
    rscores: Sequence[float]
    moves: Sequence[int]

    def encode(self) -> str:
        """Return it as JSON."""
        return json.dumps(asdict(self))

    @classmethod
    def decode(cls, text: str) -> "Outcome":
        """Read it back."""
        return cls(**json.loads(text))


def play(trial: Trial) -> Outcome:
    """Decide at every measurement, each time from what was decided before.

    Raises:
        UserError: There is no such packing or stream.
    """
    current: dict[TopicPartition, Slot] = {}
    named = {Slot(slot): BytesPerSecond(one) for slot, one in enumerate(trial.capacities)}
    capacity = PerSlot(CAPACITY, named) if named else CAPACITY
    drift = Drift()
    consumers, scores, moves = [], [], []
    for number, row in enumerate(trial.source.stream()):
        rates = streams.as_rates(row, CAPACITY)
        drift = drift.observe(rates, number * PERIOD_S)
        # The paper shuffles the input of its online algorithms anew each time.
        pack = packing(trial.algorithm, seed=number)
        target = pack(rates, capacity, current, change=drift.squared)
        consumers.append(len(set(target.values())))
        scores.append(rscore(rates, CAPACITY, current, target))
        moves.append(sum(1 for _ in moved(current, target)))
        current = target
    source = trial.source
    return Outcome(trial.algorithm, source.label, source.delta, consumers, scores, moves)


def played(text: str) -> str:
    """Play a trial given as JSON; return its outcome as JSON."""
    return play(Trial.decode(text)).encode()


@dataclass(frozen=True, slots=True)
class Score:
    """Means over decisions and streams."""

    consumers: float
    cbs: float
    expected_rscore: float
    moves: float


def compare(outcomes: Sequence[Outcome]) -> dict[tuple[int, str], Score]:
    """Return the score of each algorithm at each delta, means over the streams of that delta.

    CBS compares with the best of the paper's twelve where they were played, else with the best.
    """
    by_label: dict[str, dict[str, Outcome]] = {}
    for outcome in outcomes:
        by_label.setdefault(outcome.label, {})[outcome.algorithm] = outcome
    fewest = {label: _fewest(found) for label, found in by_label.items()}
    grouped: dict[tuple[int, str], list[Outcome]] = {}
    for outcome in outcomes:
        grouped.setdefault((outcome.delta, outcome.algorithm), []).append(outcome)
    return {key: _score(group, fewest) for key, group in grouped.items()}


def _fewest(found: Mapping[str, Outcome]) -> list[int]:
    papers = [found[name].consumers for name in PAPER if name in found]
    return fewest_of(papers or [outcome.consumers for outcome in found.values()])


def _score(group: Sequence[Outcome], fewest: Mapping[str, Sequence[int]]) -> Score:
    return Score(
        consumers=fmean(fmean(one.consumers) for one in group),
        cbs=fmean(cardinal_bin_score(one.consumers, fewest[one.label]) for one in group),
        expected_rscore=fmean(expected_rscore(one.rscores) for one in group),
        moves=fmean(fmean(one.moves) for one in group),
    )
