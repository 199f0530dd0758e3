"""Bad records that are read again, and what changes of them: for one table of them."""

from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from typing import Any
from uuid import uuid4

import pyarrow as pa
from pyspark.sql import Row
from pyspark.sql.connect import functions as sf
from pyspark.sql.connect.session import SparkSession

from binwright.consumer.land.lake.delta import METADATA, REWRITTEN, settings
from binwright.consumer.land.lake.staged_rows import literal_text
from binwright.consumer.stage.parquet import SCHEMA
from binwright.lake.lake_reader import frame, quoted
from binwright.protocol.model import TopicPartition
from binwright.protocol.ports.kafka import Record
from binwright.tables.columns import KAFKA
from binwright.tables.masks import MASKED_REASON
from binwright.tables.operations import Places
from binwright.tables.ports import BadPlace, BadPortion, BadQuery, BadRow

_ROW_BYTES = 200  # of a record in memory, beside its key and value
_MASKED = literal_text(MASKED_REASON)
_PLACE = ("topic", "partition", "offset")
_SAME = " AND ".join(
    [
        "known.topic_id <=> given.topic_id",
        *(f"known.{KAFKA}.{name} = given.{name}" for name in _PLACE),
        f"known.{KAFKA}.timestamp <=> given.timestamp",
    ]
)
_GIVEN = pa.schema(
    [
        *(SCHEMA.field(name) for name in (*_PLACE, "timestamp", "value")),
        pa.field("topic_id", pa.string()),
        pa.field("kind", pa.string()),
        pa.field("reason", pa.string()),
    ]
)
"""Of what changes: without a kind it goes."""


def portion(spark: SparkSession, path: str, query: BadQuery) -> BadPortion:
    """Return the first bad records that a query is of; see `Lake.bad_portion`."""
    wanted = " AND ".join(_wanted(query))
    meant = spark.table(quoted(path)).where(wanted)
    bad = meant.where(f"NOT reason <=> {_MASKED}")
    masked = meant.where(f"reason = {_MASKED}").count() if query.after is None else 0
    places = [f"{KAFKA}.{name}" for name in _PLACE]
    # Values are read of those files alone that have the first records.
    first = bad.select(*places).orderBy(*_PLACE).limit(query.most_rows).collect()
    first = [row for row in first if row["topic"] == first[0]["topic"]]
    if not first:
        return BadPortion(masked=masked)
    size = f"coalesce(length(value), 0) + coalesce(length({KAFKA}.key), 0) + {_ROW_BYTES}"
    sized = bad.where(_up_to(first[-1])).selectExpr(*places, f"{size} AS size").orderBy(*_PLACE)
    sizes = sized.collect()
    sums = accumulate(row["size"] for row in sizes)
    fitting = [row for row, sum_ in zip(sizes, sums, strict=True) if sum_ <= query.most_bytes]
    last = (fitting or sizes)[-1 if fitting else 0]
    read = bad.where(_up_to(last)).select(f"{KAFKA}.*", "topic_id", "kind", "reason", "value")
    rows = [*map(_row, read.toArrow().to_pylist())]
    rows.sort(key=lambda row: row.place[1:])
    return BadPortion(rows, masked)


def _up_to(last: Row) -> str:
    """Return the condition of a topic's records up to the place of this one."""
    return (
        f"{KAFKA}.topic = {literal_text(last['topic'])} AND ({KAFKA}.partition < "
        f"{last['partition']} OR ({KAFKA}.partition = {last['partition']} AND "
        f"{KAFKA}.offset <= {last['offset']}))"
    )


def _wanted(query: BadQuery) -> Iterator[str]:
    """Yield conditions that bad records meet which a query is of."""
    topics = [_of_topic(query, topic, id_) for topic, id_ in sorted(query.topic_ids.items())]
    yield f"({' OR '.join(topics) or 'false'})"
    if query.but:
        yield f"NOT ({within(query.but)})"
    if query.after is not None:
        topic, partition, offset = query.after
        yield (
            f"({KAFKA}.topic > {literal_text(topic)} OR ({KAFKA}.topic = {literal_text(topic)} AND "
            f"({KAFKA}.partition > {partition} OR ({KAFKA}.partition = {partition} AND "
            f"{KAFKA}.offset > {offset}))))"
        )
    if query.classes:
        yield f"kind IN ({', '.join(map(literal_text, query.classes))})"
    if query.since_ms:
        yield f"landed_at >= timestamp_millis({query.since_ms})"


def _of_topic(query: BadQuery, topic: str, topic_id: str | None) -> str:
    """Return the condition of the topic's records before what the table has committed (†)."""
    below = ((p.partition, next_) for p, next_ in query.below.items() if p.topic == topic)
    ends = ", ".join(f"{partition}, {next_}L" for partition, next_ in sorted(below))
    if not ends:
        return "false"
    same = "" if topic_id is None else f"coalesce(topic_id = {literal_text(topic_id)}, true) AND "
    before = f"{KAFKA}.offset < try_element_at(map({ends}), {KAFKA}.partition)"
    return f"({KAFKA}.topic = {literal_text(topic)} AND {same}{before})"


def _place(row: dict[str, Any]) -> BadPlace:
    at = row["timestamp"]
    at_ms = -1 if at is None else round(at.timestamp() * 1000)
    partition = TopicPartition(row["topic"], row["partition"])
    return BadPlace(row["topic_id"], partition, row["offset"], at_ms)


def _row(row: dict[str, Any]) -> BadRow:
    place = _place(row)
    headers = tuple((each["key"], each["value"]) for each in row["headers"] or ())
    at = place.offset, place.timestamp_ms
    record = Record(*at, row["key"], row["value"], row["timestamp_type"] or 0, headers)
    return BadRow(place, record, row["kind"], row["reason"])


def change(
    removed: Sequence[BadPlace], changed: Sequence[BadRow], path: str, note: str
) -> Callable[[SparkSession], None]:
    """Return a function that makes the changes in one commit; see `Lake.change_bad`."""
    given = [_given(place) for place in removed]
    given += [
        {**_given(row.place), "kind": row.kind, "reason": row.reason, "value": row.record.value}
        for row in changed
    ]
    offsets: dict[TopicPartition, tuple[int, int]] = {}
    for place in (*removed, *(row.place for row in changed)):
        first, next_ = offsets.get(place.partition, (place.offset, place.offset + 1))
        offsets[place.partition] = min(first, place.offset), max(next_, place.offset + 1)

    def work(spark: SparkSession) -> None:
        if not given:
            return
        view = f"portion_{uuid4().hex}"
        frame(spark, pa.Table.from_pylist(given, _GIVEN)).createTempView(view)
        try:
            with settings(spark, {**REWRITTEN, METADATA: note}):
                spark.sql(
                    f"MERGE INTO {quoted(path)} AS known USING {view} AS given "
                    f"ON {_SAME} AND ({within(offsets, f'known.{KAFKA}.')}) "
                    "WHEN MATCHED AND given.kind IS NULL THEN DELETE WHEN MATCHED THEN UPDATE SET "
                    "kind = given.kind, reason = given.reason, value = given.value"
                ).collect()
        finally:
            spark.catalog.dropTempView(view)

    return work


def _given(place: BadPlace) -> dict[str, Any]:
    topic_id, (topic, partition), offset, at_ms = place
    at_us = None if at_ms < 0 else at_ms * 1000
    where = {"topic": topic, "partition": partition, "offset": offset, "timestamp": at_us}
    return {**where, "topic_id": topic_id}


def landed(spark: SparkSession, path: str, bad_path: str, places: Places) -> Sequence[BadPlace]:
    """Return the bad records at these offsets of which a table has the rows."""
    names = (*_PLACE, "timestamp")
    here = within(places)
    rows = spark.table(quoted(path)).where(here)
    rows = rows.selectExpr(*(f"{KAFKA}.{name} AS row_{name}" for name in names))
    bad = spark.table(quoted(bad_path)).where(here)
    bad = bad.selectExpr("topic_id", *(f"{KAFKA}.{name}" for name in names))
    same = sf.expr(" AND ".join(f"{name} <=> row_{name}" for name in names))
    both = bad.join(rows, same, "left_semi").toArrow()
    return [_place(row) for row in both.to_pylist()]


def within(places: Places, at: str = f"{KAFKA}.") -> str:
    """Return the condition of records at these offsets; `at` is where they have their place."""
    parts = (
        f"({at}topic = {literal_text(p.topic)} AND {at}partition = {p.partition} AND "
        f"{at}offset >= {first} AND {at}offset < {next_})"
        for p, (first, next_) in sorted(places.items())
    )
    return " OR ".join(parts) or "false"
