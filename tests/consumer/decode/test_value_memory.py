"""A value that would take too much memory is bad, and is known to be before it is decoded."""

import json
import subprocess
import sys
import threading

import pyarrow as pa
import pytest
from tests.consumer.decode.value_bombs import BOMBS, of_estimate
from tests.fuzz.limits import LINUX

from binwright.consumer.decode import portions as portions_module
from binwright.consumer.decode.json_values import JsonDecoder
from binwright.consumer.decode.portions import PORTIONS, DecodingMemory
from binwright.consumer.decode.text_values import TextDecoder
from binwright.protocol.errors import StagingUnavailable
from binwright.tables.columns import parse_columns

MB = 1 << 20
ESTIMATE, NOISE = 32 * MB, 4 * MB


@pytest.mark.skipif(not LINUX, reason="only Linux tells the most memory of a process")
def test_no_value_takes_more_than_is_estimated() -> None:
    program = [sys.executable, "-m", "tests.consumer.decode.value_bombs", str(ESTIMATE)]
    ran = subprocess.run(program, capture_output=True, text=True, check=True, timeout=280)
    found = {name: (need, took) for name, need, took in map(json.loads, ran.stdout.splitlines())}
    assert found.keys() == BOMBS.keys()
    beyond = {name: each for name, each in found.items() if each[1] > each[0] + NOISE}
    assert not beyond
    much = [name for name, (need, took) in found.items() if took > need // 8]
    assert len(much) > len(BOMBS) // 2  # else estimates were of no use


@pytest.mark.parametrize("name", BOMBS)
def test_a_value_beyond_the_limit_is_bad_and_no_other(name: str) -> None:
    bomb = BOMBS[name]
    (value, _), small = of_estimate(bomb, 16 * MB), bomb.value(10)
    decoder = bomb.decoder(1_000_000)
    rows, bad = decoder.decode(pa.array([small, value, small], pa.binary()))
    first, found, last = (each or {} for each in bad.to_pylist())
    assert found["kind"] == "too_large"
    assert found["value"] == value
    assert "the limit of consumer.value_memory_bytes is 0 MB" in found["reason"]
    assert rows[1].as_py() is None
    assert first.get("kind") != "too_large"
    assert first == last


def test_what_stands_in_texts_takes_no_memory_of_parts() -> None:
    """A JSON in a JSON is a text like others, however many brackets it has."""
    value = json.dumps({"x": json.dumps([{"y": 1}] * 100_000)}).encode()
    rows, bad = JsonDecoder(parse_columns("x STRING"), most_bytes=30 * MB).decode(pa.array([value]))
    assert rows.null_count == 0
    assert bad.null_count == 1


def test_a_block_has_no_value_that_takes_too_much() -> None:
    """Arrow's own reader makes a wide struct of each pair of brackets."""
    wide = ", ".join(f"c{n}: BIGINT" for n in range(100))
    decoder = JsonDecoder(parse_columns(f"x ARRAY<STRUCT<{wide}>>"), most_bytes=8 * MB)
    large = b'{"x":[' + b"{}," * 20_000 + b"{}]}"
    _, bad = decoder.decode(pa.array([b'{"x":[{"c0":1}]}'] * 500 + [large], pa.binary()))
    assert [each and each["kind"] for each in bad.to_pylist()] == [None] * 500 + ["too_large"]


@pytest.mark.parametrize("name", BOMBS)
def test_portions_have_all_values_in_order_and_take_little(name: str) -> None:
    bomb, memory = BOMBS[name], DecodingMemory(6 * MB)
    value, _ = of_estimate(bomb, MB // 2)
    values = pa.array([value] * 9 + [None, bomb.value(10)], pa.binary())
    decoder, end = bomb.decoder(memory.most_bytes), 0
    for begin, length, need in memory.portions(decoder, values, pa.nulls(len(values), pa.binary())):
        assert begin == end
        assert length == 1 or need <= memory.portion_bytes
        assert need <= memory.most_bytes
        end += length
    assert end == len(values)


def test_many_values_of_little_memory_are_one_portion_for_two_megabytes() -> None:
    memory = DecodingMemory()
    values = pa.array([b'{"a":1}'] * 10_000, pa.binary())
    decoder = JsonDecoder(parse_columns("a INT"))
    keys = pa.nulls(len(values), pa.binary())
    assert [each[:2] for each in memory.portions(decoder, values, keys)] == [(0, 10_000)]
    texts = TextDecoder(parse_columns("t STRING"))
    assert sum(each[1] for each in memory.portions(texts, values, keys)) == 10_000


def test_who_needs_much_memory_gets_it_in_turn() -> None:
    memory, order = DecodingMemory(PORTIONS), list[str]()
    started = threading.Event()

    def work(name: str, need: int) -> None:
        started.set()
        with memory.taken(need):
            order.append(name)

    with memory.taken(1):
        large = threading.Thread(target=work, args=("large", PORTIONS))
        large.start()
        assert started.wait(10)
        while not memory.waiting:  # until it has its turn
            threading.Event().wait(0.001)
        small = threading.Thread(target=work, args=("small", 1))
        small.start()
        small.join(0.05)
        assert not order  # there would be room for the small one
    for thread in (large, small):
        thread.join(10)
    assert order == ["large", "small"]


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(portions_module, "WAIT_S", 0.01)


@pytest.mark.usefixtures("impatient")
def test_what_gets_no_memory_is_staged_again_later() -> None:
    memory = DecodingMemory(PORTIONS)
    with (
        memory.taken(1),
        pytest.raises(StagingUnavailable, match="have not become free"),
        memory.taken(PORTIONS),
    ):
        pass
    with memory.taken(PORTIONS):  # all of it is free again
        pass
