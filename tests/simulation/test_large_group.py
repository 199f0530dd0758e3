"""A packing of 100,000 partitions; beside the pure tests, whose branch coverage would slow it."""

from random import Random

from binwright.packing.inputs import Load
from binwright.packing.score import rscore
from binwright.packing.sticky.policy import Sticky
from binwright.protocol.model import BytesPerSecond, Slot, TopicPartition

CAPACITY = BytesPerSecond(100)
PARTITIONS = 100_000


def test_a_hundred_thousand_partitions_are_packed_and_few_of_them_move() -> None:
    random = Random(1)
    names = [TopicPartition("orders", number) for number in range(PARTITIONS)]
    # Pairs of one slow and one fast partition; then each rate changes.
    rates = {q: random.uniform(0, 50) + (45 if n % 2 else 0) for n, q in enumerate(names)}
    current = {q: Slot(number // 2) for number, q in enumerate(names)}
    new = {q: BytesPerSecond(max(0.0, r + random.uniform(-5, 5))) for q, r in rates.items()}

    target = Sticky()(Load(new, CAPACITY, current, variance=8.0))

    loads = dict.fromkeys(target.values(), 0.0)
    for q, slot in target.items():
        loads[slot] += new[q]
    consumers = sum(new.values()) / CAPACITY
    assert max(loads.values()) <= CAPACITY * (1 + 1e-9)
    assert len(loads) < 1.2 * consumers
    assert rscore(new, CAPACITY, current, target) < 0.25 * consumers
