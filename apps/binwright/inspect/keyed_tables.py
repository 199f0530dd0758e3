"""Compare tables of keys with their topics: each key's row is that of its newest change.

All that the topics keep is read and decoded as consumers decode it. Rows of keys that a topic keeps
no change of are older than what it keeps, or of an earlier topic of its name. Records that are bad,
by their table or by today's settings, change no row.
"""

import asyncio
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from binwright.consumer.decide.memory import MOST_VALUE_BYTES
from binwright.consumer.decode.decoders import Decoders
from binwright.consumer.decode.masking import part_of
from binwright.consumer.decode.portions import DecodingMemory
from binwright.consumer.stage.parquet import decoded, to_arrow
from binwright.inspect.audit import CHECK_S, PartitionAudit, TableAudit
from binwright.inspect.decide.key_changes import (
    Change,
    Key,
    KeyFindings,
    NewestChanges,
    Place,
    compare_keys,
)
from binwright.inspect.topic_extents import AT_ONCE, MAX_LISTED, Range, Tally, TopicExtents
from binwright.lake.lake_reader import LakeReader, delta_table, erased_places, properties, records
from binwright.protocol.keeping import kept_since_ms
from binwright.protocol.model import TopicPartition
from binwright.protocol.names import BAD_SUFFIX
from binwright.protocol.ports.kafka import Records
from binwright.runtime.clock import wall_ms
from binwright.runtime.settings.group import Settings
from binwright.tables.columns import KAFKA, folded, parse_path
from binwright.tables.envelopes import DELETED, OP
from binwright.tables.settings import TableSettings
from binwright.tables.targets import Target


@dataclass(frozen=True, slots=True)
class _Landed:
    """What a table of keys has."""

    rows: Mapping[Key, Place]
    copies: Counter[Key]  # keys with several rows
    bad: frozenset[tuple[Place, int]]  # with their times, ms since 1970; 0: they have none
    erased: frozenset[Place]
    kept_since_ms: int | None


async def audit_keyed_table(
    settings: Settings,
    targets: Sequence[Target],
    extents: TopicExtents,
    reader: LakeReader,
    path: str,
    *,
    check_s: float = 10 * CHECK_S,
) -> tuple[TableAudit, ...]:
    """Compare a table of keys with its topics.

    Args:
        settings: By which records are decoded.
        targets: The table, for each of its topics.
        extents: Of the topics.
        reader: Of the table.
        path: Of it.
        check_s: Seconds in which the topics are read.

    Raises:
        ExternalError: Kafka, the registry or Spark does not answer, or not in time.
    """
    entry = targets[0].decoded
    assert entry is not None, targets
    bounds = await _bounds(targets, extents)
    landed = await reader.run(
        f"read the table at {path}", lambda spark: _landed(spark, path, entry)
    )
    known = landed or _Landed({}, Counter(), frozenset(), frozenset(), None)
    until = asyncio.get_running_loop().time() + check_s
    # What was written since may be in the table, or may have deleted rows.
    later = {p: end for p, (_, end) in (await _bounds(targets, extents)).items()}
    changes = NewestChanges(known.bad, {p: end for p, (_, end) in bounds.items()})
    async with Decoders(
        settings, settings.consumer.value_memory_bytes or MOST_VALUE_BYTES, waits=False
    ) as decoders:
        for target in targets:
            for p, (start, end) in sorted(bounds.items()):
                if p.topic != target.topic:
                    continue
                last = later.get(p, end)
                for first in range(start, last, AT_ONCE):
                    part = Range(first, min(first + AT_ONCE, last) - 1)
                    read = await extents.records(p, part, until)
                    rows = {p: [Records.of(read)]} if read else {}
                    for key, change in await _changes(decoders, target, rows):
                        changes.add(key, change)
    found = compare_keys(
        changes, known.rows, erased=known.erased, kept_since_ms=known.kept_since_ms
    )
    return tuple(
        TableAudit(
            topic=target.topic,
            name=target.name,
            path=path,
            exists=landed is not None,
            partitions=tuple(
                _partition(p, ends, known, found)
                for p, ends in sorted(bounds.items())
                if p.topic == target.topic
            ),
        )
        for target in targets
    )


async def _bounds(
    targets: Sequence[Target], extents: TopicExtents
) -> Mapping[TopicPartition, tuple[int, int]]:
    return {
        TopicPartition(target.topic, number): ends
        for target in targets
        for number, ends in (await extents.bounds(target.topic)).items()
    }


def _partition(
    p: TopicPartition, ends: tuple[int, int], landed: _Landed, found: KeyFindings
) -> PartitionAudit:
    own = [place.offset for place in landed.rows.values() if place.partition == p]
    lost, stale = Tally(), _of(p, found.stale)
    for offset in _of(p, found.lost):
        lost.add(offset)
    twice = {landed.rows[key]: count - 1 for key, count in landed.copies.items()}
    doubles = _of(p, twice)
    return PartitionAudit(
        partition=p.partition,
        start=ends[0],
        end=ends[1],
        rows=len(own) + sum(twice[Place(p, offset)] for offset in doubles),
        first=min(own, default=None),
        last=max(own, default=None),
        lost=lost.count,
        lost_ranges=tuple(lost.ranges),
        unread=0,
        surplus=sum(twice[Place(p, offset)] for offset in doubles),
        doubles=tuple(doubles[:MAX_LISTED]),
        beyond=0,
        bad=len(_of(p, (place for place, _ in landed.bad))),
        expired=len(_of(p, found.expired)),
        erased=len(_of(p, found.erased)),
        stale=len(stale),
        stale_offsets=tuple(stale[:MAX_LISTED]),
    )


def _of(p: TopicPartition, places: Iterable[Place]) -> list[int]:
    """Return the offsets of places in a partition, in order."""
    return sorted(place.offset for place in places if place.partition == p)


async def _changes(
    decoders: Decoders, target: Target, rows: Mapping[TopicPartition, Sequence[Records]]
) -> list[tuple[Key, Change]]:
    """Return the changes that these records are, of one partition."""
    if not rows:
        return []
    decoder, entry = await decoders.of(target, rows), target.decoded
    assert decoder is not None, target
    assert entry is not None, target
    mask = await decoders.mask_of(target)
    changes: list[tuple[Key, Change]] = []
    for batch in decoded(to_arrow(rows), decoder, DecodingMemory(), mask):
        if not decoder.columns:
            continue  # all are bad
        good = batch.filter(pc.is_null(batch["bad"]))
        keys = zip(*(_values(good, path) for path in entry.primary_key), strict=True)
        sequences = zip(*(_values(good, path) for path in entry.sequence_by), strict=True)
        places = (_values(good, f"{KAFKA}.{name}") for name in ("topic", "partition", "offset"))
        ops, times = _values(good, OP.name), good["timestamp"].cast(pa.int64()).to_pylist()
        for key, sequence, place, op, at_us in zip(
            keys,
            sequences if entry.sequence_by else repeat((), len(good)),
            zip(*places, strict=True),
            ops,
            times,
            strict=True,
        ):
            topic, number, offset = place
            at = Place(TopicPartition(topic, number), offset)
            change = Change(at, (at_us or 0) // 1000, sequence, op == DELETED)
            changes.append((key, change))
    return changes


def _values(batch: pa.RecordBatch, path: str) -> list[Any]:
    """Return the values of a column, or of a field within it, of decoded records."""
    first, *within = parse_path(path)
    if folded(first) == KAFKA:
        return batch[folded(within[0])].to_pylist()
    return list(part_of(batch["row"], (first, *within)).to_pylist())


def _landed(spark: Any, path: str, entry: TableSettings) -> _Landed | None:
    """Return what the table at `path` has; None: there is none. Raises what pyspark raises."""
    if (table := delta_table(spark, path)) is None:
        return None
    keys = [f"{path_} AS k{number}" for number, path_ in enumerate(entry.primary_key)]
    names = [f"k{number}" for number in range(len(keys))]
    place = [f"{KAFKA}.{name}" for name in ("topic", "partition", "offset")]
    rows: dict[Key, Place] = {}
    copies: Counter[Key] = Counter()
    for row in table.selectExpr(*keys, *place).toArrow().to_pylist():
        key = tuple(row[name] for name in names)
        copies[key] += 1
        rows[key] = _place(row)
    bad = delta_table(spark, path + BAD_SUFFIX)
    noted = erased_places(spark, path)
    at_ms = f"coalesce(unix_millis({KAFKA}.timestamp), 0) AS at_ms"
    bad_at = () if bad is None else _found(records(bad, at_ms), "at_ms")
    return _Landed(
        rows,
        Counter({key: count for key, count in copies.items() if count > 1}),
        frozenset((_place(row), row["at_ms"]) for row in bad_at),
        frozenset(map(_place, () if noted is None else _found(noted.where("NOT bad")))),
        kept_since_ms(properties(spark, path), wall_ms()),
    )


def _found(frame: Any, *more: str) -> Sequence[Mapping[str, Any]]:
    rows: list[dict[str, Any]] = (
        frame.select("topic", "partition", "offset", *more).toArrow().to_pylist()
    )
    return rows


def _place(row: Mapping[str, Any]) -> Place:
    return Place(TopicPartition(row["topic"], row["partition"]), row["offset"])
