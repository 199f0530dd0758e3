"""Staging values that would take gigabytes stays within the memory of a consumer's pod."""

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from tests.consumer.decode import avro
from tests.consumer.decode.value_bombs import HEADER, zigzag
from tests.fuzz.limits import LINUX, peak_memory

from binwright.consumer.decide.memory import memory_shares
from binwright.consumer.decode.avro_values import AvroDecoder
from binwright.consumer.decode.json_values import JsonDecoder
from binwright.consumer.decode.portions import DecodingMemory
from binwright.consumer.decode.variant_values import VariantDecoder
from binwright.consumer.stage.file_staging import FileStaging
from binwright.protocol.model import TopicPartition
from binwright.protocol.ports.kafka import Record
from binwright.runtime.memory import give_back_freed_memory
from binwright.tables.columns import parse_columns
from binwright.tables.ports import Footer
from binwright.testing.records import in_columns

POD, OTHERS = 768 << 20, 160 << 20  # bytes: of deploy/consumers; what Spark's client takes of them
_NULLS = avro.record(*((f"n{n}", "null") for n in range(2_000)), ("b", "boolean"), name="Item")
_BOOLEAN = avro.record(("b", "boolean"), name="Item")
FORMS = ("json", "structs", "variant", "avro", "avro of nulls", "plain")


def decoder_of(form: str) -> Any:
    most = memory_shares(POD).values
    match form:
        case "variant":
            return VariantDecoder(parse_columns("v VARIANT"), most)
        case "avro" | "avro of nulls":
            item = _BOOLEAN if form == "avro" else _NULLS
            schema = avro.parsed(avro.record(("a", {"type": "array", "items": item})))
            return AvroDecoder(schema.columns, {7: schema}, most)
        case _:
            columns = "a INT" if form == "json" else "x ARRAY<STRUCT<y: INT>>"
            return JsonDecoder(parse_columns(columns), most_bytes=most)


def values_of(form: str) -> list[bytes]:
    """Return values of which the first and the last fit."""
    match form:
        case "variant":
            return [b"1", b"[" + b"{}," * 5_000_000 + b"{}]", b"2"]
        case "avro" | "avro of nulls":
            count = 30_000_000 if form == "avro" else 200_000
            each = [HEADER + zigzag(n) + bytes(n) + b"\0" for n in (1, count)]
            return [each[0], each[1], each[0]]
        case "plain":  # each fits, all at a time would not
            return [b'{"x":[' + b"{}," * 330_000 + b"{}]}"] * 16
        case _:
            item = b"{}," if form == "json" else b'{"y":1},'
            return [b'{"a":1}', b'{"x":[' + item * (30_000_000 // len(item)) + b"{}]}", b"{}"]


async def stage(directory: str, form: str) -> int:
    """Stage the values, and rows of another topic beside them; return the peak of memory."""
    values = values_of(form)
    rows = [Record(n, n, None, value) for n, value in enumerate(values)]
    others = [Record(n, n, None, b'{"a":1}') for n in range(100)]
    memory = DecodingMemory(memory_shares(POD).values)
    async with FileStaging(directory, memory) as staging:
        await asyncio.gather(
            *(
                staging.write(
                    topic,
                    "0-1-1-0a1b2c3d.parquet",
                    in_columns({TopicPartition(topic, 0): each}),
                    Footer("id", len(each), {0: (0, len(each))}, topic=topic),
                    decoder,
                )
                for topic, each, decoder in (
                    ("bombs", rows, decoder_of(form)),
                    ("others", others, decoder_of("json")),
                )
            )
        )
    return peak_memory()


@pytest.mark.skipif(not LINUX, reason="only Linux tells the most memory of a process")
@pytest.mark.parametrize("form", FORMS)
def test_a_pod_stages_values_that_would_take_gigabytes(form: str, tmp_path: Path) -> None:
    program = [sys.executable, "-m", "tests.consumer.stage.test_memory_limit"]
    ran = subprocess.run(
        [*program, str(tmp_path), form], capture_output=True, text=True, check=True, timeout=200
    )
    assert json.loads(ran.stdout) < POD - OTHERS
    file = "0-1-1-0a1b2c3d.parquet"
    assert pq.read_metadata(tmp_path / "others" / file).num_rows == 100
    table = pq.read_table(tmp_path / "bombs" / file, columns=["offset", "bad"])
    kinds = [each and each["kind"] for each in table["bad"].to_pylist()]
    count = len(values_of(form))
    beyond = [] if form == "plain" else [*range(1, count - 1)]
    assert table["offset"].to_pylist() == [*range(count)]
    assert [n for n, kind in enumerate(kinds) if kind == "too_large"] == beyond
    assert {*kinds} <= {None, "too_large"}


async def stage_again_and_again(directory: str) -> int:
    """Stage larger and larger values; return how much more memory the process has than before."""
    give_back_freed_memory()
    async with FileStaging(directory, DecodingMemory(memory_shares(POD).values)) as staging:

        async def write(topic: str, size: int) -> None:
            value = b'{"x":[' + b"{}," * (size // 3) + b"{}]}"
            await staging.write(
                topic,
                f"0-1-{size}-0a1b2c3d.parquet",
                in_columns({TopicPartition(topic, 0): [Record(0, 0, None, value)]}),
                Footer("id", 1, {0: (0, 1)}, topic=topic),
                decoder_of("json"),
            )

        await write("first", 1)
        before = own_memory()
        for size in range(18_000_000, 38_000_000, 5_000_000):
            await asyncio.gather(*(write(topic, size) for topic in ("one", "two", "three")))
    return own_memory() - before


def own_memory() -> int:
    """Return the bytes of memory that the process has now, without files."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith("RssAnon:"))


@pytest.mark.skipif(not LINUX, reason="only Linux tells the memory of a process")
def test_what_large_values_took_is_given_back(tmp_path: Path) -> None:
    """Else threads keep 50 to 80 MB each: a quarter of what a pod has, taken by nothing."""
    program = [sys.executable, "-m", "tests.consumer.stage.test_memory_limit", str(tmp_path)]
    ran = subprocess.run(program, capture_output=True, text=True, check=True, timeout=200)
    assert json.loads(ran.stdout) < 80 << 20


if __name__ == "__main__":
    work = stage(*sys.argv[1:]) if sys.argv[2:] else stage_again_and_again(sys.argv[1])
    sys.stdout.write(json.dumps(asyncio.run(work)))
