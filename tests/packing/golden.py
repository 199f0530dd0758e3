"""What the paper's packings decide on generated streams; run as a module, it prints `golden.json`.

The paper's recorded stream has no licence and is not part of this project. These streams are drawn
by the paper's rule from seeds and prove the same rules everywhere.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from hashlib import sha256
from pathlib import Path

from binwright.packing.catalogue import PAPER, algorithm
from binwright.packing.inputs import Load
from binwright.packing.score import moved_partitions
from binwright.protocol.model import Assignment, BytesPerSecond, Rates, Slot, TopicPartition
from binwright.streams.generated import Walk, generate
from binwright.streams.streams import as_rates

FILE = Path(__file__).parent / "golden.json"
CAPACITY = BytesPerSecond(100)
NAMES = (*PAPER, "kd_15")
TOPICS = ("one", "two")
STREAMS: Mapping[str, Walk] = {
    "delta 5": Walk(topics=TOPICS, partitions=16, rows=100, delta=5, seed=2402),
    "delta 25": Walk(topics=TOPICS, partitions=16, rows=100, delta=25, seed=6085),
    "delta 10, all at 50": Walk(
        topics=TOPICS, partitions=20, rows=60, delta=10, seed=2024, start=50
    ),
}

Decide = Callable[[int, Rates, Assignment], Mapping[TopicPartition, Slot]]
"""From the number of the measurement, rates and current owners to new ones."""


def rates_of(stream: str) -> list[dict[TopicPartition, BytesPerSecond]]:
    return [as_rates(row, CAPACITY) for row in generate(STREAMS[stream])]


def packed_by(name: str) -> Decide:
    return lambda number, rates, current: algorithm(name, number)(Load(rates, CAPACITY, current))


def decisions(decide: Decide, stream: str) -> Iterator[tuple[Rates, Assignment, Assignment]]:
    """Yield rates, owners before and owners afterwards, measurement by measurement."""
    current: Assignment = {}
    for number, rates in enumerate(rates_of(stream)):
        target = dict(sorted(decide(number, rates, current).items()))
        yield rates, current, target
        current = target


def summary(decide: Decide, stream: str) -> dict[str, int | str]:
    """Return sums, which are whole numbers, and a hash of every owner at every measurement."""
    consumers = moves = moved_rate = 0
    digest = sha256()
    for rates, current, target in decisions(decide, stream):
        moved = list(moved_partitions(current, target))
        consumers += len(set(target.values()))
        moves += len(moved)
        moved_rate += sum(int(rates[partition]) for partition in moved)
        digest.update(f"{[int(slot) for slot in target.values()]}\n".encode())
    sums: dict[str, int | str] = {"consumers": consumers, "moves": moves, "moved_rate": moved_rate}
    return {**sums, "sha256": digest.hexdigest()}


if __name__ == "__main__":
    found = {s: {name: summary(packed_by(name), s) for name in NAMES} for s in STREAMS}
    print(json.dumps(found, indent=1))  # noqa: T201 - the file's text
