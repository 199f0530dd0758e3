import json
from dataclasses import replace
from importlib.resources import files
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from binwright.packing.catalogue import algorithm
from binwright.protocol.errors import StreamError
from binwright.protocol.model import BytesPerSecond, Slot, TopicPartition
from binwright.recordings.generated import (
    DEMO,
    PerCent,
    Walk,
    as_rates,
    demo,
    dump,
    generate,
    parse,
    read,
    write,
)

RECORDED = Path(__file__).parents[3] / "shared" / "data" / "measurements_5.json"
WALK = Walk(topics=("orders",), partitions=3, rows=50, delta=10, seed=7)

ROWS = st.dictionaries(
    st.builds(TopicPartition, st.sampled_from(["a", "b.c", "d-1"]), st.integers(0, 99)),
    (st.integers(0, 10**6) | st.floats(0, 1e9)).map(PerCent),
    min_size=1,
    max_size=6,
)


# --- made --------------------------------------------------------------------------------------


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


def test_per_cents_become_bytes_per_second() -> None:
    partition = TopicPartition("orders", 0)
    row = {partition: PerCent(7)}

    assert as_rates(row, BytesPerSecond(2_000_000)) == {partition: BytesPerSecond(140_000)}
    assert as_rates(row, BytesPerSecond(100)) == {partition: BytesPerSecond(7)}


# --- the demo's --------------------------------------------------------------------------------


def test_the_demos_stream_is_generated_from_its_seed() -> None:
    kept = (files("binwright.lab") / "data" / "demo.json").read_bytes()

    assert dump(list(generate(DEMO))).encode() == kept


def test_the_demos_stream_scales_early() -> None:
    """Consumers are added and removed within fifteen rows."""
    used, current = [], dict[TopicPartition, Slot]()
    for row in demo():
        current = algorithm("mwf")(as_rates(row, BytesPerSecond(100)), BytesPerSecond(100), current)
        used.append(len(set(current.values())))
    steps = [b - a for a, b in pairwise(used[:15])]

    assert (min(used[:15]), max(used[:15])) == (3, 6)
    assert sum(step > 0 for step in steps) >= 2
    assert sum(step < 0 for step in steps) >= 2
    assert 300 <= sum(sum(row.values()) for row in demo()) / 60 <= 350
    assert max(used) == 6


# --- written and read back ---------------------------------------------------------------------


@given(st.lists(ROWS, min_size=1, max_size=5))
def test_a_written_stream_can_be_read(stream: list[dict[TopicPartition, PerCent]]) -> None:
    again = parse(dump(stream))

    assert again == stream
    assert dump(again) == dump(parse(dump(again)))


def test_a_file_is_written_and_read(tmp_path: Path) -> None:
    write(tmp_path / "stream.json", list(generate(WALK)))

    assert read(tmp_path / "stream.json") == list(generate(WALK))


def test_partitions_may_differ_from_row_to_row() -> None:
    rows = parse('[{"a": {"0": 1}}, {"a": {"1": 2.5}, "b": {"0": 130}}]')

    assert rows == [
        {TopicPartition("a", 0): 1},
        {TopicPartition("a", 1): 2.5, TopicPartition("b", 0): 130},
    ]


def test_the_papers_recording_can_be_read() -> None:
    if not RECORDED.exists():
        pytest.skip(f"the paper's recorded stream has no licence and is not here: {RECORDED}")
    rows = read(RECORDED)

    assert len(rows) == 100
    assert {len(row) for row in rows} == {32}


GOOD = '{"a": {"0": 1}}'


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "not JSON: Expecting value"),
        ("[" * 100_000, "not JSON: .*recursion"),
        ('{"a": {}}', "expected a list of measurements, got an object"),
        ("null", "expected a list of measurements, got null"),
        ("[]", "the stream is empty: not one measurement"),
        (f"[{GOOD}, 3]", "row 1: expected an object of topics, got 3"),
        (f"[{GOOD}, []]", "row 1: expected an object of topics, got a list of 0"),
        (f"[{GOOD}, {{}}]", "row 1: no topics in it"),
        ('[{"a b": {"0": 1}}]', "row 0: not a topic's name: 'a b'"),
        ('[{"a": "x"}]', "row 0, topic 'a': expected an object of partitions, got text \"x\""),
        ('[{"a": {}}]', "row 0, topic 'a': no partitions in it"),
        ('[{"a": {"-1": 1}}]', "row 0, topic 'a': not a partition's number: '-1'"),
        ('[{"a": {"01": 1}}]', "not a partition's number: '01'"),
        ('[{"a": {"²": 1}}]', "not a partition's number: '²'"),
        ('[{"a": {"0": "1"}}]', "row 0, topic 'a', partition 0: expected a number of per cents"),
        ('[{"a": {"0": true}}]', "partition 0: expected a number of per cents, got true"),
        ('[{"a": {"0": null}}]', "partition 0: expected a number of per cents, got null"),
        ('[{"a": {"0": -0.5}}]', "partition 0: per cents must be finite and >= 0, got -0.5"),
        ('[{"a": {"0": NaN}}]', "finite and >= 0, got NaN"),
        ('[{"a": {"0": 1e999}}]', "finite and >= 0, got Infinity"),
        ('[{"a": {"0": 1' + "0" * 400 + "}}]", r"finite and >= 0, got 10{39}\.\.\."),
    ],
)
def test_a_malformed_stream_is_refused_with_the_place_of_the_fault(text: str, fault: str) -> None:
    with pytest.raises(StreamError, match=fault):
        parse(text)


def test_an_error_names_the_file(tmp_path: Path) -> None:
    (tmp_path / "bad.json").write_text(json.dumps([1]))

    with pytest.raises(StreamError, match=r"bad.json: row 0: expected an object"):
        read(tmp_path / "bad.json")
    with pytest.raises(StreamError, match=r"none.json: .*No such file"):
        read(tmp_path / "none.json")
    with pytest.raises(StreamError, match=r"none/x.json: .*No such file"):
        write(tmp_path / "none" / "x.json", [])
