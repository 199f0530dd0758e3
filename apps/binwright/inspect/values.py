"""Does a table have the values of its topics?

Records of a sample are read again, decoded as consumers decode them, and compared with their rows
column by column.
"""

import asyncio
import random
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from importlib import import_module
from itertools import chain
from operator import itemgetter, or_
from typing import Any, Literal

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from binwright.consumer.decide.memory import MOST_VALUE_BYTES
from binwright.consumer.decide.new_columns import ADDED
from binwright.consumer.decode.decoders import Decoders
from binwright.consumer.decode.portions import DecodingMemory
from binwright.consumer.land.lake.staged_rows import condition
from binwright.consumer.stage.parquet import decoded, masked, to_arrow
from binwright.inspect.decide.differences import Comparison, Place, Row, compare
from binwright.inspect.topic_extents import Range, TopicExtents, open_topic_extents
from binwright.lake.lake_reader import (
    LakeReader,
    delta_table,
    erased_places,
    reader_of,
    records_of,
)
from binwright.protocol.errors import LakeUnavailable, SettingsError, UserError
from binwright.protocol.model import TopicPartition
from binwright.protocol.names import BAD_SUFFIX, ERASED_SUFFIX
from binwright.protocol.ports.kafka import Records
from binwright.runtime.settings.consumer import LakeSettings
from binwright.runtime.settings.group import Settings
from binwright.tables.columns import KAFKA, REST, Columns, folded, is_variant, quoted
from binwright.tables.targets import Target

RUNS = 8  # of neighbouring records of a partition: one fetch returns many
READ_S = 60.0
RAW = "value"

Sample = Mapping[int, Sequence[Range]]
Reader = Literal["spark", "deltalake"]


def sample(bounds: Mapping[int, tuple[int, int]], wanted: int, chance: random.Random) -> Sample:
    """Return `wanted` offsets, about: in each partition the same number, in runs at random places.

    Args:
        bounds: Partition -> first offset, and end.
        wanted: Of all partitions.
        chance: Draws where the runs begin.
    """
    share = max(wanted // len(bounds), 1)
    return {p: [*_runs(start, end, share, chance)] for p, (start, end) in bounds.items()}


def _runs(start: int, end: int, share: int, chance: random.Random) -> list[Range]:
    if end - start <= share:
        return [Range(start, end - 1)] if start < end else []
    runs, count = [], min(RUNS, share)
    for number in range(count):
        begin, stop = (start + (end - start) * n // count for n in (number, number + 1))
        first = chance.randint(begin, stop - share // count)
        runs.append(Range(first, first + share // count - 1))
    return runs


async def compare_values(
    settings: Settings, lake: LakeSettings, targets: Sequence[Target], wanted: int, reader: Reader
) -> Mapping[str, Comparison]:
    """Compare a sample of each topic's records with their rows in one table.

    Args:
        settings: By which records are read and decoded.
        lake: Where the table is, and which Spark reads it.
        targets: The table, for each of its topics.
        wanted: Records of all topics, about.
        reader: What reads the table.

    Raises:
        UserError: There is no table, or it is of another kind than the settings make it.
        SettingsError: The reader is not installed.
        ExternalError: Kafka, the registry or Spark does not answer; or the table is not read.
    """
    share, table = max(wanted // len(targets), 1), targets[0].name
    async with open_topic_extents(settings.kafka, settings.consumer.isolation) as extents:
        samples = [await _sampled(settings, target, extents, share) for target in targets]
    path = lake.table_path(table)
    if targets[0].has_keys:
        raise UserError(
            f"the values of {table} are not compared: it has one row of each key, and others have "
            "replaced those of most records. Its audit of offsets reads all of them"
        )
    if reader == "deltalake":
        return {
            each.topic: compare(each.rows, *await asyncio.to_thread(each.by_deltalake, path))
            for each in samples
        }
    async with reader_of(lake, table) as session:
        return {each.topic: await each.compared(session, path) for each in samples}


@dataclass(frozen=True, slots=True)
class _Sampled:
    """A sample of a topic's records, decoded again."""

    topic: str
    wanted: Sample
    columns: Columns | None
    rows: Sequence[Row]

    async def compared(self, reader: LakeReader, path: str) -> Comparison:
        """Compare it with the rows of the table at `path`."""
        landed = await reader.run(
            f"read the table at {path}",
            lambda spark: landed_by_spark(spark, path, self.topic, self.columns, self.wanted),
        )
        return compare(self.rows, *landed)

    def by_deltalake(self, path: str) -> tuple["Landed", "Landed", "Landed"]:
        """Return what deltalake reads of it in the table at `path`; blocks."""
        return landed_by_deltalake(path, self.topic, self.columns, self.wanted)


async def _sampled(
    settings: Settings, target: Target, extents: TopicExtents, share: int
) -> _Sampled:
    bounds = await extents.bounds(target.topic)
    wanted = sample(bounds, share, random.Random())
    records = await _read(extents, target.topic, wanted)
    return _Sampled(target.topic, wanted, *await _decoded(settings, target, records))


async def _read(
    extents: TopicExtents, topic: str, wanted: Sample
) -> dict[TopicPartition, list[Records]]:
    until, records = asyncio.get_running_loop().time() + READ_S, {}
    for number, runs in wanted.items():
        partition = TopicPartition(topic, number)
        rows = [row for run in runs for row in await extents.records(partition, run, until)]
        if rows:
            records[partition] = [Records.of(rows)]
    return records


async def _decoded(
    settings: Settings, target: Target, records: Mapping[TopicPartition, Sequence[Records]]
) -> tuple[Columns | None, list[Row]]:
    """Return the columns of a table, and these records as rows of it."""
    table = to_arrow(records)
    memory = DecodingMemory(settings.consumer.value_memory_bytes or MOST_VALUE_BYTES)
    async with Decoders(
        settings, memory.most_bytes, waits=False
    ) as decoders:  # what waits has not landed
        decoder, mask = await decoders.of(target, records), await decoders.mask_of(target)
    if decoder is None:
        raw = masked(table, mask).to_pylist()
        return None, [row | {"row": {RAW: row[RAW]}, "bad": None} for row in raw]
    batches = decoded(table, decoder, memory, mask)
    rows: list[Row] = [{"row": {}} | row for batch in batches for row in batch.to_pylist()]
    variants = _variants(decoder.columns)
    for row in rows:
        _parse(row["row"], variants)
        _join_rest(row["row"], ())
    return decoder.columns, rows


def _variants(columns: Columns | None) -> frozenset[str]:
    return frozenset(column.name for column in columns or () if is_variant(column))


def _parse(row: dict[str, Any] | None, variants: Collection[str]) -> None:
    """Make values of the variants of a row, which are text: it may be written in several ways."""
    for name in variants:
        if row and row.get(name) is not None:
            row[name] = orjson.loads(row[name])


def _added(columns: Columns | None, there: Mapping[str, object]) -> list[str]:
    """Return which columns a table got for new fields, by the comments of all that it has."""
    if REST not in (columns or ()):
        return []
    own = {folded(column.name) for column in columns or ()}
    return [name for name, comment in there.items() if comment == ADDED and folded(name) not in own]


def _join_rest(row: dict[str, Any] | None, added: Collection[str]) -> None:
    """Put what a row has in columns for new fields to its rest: which it has depends on its age."""
    if row is None or (REST.name not in row and not added):
        return
    rest = orjson.loads(row[REST.name] or "{}")
    rest |= {name: value for name in added if (value := row.pop(name)) is not None}
    row[REST.name] = sorted(map(list, rest.items()), key=itemgetter(0)) or None


Landed = Mapping[Place, Sequence[dict[str, Any]]]


def landed_by_spark(
    spark: Any, path: str, topic: str, columns: Columns | None, wanted: Sample
) -> tuple[Landed, Landed, Landed]:
    """Return a topic's rows with these offsets, its bad records, and places of erased ones.

    Raises what pyspark raises.
    """
    if (table := delta_table(spark, path)) is None:
        raise UserError(f"there is no table at {path}")
    names = _names(path, table.columns, columns)
    variants = _variants(columns)
    comments = {field.name: field.metadata.get("comment") for field in table.schema.fields}
    names += (added := _added(columns, comments))
    row = ", ".join(_selected(quoted(name), as_json=name in variants) for name in names)
    row = f"struct({row}) AS row" if names else "NULL AS row"
    rows = _by_place(records_of(table, topic, row), wanted)
    for landed in chain.from_iterable(rows.values()):
        _parse(landed["row"], variants)
        _join_rest(landed["row"], added)
    bad_table = None if columns is None else delta_table(spark, path + BAD_SUFFIX)
    bad = {} if bad_table is None else _by_place(records_of(bad_table, topic, "value"), wanted)
    noted = erased_places(spark, path)
    return rows, bad, {} if noted is None else _by_place(records_of(noted, topic), wanted)


def _names(path: str, there: Collection[str], columns: Columns | None) -> list[str]:
    """Return which of the table's columns are compared; raise `UserError` if it is another kind."""
    if (KAFKA in there) is (columns is None):
        kind, by_settings = (
            ("columns", "raw records") if columns is None else ("raw records", "columns")
        )
        raise UserError(
            f"the table at {path} is one of {kind}, and by the settings of {by_settings}"
        )
    folded = {name.casefold() for name in there}
    return [RAW] if columns is None else [c.name for c in columns if c.name.casefold() in folded]


def landed_by_deltalake(
    path: str, topic: str, columns: Columns | None, wanted: Sample
) -> tuple[Landed, Landed, Landed]:
    """Return what `landed_by_spark` does, as deltalake reads it.

    Raises:
        SettingsError: It is not installed.
        UserError: There is no table, or one that it cannot read.
        LakeUnavailable: It fails.
    """
    try:
        delta, delta_error = import_module("deltalake"), import_module("deltalake.exceptions")
    except ModuleNotFoundError as exc:
        raise SettingsError("--reader deltalake: it is missing, pip install deltalake") from exc
    location = f"s3://{path.removeprefix('s3a://')}" if path.startswith("s3a://") else path
    if _variants(columns):
        raise UserError(f"the table at {path} has a VARIANT, which deltalake does not decode")

    def rows(place: str, names: Sequence[str]) -> Landed:
        dataset = delta.DeltaTable(place).to_pyarrow_dataset()
        exact = {name.casefold(): name for name in dataset.schema.names}
        values = {name: exact[name.casefold()] for name in names}
        nested = KAFKA in exact
        columns_read = dict.fromkeys((*([KAFKA] if nested else exact.values()), *values.values()))
        landed = defaultdict[Place, list[dict[str, Any]]](list)
        if not (runs := _within(topic, wanted, nested=nested)):
            return landed
        for row in dataset.to_table([*columns_read], filter=reduce(or_, runs)).to_pylist():
            record = row[KAFKA] if nested else row
            own = {name: row[there] for name, there in values.items()}
            landed[record["partition"], record["offset"]].append({**record, **own, "row": own})
        return landed

    try:
        if not delta.DeltaTable.is_deltatable(location):
            raise UserError(f"there is no table at {path}")
        fields = delta.DeltaTable(location).schema().fields
        names = _names(path, [field.name for field in fields], columns)
        added = _added(columns, {field.name: field.metadata.get("comment") for field in fields})
        landed = rows(location, [*names, *added])
        for row in chain.from_iterable(landed.values()):
            _join_rest(row["row"], added)
        bad, noted = location + BAD_SUFFIX, location + ERASED_SUFFIX
        has_bad = columns is not None and delta.DeltaTable.is_deltatable(bad)
        has_erased = delta.DeltaTable.is_deltatable(noted)
        id_ = delta.DeltaTable(location).metadata().id
        return (
            landed,
            rows(bad, [RAW]) if has_bad else {},
            _of_table(rows(noted, []), id_) if has_erased else {},
        )
    except (delta_error.DeltaError, pa.ArrowException, OSError) as exc:
        raise LakeUnavailable(f"deltalake does not read the table at {path}: {exc}") from exc


def _of_table(places: Landed, id_: str) -> Landed:
    """Return those that were noted of the table of this id: see `erased_places`."""
    return {place: [each for each in of if each["table_id"] == id_] for place, of in places.items()}


def _within(topic: str, wanted: Sample, *, nested: bool) -> list[pc.Expression]:
    """Return conditions of the rows of each run."""

    def field(name: str) -> pc.Expression:
        return pc.field(KAFKA, name) if nested else pc.field(name)

    return [
        (field("topic") == topic)
        & (field("partition") == partition)
        & (field("offset") >= run.first)
        & (field("offset") <= run.last)
        for partition, runs in wanted.items()
        for run in runs
    ]


def _selected(name: str, *, as_json: bool) -> str:
    return f"to_json({name}) AS {name}" if as_json else name


def _by_place(frame: Any, wanted: Sample) -> Landed:
    where = [
        condition({p: (run.first, run.last + 1)}) for p, runs in wanted.items() for run in runs
    ]
    rows = defaultdict[Place, list[dict[str, Any]]](list)
    for row in frame.where(" OR ".join(where) or "false").toArrow().to_pylist():
        rows[row["partition"], row["offset"]].append(row)
    return rows
