"""Whether tables have what was produced: records are read again, and decoded by the tests' means.

`binwright audit` says that each offset is in one of the two tables. This says that it is in the
right one, with the right values.
"""

import json
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass
from io import BytesIO
from typing import Any

import fastavro
from aiokafka import AIOKafkaConsumer, ConsumerRecord
from aiokafka import TopicPartition as KafkaPartition
from tests.chaos.evolving_schemas import UNKNOWN
from tests.chaos.evolving_topics import KINDS, EvolvingTopics, Version

from binwright.kafka.client import client_options
from binwright.kafka.control_topics import KafkaControlTopics
from binwright.lake.lake_reader import reader_of
from binwright.protocol.names import BAD_SUFFIX
from binwright.runtime.settings.group import Settings

ONE_OF = 4  # rows whose columns are compared; all are looked up
HEADER = 5
POLL_MS = 1000
MOST_LISTED = 20

Place = tuple[int, int]
"""Partition and offset."""


@dataclass(frozen=True, slots=True)
class Bad:
    """A record that belongs into the table of bad ones."""

    kind: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """What of the topics was compared with the tables, and differs."""

    rows: int  # all of whose columns were compared
    bad: Mapping[str, int]  # bad records, by kind
    versions: int  # of all schemas
    differences: tuple[str, ...]


async def compare_values(
    evolving: EvolvingTopics, settings: Settings, bus: KafkaControlTopics
) -> Comparison:
    """Read all records again, and compare them with the tables.

    Raises:
        LakeUnavailable: Spark does not answer.
    """
    rows, bad, differences = 0, Counter[str](), list[str]()
    for topic in KINDS:
        expected = {
            (record.partition, record.offset): decoded(evolving.versions[topic], record.value)
            async for record in _records(settings, bus, topic)
        }
        path = settings.lake.table_path(topic)
        async with reader_of(settings.lake, topic) as reader:
            kinds = dict(await reader.run("read the bad records", lambda s: bad_records(s, path)))  # noqa: B023 - awaited here
            landed = await reader.run("read the table", lambda s: _rows(s, path))  # noqa: B023 - awaited here
        wanted = {place: each.kind for place, each in expected.items() if isinstance(each, Bad)}
        differences += [
            f"{topic} {place}: bad as {kinds.get(place)}, and should be as {wanted.get(place)}"
            for place in sorted(wanted.keys() | kinds.keys())
            if wanted.get(place) != kinds.get(place)
        ]
        for place, row in landed.items():
            value = expected.get(place)
            faults = ["is in the table"] if isinstance(value, Bad) else different(value or {}, row)
            differences += [f"{topic} {place}: {fault}" for fault in faults]
        rows += len(landed)
        bad.update(kinds.values())
    return Comparison(
        rows=rows,
        bad=bad,
        versions=sum(map(len, evolving.versions.values())),
        differences=tuple(differences[:MOST_LISTED]),
    )


def decoded(versions: list[Version], value: bytes | None) -> dict[str, Any] | Bad | None:
    """Return what a record is, by its own schema."""
    if value is None:
        return None
    if value[:1] != b"\0":
        return Bad("malformed")
    number = int.from_bytes(value[1:HEADER], "big")
    if number == UNKNOWN:
        return Bad("schema_unknown")
    shape = next(version.shape for version in versions if version.number == number)
    try:
        if shape.kind == "JSON":
            found = json.loads(value[HEADER:])
        else:
            found = fastavro.schemaless_reader(BytesIO(value[HEADER:]), shape.schema, None)
    except (EOFError, ValueError):
        return Bad("malformed")
    assert isinstance(found, dict)
    return found


def different(wanted: Mapping[str, Any], there: Mapping[str, Any], prefix: str = "") -> list[str]:
    """Return what differs: fields that a record has not must be NULL."""
    return [
        fault
        for name in sorted({*wanted, *there})
        for fault in _differs(wanted.get(name), there.get(name), prefix + name)
    ]


def _differs(wanted: Any, there: Any, name: str) -> Iterator[str]:
    match wanted, there:
        case Mapping(), Mapping():
            yield from different(wanted, there, f"{name}.")
        case list(), list() if len(wanted) == len(there):
            for number, (one, other) in enumerate(zip(wanted, there, strict=True)):
                yield from _differs(one, other, f"{name}[{number}]")
        case _ if wanted != there:
            yield f"{name} is {str(there)[:40]}, and was {str(wanted)[:40]}"


async def _records(
    settings: Settings, bus: KafkaControlTopics, topic: str
) -> AsyncIterator[ConsumerRecord[bytes, bytes]]:
    partitions = range(await bus.partitions(topic))
    ends = {KafkaPartition(topic, n): await bus.end(topic, n) for n in partitions}
    async with AIOKafkaConsumer(
        **client_options(settings.kafka), auto_offset_reset="earliest"
    ) as consumer:
        consumer.assign(list(ends))
        while left := [p for p, end in ends.items() if await consumer.position(p) < end]:
            found = await consumer.getmany(*left, timeout_ms=POLL_MS)
            for records in found.values():
                for record in records:
                    yield record


def bad_records(spark: Any, path: str) -> list[tuple[Place, str]]:
    """Return the places and kinds of the bad records of the table at `path`."""
    table = spark.read.format("delta").load(path + BAD_SUFFIX)
    found = table.selectExpr("_kafka.partition", "_kafka.offset", "kind").collect()
    return [((row[0], row[1]), row[2]) for row in found]


def _rows(spark: Any, path: str) -> dict[Place, dict[str, Any]]:
    table = spark.read.format("delta").load(path).where(f"_kafka.offset % {ONE_OF} = 0")
    found = [row.asDict(recursive=True) for row in table.collect()]
    return {
        (kafka["partition"], kafka["offset"]): row for row in found if (kafka := row.pop("_kafka"))
    }
