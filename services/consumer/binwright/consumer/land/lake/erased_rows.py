"""Rows that are erased: their places are noted in a table of their own, then they are deleted.

Only the places are in the statements that delete: a commit of Delta keeps its condition, and that
may name a person.
"""

from collections.abc import Iterator, Mapping
from functools import reduce
from typing import Any

from pyspark.errors import AnalysisException, ParseException
from pyspark.sql.connect import functions as sf
from pyspark.sql.connect.dataframe import DataFrame
from pyspark.sql.connect.session import SparkSession

from binwright.consumer.land.lake.bad_rows import within
from binwright.consumer.land.lake.creation import create, created
from binwright.consumer.land.lake.delta import METADATA, REWRITTEN, outer_of, settings
from binwright.consumer.land.lake.faults import kind
from binwright.consumer.land.lake.staged_rows import literal_text
from binwright.consumer.land.lake.table_columns import Layout
from binwright.lake.lake_reader import erased_places, is_of_columns, quoted
from binwright.protocol.errors import TableRefused
from binwright.protocol.model import TopicPartition
from binwright.protocol.names import BAD_SUFFIX, ERASED_SUFFIX
from binwright.tables.columns import KAFKA, parse_columns
from binwright.tables.conditions import Condition
from binwright.tables.ports import ErasedCounts, ErasedQuery

LAYOUT = Layout(
    required=parse_columns(
        "table_id string, operation string, bad boolean, topic string, topic_id string, "
        "partition int, offset bigint, timestamp timestamp, noted_at timestamp"
    ),
    statistics=("operation", "topic", "partition"),
)
COMMENT = "Places of records that were erased: an audit does not call them lost"
PLACE = ("topic", "topic_id", "partition", "offset", "timestamp")


def note(spark: SparkSession, path: str, query: ErasedQuery, text: str | None) -> ErasedCounts:
    """Note the places of what is to be erased; see `Lake.note_erased`.

    Args:
        spark: The session.
        path: Of the table; its bad records, and the places, are beside it.
        query: What is erased.
        text: The commit's note; None: count only.
    """
    detail = spark.sql(f"DESCRIBE DETAIL {quoted(path)}").select("id", "createdAt").collect()[0]
    if 0 < query.ordered_ms < detail["createdAt"].timestamp() * 1000:
        raise TableRefused("it was ordered before the table was created: order it again")
    rows = spark.table(quoted(path))
    bad = spark.table(quoted(path + BAD_SUFFIX)) if is_of_columns(rows) else None
    meant = list[DataFrame]()
    if query.where is not None:
        meant.append(_places(rows, query, query.where, bad=False))
    if query.bad_where is not None and bad is not None:
        erasable = bad.where(f"NOT ({' OR '.join(_may_land_again(query)) or 'false'})")
        meant.append(_places(erasable, query, query.bad_where, bad=True))
    left = bad.count() if bad is not None and query.bad_where is None else 0
    if not meant:
        return ErasedCounts(0, 0, left)
    places = reduce(lambda both, more: both.unionAll(more), meant)
    if text is None:
        return _counts(places, left)
    if not places.isEmpty():
        erased_path = path + ERASED_SUFFIX
        create(spark, erased_path, LAYOUT, COMMENT, {})
        created(spark, erased_path, LAYOUT)
        noted = places.withColumns(
            {"table_id": sf.lit(detail["id"]), "noted_at": sf.current_timestamp()}
        )
        noted.writeTo(quoted(erased_path)).option("userMetadata", text).append()
    noted = noted_by(spark, path, query.operation)
    return ErasedCounts(0, 0, left) if noted is None else _counts(noted, left)


def _places(table: DataFrame, query: ErasedQuery, condition: Condition, *, bad: bool) -> DataFrame:
    """Return the places of the records that meet a condition; raise `TableRefused` if it is unfit.

    The condition may name a person: the fault quotes nothing of it.

    Rows have no id of their topic: it is that of the topic at present.
    """
    name, option = ("the table of bad records" if bad else "the table"), f"--{'bad-' * bad}where"
    place = f"{KAFKA}." if is_of_columns(table) else ""
    ids = " ".join(
        f"WHEN {place}topic = {literal_text(topic)} THEN {literal_text(id_)}"
        for topic, id_ in sorted(query.topic_ids.items())
        if id_ is not None
    )
    topic_id = "topic_id" if bad else f"CASE {ids} END" if ids else "CAST(NULL AS STRING)"
    try:
        condition.check(name, table.columns)
        meant = table.where(sf.expr(condition.text)).selectExpr(
            f"{literal_text(query.operation)} AS operation",
            f"{str(bad).lower()} AS bad",
            f"{place}topic AS topic",
            f"{topic_id} AS topic_id",
            *(f"{place}{each} AS {each}" for each in ("partition", "offset", "timestamp")),
        )
        _ = meant.schema  # until something is asked of a frame, Spark does not look
    except ValueError as exc:
        raise TableRefused(f"{option}: {exc}") from exc
    except (AnalysisException, ParseException) as exc:
        raise TableRefused(f"{option}: it does not fit {name}: {kind(exc)}") from exc
    return meant


def _may_land_again(query: ErasedQuery) -> Iterator[str]:
    """Yield conditions of the bad records whose batch may come again, one for each topic."""
    for topic, topic_id in sorted(query.topic_ids.items()):
        ends = ", ".join(
            f"{p.partition}, {end}L" for p, end in sorted(query.below.items()) if p.topic == topic
        )
        end = f"coalesce(try_element_at(map({ends}), {KAFKA}.partition), 0L)" if ends else "0L"
        place = f"{KAFKA}.topic = {literal_text(topic)} AND {KAFKA}.offset >= {end}"
        if topic_id is not None:
            place += f" AND coalesce(topic_id = {literal_text(topic_id)}, true)"
        yield f"({place})"


def noted_by(spark: Any, path: str, operation: str) -> DataFrame | None:
    """Return the places that an operation has noted, each once; None: there is no table of them."""
    if (noted := erased_places(spark, path)) is None:
        return None
    own = noted.where(f"operation = {literal_text(operation)}")
    frame: DataFrame = own.select("bad", *PLACE).distinct()
    return frame


def outer_offsets(spark: SparkSession, path: str) -> Mapping[TopicPartition, tuple[int, int]]:
    """Return the lowest and the highest noted offset of the rows of each partition."""
    noted = erased_places(spark, path)
    return {} if noted is None else outer_of(noted.where("NOT bad"))


def _counts(places: DataFrame, left: int) -> ErasedCounts:
    counts = {row["bad"]: row["count"] for row in places.groupBy("bad").count().collect()}
    return ErasedCounts(counts.get(False, 0), counts.get(True, 0), left)


def erase(spark: SparkSession, path: str, operation: str, text: str, *, bad: bool) -> None:
    """Delete the rows, or the bad records, of the places that an operation has noted."""
    if (noted := noted_by(spark, path, operation)) is None:
        return
    changed = path + BAD_SUFFIX if bad else path
    own = noted.where(f"bad = {str(bad).lower()}")
    places = {p: (first, last + 1) for p, (first, last) in outer_of(own).items()}
    if not places:
        return
    at = f"known.{KAFKA}." if is_of_columns(spark.table(quoted(changed))) else "known."
    same = [f"{at}{each} = noted.{each}" for each in ("topic", "partition", "offset")]
    same.append(f"{at}timestamp <=> noted.timestamp")
    if bad:
        same.append("known.topic_id <=> noted.topic_id")
    view = f"noted_{operation}"
    own.createOrReplaceTempView(view)
    try:
        with settings(spark, {**REWRITTEN, METADATA: text}):
            spark.sql(
                f"MERGE INTO {quoted(changed)} AS known USING {view} AS noted "
                f"ON {' AND '.join(same)} AND ({within(places, at)}) WHEN MATCHED THEN DELETE"
            ).collect()
    finally:
        spark.catalog.dropTempView(view)
