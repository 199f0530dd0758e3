"""Rows of keys: changes are applied to them by a MERGE, for one table of keys. All calls block.

Keys that were deleted are noted in a table beside it, as hashes: a change that is older than the
deletion, and comes later, does not bring the row back. What is noted is true of the topic, whatever
became of the table.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pyspark.sql.connect import functions as sf
from pyspark.sql.connect.dataframe import DataFrame
from pyspark.sql.connect.session import SparkSession
from pyspark.sql.types import BinaryType, DataType, DecimalType, StructType

from binwright.consumer.land.lake.creation import create, created
from binwright.consumer.land.lake.delta import COMPILED, METADATA, delete_rows, settings
from binwright.consumer.land.lake.erased_rows import noted_by
from binwright.consumer.land.lake.staged_rows import LANDED, Frame, literal_text, tasks_for
from binwright.consumer.land.lake.table_columns import Layout
from binwright.lake.lake_reader import quoted
from binwright.protocol.names import DELETED_SUFFIX
from binwright.tables.columns import KAFKA, parse_columns, parse_path
from binwright.tables.columns import quoted as quoted_name
from binwright.tables.envelopes import DELETED, OP
from binwright.tables.ports import Batch, Table

LAYOUT = Layout(
    required=parse_columns(
        "key string, place struct<topic:string,partition:int,offset:bigint,timestamp:timestamp>, "
        "sequence array<string>, noted_at timestamp"
    ),
    statistics=("noted_at",),
)
COMMENT = "Hashes of keys whose rows were deleted: older changes do not bring them back"
KEPT_DAYS = 30
"""For which deletions are noted: a change that comes later than that is taken for a new row."""
APP, VERSION = "spark.databricks.delta.write.txnAppId", "spark.databricks.delta.write.txnVersion"
"""Of a session's commits: with them Delta commits a MERGE that changes nothing, too."""
OPERATION = f"{OP.name} = '{DELETED}'"


def ensure(spark: SparkSession, path: str) -> None:
    """Create the table of deletions if it is missing."""
    create(spark, path + DELETED_SUFFIX, LAYOUT, COMMENT, {})
    created(spark, path + DELETED_SUFFIX, LAYOUT)


@dataclass(frozen=True, slots=True)
class Keys:
    """By what rows of a table are told apart, and their changes ordered."""

    primary_key: Sequence[str]
    sequence_by: Sequence[str]
    types: StructType  # of the table

    def equal(self, one: str, other: str) -> str:
        """Return the condition of rows of one key, by the aliases of both."""
        return " AND ".join(f"{one}.{path} = {other}.{path}" for path in self.primary_key)

    def hashed(self) -> str:
        """Return a hash of the key: whoever reads it does not read the key.

        With the names: a table that is made anew has other deletions if it has other keys, or
        another order (†).
        """
        names = literal_text(f"{', '.join(self.primary_key)}; {', '.join(self.sequence_by)}")
        texts = ", ".join((names, *(self._text(path, path) for path in self.primary_key)))
        return f"sha2(to_json(array({texts})), 256)"

    def sequence(self, at: str = "") -> str:
        """Return what changes are ordered by."""
        parts = (self._compared(path, at + path) for path in self.sequence_by)
        return ", ".join(f"{part} AS s{number}" for number, part in enumerate(parts))

    def sequence_texts(self) -> str:
        """Return that as texts."""
        parts = (self._compared(path, path) for path in self.sequence_by)
        return f"array({', '.join(f'CAST({part} AS STRING)' for part in parts)})"

    def sequence_of_texts(self, texts: str) -> str:
        """Return what `sequence` does, of what `sequence_texts` returned."""
        kinds = (self._type(path).simpleString() for path in self.sequence_by)
        parts = (
            f"try_cast(try_element_at({texts}, {number + 1}) AS "
            f"{'bigint' if kind == 'timestamp' else kind}) AS s{number}"
            for number, kind in enumerate(kinds)
        )
        return ", ".join(parts)

    def _compared(self, path: str, value: str) -> str:
        is_time = self._type(path).simpleString() == "timestamp"
        return f"unix_micros({value})" if is_time else value

    def _text(self, path: str, value: str) -> str:
        """Return the text of a value; that of a number is the same in a wider type (†)."""
        kind = self._type(path)
        if isinstance(kind, BinaryType):
            return f"hex({value})"
        text = f"CAST({self._compared(path, value)} AS STRING)"
        if isinstance(kind, DecimalType):
            return f"rtrim('.', regexp_replace({text}, '([.][0-9]*?)0+$', '$1'))"
        return text

    def _type(self, path: str) -> DataType:
        here: DataType = self.types
        for name in parse_path(path):
            assert isinstance(here, StructType), path
            here = next(f.dataType for f in here.fields if f.name.lower() == name.lower())
        return here


def keys_of(spark: SparkSession, path: str, table: Table) -> Keys:
    """Return the keys of a table that is there."""
    return Keys(table.primary_key, table.sequence_by, spark.table(quoted(path)).schema)


def newer(change: str, known: str, sequences: tuple[str, str], *, earlier: bool) -> str:
    """Return the condition that a change is newer than what is known (†).

    A batch goes on where the table has its partitions, so what it has of one is newer, whatever
    the offset: that of a topic made anew begins at 0. Of earlier records the time tells, and of one
    time the offset: a record of before a cut of the log, or of before the topic was made anew, may
    have a greater one.

    Args:
        change: The place in Kafka of the change.
        known: That of the row, or of its deletion.
        sequences: What both are ordered by first; empty: nothing.
        earlier: Whether the batch has records from before what has landed: of some work.
    """
    same = f"{change}.topic = {known}.topic AND {change}.partition = {known}.partition"
    times = [_time(place) for place in (change, known)]
    placed = [f"struct({t}, {p}.offset)" for t, p in zip(times, (change, known), strict=True)]
    later = f"{placed[0]} > {placed[1]}" if earlier else "true"
    by_time = f"{times[0]} >= {times[1]}"
    by_place = f"IF({same}, {later}, {by_time})"
    if not sequences[0]:
        return by_place
    one, other = (f"struct({sequence})" for sequence in sequences)
    return (
        f"CASE WHEN {one} > {other} THEN true WHEN {one} < {other} THEN false ELSE {by_place} END"
    )


def _time(place: str) -> str:
    """Return the time of a record; one that has none is older than all others."""
    return f"coalesce({place}.timestamp, timestamp_micros(0))"


def last(rows: DataFrame, keys: Keys, batch: Batch) -> DataFrame:
    """Return the last change of each key in each partition, as `row`, beside what groups them.

    That is by what changes are ordered, and of earlier records by their times.
    """
    sequence = f"{keys.sequence()}, " if keys.sequence_by else ""
    sequence += f"{_time(KAFKA)}, " if batch.work else ""
    by_key = [sf.expr(path).alias(f"k{number}") for number, path in enumerate(keys.primary_key)]
    place = [f"{KAFKA}.topic AS in_topic", f"{KAFKA}.partition AS in_partition"]
    change = sf.expr(f"max_by(struct(*), struct({sequence}{KAFKA}.offset))").alias("row")
    return rows.groupBy(*by_key, *map(sf.expr, place)).agg(change)


def newest(rows: DataFrame, keys: Keys, batch: Batch) -> DataFrame:
    """Return the newest change of each key: of several partitions that with the latest time."""
    changes = last(rows, keys, batch)
    if len({p for part in batch.slices for p in part.partitions}) > 1:
        names = [f"k{number}" for number in range(len(keys.primary_key))]
        sequence = f"{keys.sequence('row.')}, " if keys.sequence_by else ""
        order = f"struct({sequence}{_time(f'row.{KAFKA}')}, in_topic, in_partition)"
        changes = changes.groupBy(*names).agg(sf.expr(f"max_by(row, {order})").alias("row"))
    return changes.select("row.*")


def note_deleted(
    frame: Frame, batch: Batch, path: str, table: Table, stamp: str
) -> Callable[[SparkSession], None]:
    """Return a function that notes the keys of a batch's deletions; see `Lake.note_deleted`.

    Not those behind which the same partition has a later change of the key.
    """

    def work(spark: SparkSession) -> None:
        keys = keys_of(spark, path, table)
        changes = last(frame(spark).to(keys.types), keys, batch).select("row.*")
        deleted = changes.where(OPERATION).coalesce(tasks_for(batch.bytes))
        _note(deleted, keys, path, stamp)

    return work


def note_erased(spark: SparkSession, path: str, table: Table, operation: str, text: str) -> None:
    """Note the keys of rows that are to be erased: no older change brings them back (†)."""
    if (noted := noted_by(spark, path, operation)) is not None:
        same = " AND ".join(f"{KAFKA}.{name} <=> noted.{name}" for name in LANDED)
        places = noted.where("NOT bad").alias("noted")
        rows = spark.table(quoted(path)).join(places, sf.expr(same), "left_semi")
        _note(rows, keys_of(spark, path, table), path, text)


def _note(rows: DataFrame, keys: Keys, path: str, text: str) -> None:
    place = ", ".join(f"{KAFKA}.{name}" for name in LANDED)
    noted = rows.selectExpr(
        f"{keys.hashed()} AS key",
        f"struct({place}) AS place",
        f"{keys.sequence_texts()} AS sequence",
        "current_timestamp() AS noted_at",
    )
    noted.writeTo(quoted(path + DELETED_SUFFIX)).option("userMetadata", text).append()


def merge(  # noqa: PLR0917 - the parts of a commit
    frame: Frame,
    batch: Batch,
    path: str,
    table: Table,
    stamp: str,
    transaction: tuple[str, int],
) -> Callable[[SparkSession], None]:
    """Return a function that applies the changes of a batch; see `Lake.merge`.

    Delta takes its snapshot, and then reads the changes, and the lease with them (†).

    Args:
        frame: Builds the changes, with the columns of the table that they have.
        batch: What it reads.
        path: Of the table.
        table: Its keys.
        stamp: The commit's `userMetadata`.
        transaction: As of `delta.append`.
    """

    def work(spark: SparkSession) -> None:
        keys = keys_of(spark, path, table)
        changes = newest(frame(spark).to(keys.types), keys, batch)
        changes = _beside_notes(spark, changes, path, keys, earlier=bool(batch.work))
        columns = [quoted_name(name) for name in keys.types.names]
        view = f"changes_{transaction[1]}"  # of this session
        sequences = (
            (keys.sequence("new.row."), keys.sequence("known.")) if keys.sequence_by else ("", "")
        )
        is_newer = newer(f"new.row.{KAFKA}", f"known.{KAFKA}", sequences, earlier=bool(batch.work))
        compiled = COMPILED if tasks_for(batch.bytes) > 1 else {}
        app = {APP: transaction[0], VERSION: str(transaction[1])}
        changes.createOrReplaceTempView(view)
        try:
            with settings(spark, {**compiled, **app, METADATA: stamp}):
                spark.sql(
                    f"MERGE INTO {quoted(path)} AS known USING {view} AS new "  # noqa: S608 - names
                    f"ON {keys.equal('known', 'new.row')} "
                    f"WHEN MATCHED AND {is_newer} AND new.row.{OPERATION} THEN DELETE "
                    f"WHEN MATCHED AND {is_newer} THEN UPDATE SET "
                    f"{', '.join(f'known.{name} = new.row.{name}' for name in columns)} "
                    f"WHEN NOT MATCHED AND NOT new.is_older "
                    f"AND NOT coalesce(new.row.{OPERATION}, false) THEN INSERT "
                    f"({', '.join(columns)}) VALUES ({', '.join(f'new.row.{n}' for n in columns)})"
                ).collect()
        finally:
            spark.catalog.dropTempView(view)

    return work


def _beside_notes(
    spark: SparkSession, changes: DataFrame, path: str, keys: Keys, *, earlier: bool
) -> DataFrame:
    """Return each change as `row`, and whether it `is_older` than a deletion of its key (†).

    That counts where the key has no row. A row that is there is newer than what is noted, or what
    is noted is about to be applied: it is itself among the changes.
    """
    noted = spark.table(quoted(path + DELETED_SUFFIX))
    of_change = keys.sequence("row.") if keys.sequence_by else ""
    of_noted = keys.sequence_of_texts("sequence") if keys.sequence_by else ""
    is_newer = newer(f"row.{KAFKA}", "place", (of_change, of_noted), earlier=earlier)
    keyed = changes.selectExpr("struct(*) AS row", f"{keys.hashed()} AS of_key")
    beside = keyed.join(noted, sf.expr(f"of_key = key AND NOT {is_newer}"), "left")
    return beside.groupBy("of_key").agg(
        sf.any_value("row").alias("row"), (sf.count("key") > 0).alias("is_older")
    )


def forget_old(spark: SparkSession, path: str) -> None:
    """Delete what is noted for longer than `KEPT_DAYS`."""
    old = f"noted_at < current_timestamp() - INTERVAL {KEPT_DAYS} DAYS"
    if not spark.table(quoted(path)).where(old).isEmpty():
        delete_rows(spark, path, old)
