"""One packing over one stream, decision by decision: the unit of comparison in the lab.

An experiment and its outcome are values that JSON can hold, so it can run on any machine.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from io import StringIO
from statistics import fmean

from binwright.group.rates import PERIOD_S, RateVolatility
from binwright.packing.catalogue import PAPER, algorithm
from binwright.packing.inputs import Load, SlotCapacities
from binwright.packing.score import (
    cardinal_bin_score,
    expected_rscore,
    fewest_of,
    moved_partitions,
    rscore,
)
from binwright.protocol.model import Assignment, BytesPerSecond, Rates, Slot, TopicPartition
from binwright.streams import streams
from binwright.streams.generated import Walk, generate
from binwright.streams.streams import read_rows

CAPACITY = BytesPerSecond(100.0)
TOPICS = ("one", "two")
"""The paper's streams are of two topics."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PackingStream:
    """The source of a stream: generated from a seed, or given as text."""

    label: str
    partitions: int = 0
    rows: int = 0
    delta: int = 0
    seed: int = 0
    start: int | None = None
    text: str | None = None  # a stream as JSON, instead of the numbers above
    row_s: float = PERIOD_S  # the time from one measurement to the next

    def stream(self) -> Iterator[Mapping[TopicPartition, streams.PerCent]]:
        """Yield the measurements, per cent of capacity; raise `StreamError` if it is no stream."""
        if self.text is not None:
            yield from read_rows(StringIO(self.text))
            return
        yield from _generated(
            Walk(
                topics=TOPICS,
                partitions=-(-self.partitions // 2),
                rows=self.rows,
                delta=self.delta,
                seed=self.seed,
                start=self.start,
            ),
            self.partitions,
        )


@lru_cache(maxsize=1)
def _generated(walk: Walk, partitions: int) -> Sequence[Mapping[TopicPartition, streams.PerCent]]:
    """Return a stream of this many partitions; of an odd number the last one is left out.

    The last stream is kept: packings are compared on the same one, one after the other.
    """
    return [dict(list(row.items())[:partitions]) for row in generate(walk)]


@dataclass(frozen=True, slots=True)
class Experiment:
    """A packing, by name, over a stream."""

    algorithm: str
    source: PackingStream
    capacities: Sequence[float] = ()  # of slots 0, 1, ..., per cent; 100 of all others

    def encode(self) -> str:
        """Return it as JSON."""
        return json.dumps(asdict(self))

    @classmethod
    def decode(cls, text: str) -> "Experiment":
        """Read it back."""
        fields = json.loads(text)
        return cls(
            fields["algorithm"], PackingStream(**fields["source"]), tuple(fields["capacities"])
        )


@dataclass(frozen=True, slots=True)
class PackingOutcome:
    """Consumers, Rscore and moved partitions of each decision."""

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
    def decode(cls, text: str) -> "PackingOutcome":
        """Read it back."""
        return cls(**json.loads(text))


@dataclass(frozen=True, slots=True)
class PackingDecision:
    """What a packing decided at one measurement."""

    rates: Rates  # per cent of the capacity
    current: Assignment  # the decision before
    target: Assignment


def decisions(experiment: Experiment) -> Iterator[PackingDecision]:
    """Yield the decision at each measurement, each time from the decision before.

    Raises:
        UserError: The packing does not exist, or the stream is malformed.
    """
    current: dict[TopicPartition, Slot] = {}
    named = {Slot(slot): BytesPerSecond(one) for slot, one in enumerate(experiment.capacities)}
    capacity = SlotCapacities(CAPACITY, named) if named else CAPACITY
    volatility = RateVolatility()
    for number, row in enumerate(experiment.source.stream()):
        rates = streams.as_rates(row, CAPACITY)
        volatility = volatility.observe(rates, number * experiment.source.row_s)
        # The paper shuffles the input of its online algorithms anew each time.
        pack = algorithm(experiment.algorithm, seed=number)
        target = pack(Load(rates, capacity, current, volatility.mean_square))
        yield PackingDecision(rates, current, target)
        current = target


def run_experiment(experiment: Experiment) -> PackingOutcome:
    """Score the decision at each measurement; raises like `decisions`."""
    consumers, scores, moves = [], [], []
    for made in decisions(experiment):
        consumers.append(len(set(made.target.values())))
        scores.append(rscore(made.rates, CAPACITY, made.current, made.target))
        moves.append(sum(1 for _ in moved_partitions(made.current, made.target)))
    source = experiment.source
    return PackingOutcome(
        experiment.algorithm, source.label, source.delta, consumers, scores, moves
    )


def run_encoded(text: str) -> str:
    """Run an experiment given as JSON; return its outcome as JSON."""
    return run_experiment(Experiment.decode(text)).encode()


@dataclass(frozen=True, slots=True)
class PackingScore:
    """Means over decisions and streams."""

    consumers: float
    cbs: float
    expected_rscore: float
    moves: float


def compare(outcomes: Sequence[PackingOutcome]) -> dict[tuple[int, str], PackingScore]:
    """Return the score of each algorithm at each delta, means over the streams of that delta.

    CBS compares with the best of the paper's twelve if they were run, else with the best of all.
    """
    by_label: dict[str, dict[str, PackingOutcome]] = {}
    for outcome in outcomes:
        by_label.setdefault(outcome.label, {})[outcome.algorithm] = outcome
    fewest = {label: _fewest(of_label) for label, of_label in by_label.items()}
    grouped: dict[tuple[int, str], list[PackingOutcome]] = {}
    for outcome in outcomes:
        grouped.setdefault((outcome.delta, outcome.algorithm), []).append(outcome)
    return {key: _score(group, fewest) for key, group in grouped.items()}


def _fewest(by_name: Mapping[str, PackingOutcome]) -> list[int]:
    papers = [by_name[name].consumers for name in PAPER if name in by_name]
    return fewest_of(papers or [outcome.consumers for outcome in by_name.values()])


def _score(group: Sequence[PackingOutcome], fewest: Mapping[str, Sequence[int]]) -> PackingScore:
    return PackingScore(
        consumers=fmean(fmean(one.consumers) for one in group),
        cbs=fmean(cardinal_bin_score(one.consumers, fewest[one.label]) for one in group),
        expected_rscore=fmean(expected_rscore(one.rscores) for one in group),
        moves=fmean(fmean(one.moves) for one in group),
    )
