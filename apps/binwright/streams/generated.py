"""Generated streams: a random walk by the paper's rule, and the stream of the demo.

`demo_stream()` is `DEMO`, generated once and kept as a file that a test compares. Its seed is the
first, at deltas 15, 20 and 25, whose total load averages 300 to 350 per cent over all rows, varies
by at least 150 within the first 15, and there keeps MWF (capacity 100, packed at every row) at 2 to
6 consumers, with a spread of at least 3, two steps up and two steps down.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random

from binwright.protocol.errors import StreamError
from binwright.protocol.model import TopicPartition
from binwright.streams.streams import PerCent, parse


@dataclass(frozen=True, slots=True, kw_only=True)
class Walk:
    """A random walk of every partition's rate (eq. 15, as the paper's authors ran it).

    Whole per cents; each step adds a uniformly random integer from [-delta, delta], and the result
    is clamped to [0, 100].
    """

    topics: tuple[str, ...]
    partitions: int  # per topic, > 0
    rows: int  # > 0
    delta: int  # per cent, >= 0
    seed: int
    start: int | None = None  # per cent, of every partition; None: random from [0, 100]

    def __post_init__(self) -> None:
        """Raise `StreamError` for numbers that make no stream."""
        if not self.topics or min(self.partitions, self.rows) < 1:
            raise StreamError("a stream needs at least one topic, one partition and one row")
        if self.delta < 0:
            raise StreamError(f"delta must be >= 0 per cent, got {self.delta}")
        if self.start is not None and not 0 <= self.start <= 100:  # noqa: PLR2004 - per cent
            raise StreamError(f"start must be within 0 to 100 per cent, got {self.start}")


DEMO = Walk(topics=("orders", "clicks"), partitions=4, rows=60, delta=20, seed=39)


def generate(walk: Walk) -> Iterator[dict[TopicPartition, PerCent]]:
    """Yield the walk's rows; the same walk gives the same on every machine."""
    random = Random(walk.seed)
    partitions = [TopicPartition(t, n) for t in walk.topics for n in range(walk.partitions)]
    rates = [random.randint(0, 100) if walk.start is None else walk.start for _ in partitions]
    for row in range(walk.rows):
        if row:
            steps = [random.randint(-walk.delta, walk.delta) for _ in partitions]
            rates = [min(100, max(0, old + step)) for old, step in zip(rates, steps, strict=True)]
        yield {p: PerCent(rate) for p, rate in zip(partitions, rates, strict=True)}


def demo_stream() -> list[dict[TopicPartition, PerCent]]:
    """Return the stream of the demo."""
    return parse(Path(__file__).with_name("demo.json").read_bytes())
