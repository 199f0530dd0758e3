"""Generated streams are random walks; that of the demo is one of them."""

from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from binwright.packing.catalogue import algorithm
from binwright.packing.inputs import Load
from binwright.protocol.errors import StreamError
from binwright.protocol.model import BytesPerSecond, Slot, TopicPartition
from binwright.streams import streams as generated
from binwright.streams.generated import DEMO, Walk, demo_stream, generate
from binwright.streams.streams import PerCent, as_rates, dump

WALK = Walk(topics=("orders",), partitions=3, rows=50, delta=10, seed=7)


def test_a_walk_steps_by_whole_per_cents_within_bounds() -> None:
    rows = list(generate(WALK))

    assert len(rows) == 50
    assert all(list(row) == [TopicPartition("orders", n) for n in range(3)] for row in rows)
    assert all(rate in map(PerCent, range(101)) for row in rows for rate in row.values())
    assert all(abs(b[p] - a[p]) <= 10 for a, b in pairwise(rows) for p in a)


def test_equal_seeds_give_equal_walks_and_others_do_not() -> None:
    assert list(generate(WALK)) == list(generate(WALK))
    assert list(generate(WALK)) != list(generate(replace(WALK, seed=8)))


@pytest.mark.parametrize("start", [0, 50, 100])
def test_a_walk_can_start_with_equal_rates(start: int) -> None:
    first, second, *_ = generate(replace(WALK, start=start))

    assert set(first.values()) == {PerCent(start)}
    assert set(second.values()) != {PerCent(start)}


def test_without_delta_nothing_changes() -> None:
    rows = list(generate(replace(WALK, delta=0)))

    assert rows == rows[:1] * 50


@pytest.mark.parametrize(
    ("wrong", "fault"),
    [
        ({"topics": ()}, "at least one topic"),
        ({"partitions": 0}, "at least one topic"),
        ({"rows": 0}, "at least one topic"),
        ({"delta": -1}, "delta must be >= 0"),
        ({"start": 101}, "start must be within 0 to 100"),
    ],
)
def test_a_walk_without_measurements_is_refused(wrong: dict[str, Any], fault: str) -> None:
    with pytest.raises(StreamError, match=fault):
        replace(WALK, **wrong)


def test_the_demos_stream_is_generated_from_its_seed() -> None:
    kept = Path(generated.__file__).with_name("demo.json").read_bytes()

    assert dump(list(generate(DEMO))).encode() == kept


def test_the_demos_stream_scales_early() -> None:
    """Consumers are added and removed within fifteen rows."""
    used, current = [], dict[TopicPartition, Slot]()
    for row in demo_stream():
        current = algorithm("mwf")(
            Load(as_rates(row, BytesPerSecond(100)), BytesPerSecond(100), current)
        )
        used.append(len(set(current.values())))
    steps = [b - a for a, b in pairwise(used[:15])]

    assert (min(used[:15]), max(used[:15])) == (3, 6)
    assert sum(step > 0 for step in steps) >= 2
    assert sum(step < 0 for step in steps) >= 2
    assert 300 <= sum(sum(row.values()) for row in demo_stream()) / 60 <= 350
    assert max(used) == 6
