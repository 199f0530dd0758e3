"""Settings of tables: which topics they take, under which names, in which form."""

import re
from collections.abc import Mapping
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Annotated, ClassVar, Literal, Self

from pydantic import AfterValidator, Field, field_validator, model_validator

from binwright.protocol.names import TOPIC_LENGTH, TopicName
from binwright.protocol.patterns import Pattern, compile_patterns
from binwright.protocol.section import KeepDays, Section, TopicPatterns, check_distinct
from binwright.tables.columns import (
    KAFKA,
    KAFKA_KEY,
    MEASURED,
    OF_RECORD,
    REST,
    VARIANT,
    Column,
    Columns,
    ColumnType,
    Decimal,
    Simple,
    Struct,
    columns_text,
    folded,
    has_order,
    in_values,
    is_variant,
    parse_columns,
    parse_path,
    path_text,
    stored,
    type_at,
)
from binwright.tables.comparisons import Comparison, parse_comparison
from binwright.tables.envelopes import OP, event_columns, landed_columns
from binwright.tables.json_schemas import JsonSchema
from binwright.tables.masks import DROP, MaskSettings, masked_columns
from binwright.tables.registration import CatalogName
from binwright.tables.schemas import SchemaRefused

ONE_COLUMN = {
    "string": parse_columns("value STRING"),
    "variant": parse_columns("value VARIANT"),
}
"""Formats whose columns nobody names."""
BY_SCHEMA = frozenset(["avro", "protobuf"])
"""Formats whose values name a schema of the registry, with `columns` and without."""
RAW = "raw"
"""The format of records that land as they are in Kafka."""
VALUE_OF_RAW = parse_columns("value BINARY")
"""The column of a raw table that fields of a mask may name."""
OF_COLUMNS = (
    *("columns", "key", "tombstones", "widen", "new_fields", "where", "envelope"),
    *(
        "mode",
        "primary_key",
        "sequence_by",
        "delete_where",
        "bad_share",
        "on_schema_fault",
        "partition_by",
        "cluster_by",
        "statistics",
    ),
)
"""Settings that tables of raw records have not."""
TOPIC = "topic"  # in a template of names, in braces
TEMPLATE = r"^([A-Za-z0-9._-]|\{[A-Za-z_][A-Za-z0-9_]*\})+$"
_PLACE = re.compile(r"\{([^}]*)\}")
MESSAGE = r"^[A-Za-z_][A-Za-z0-9_]{0,99}(\.[A-Za-z_][A-Za-z0-9_]{0,99}){0,19}$"
MOST_COMPARED = 50
"""Comparisons of `where`."""
MOST_CLUSTERED = 4
"""Columns by which Delta clusters a table."""
MOST_KEYS = 8
"""Columns of a primary key, and of what its changes are ordered by."""
KEYS_OF_KAFKA = parse_columns("topic STRING, partition INT, key BINARY")
"""What of a record's place may be in a primary key."""


def _path(text: str) -> str:
    return path_text(parse_path(text))


Tombstones = Literal["row", "skip", "bad"]
ColumnPath = Annotated[str, Field(min_length=1, max_length=500), AfterValidator(_path)]
ComparisonText = Annotated[str, Field(min_length=1, max_length=1_000)]
TopicSubject = Annotated[str, Field(min_length=1, max_length=500)]


class DecodingSettings(Section):
    """How bytes of records become columns: their values, or their keys."""

    format: Literal["raw", "json", "variant", "csv", "avro", "protobuf", "string"]
    """Bytes as they are, JSON objects, JSON of any shape, lines of CSV, Avro or Protobuf with the
    id of a schema in `registry`, or UTF-8 text. JSON without `columns` has such an id, too.
    """
    columns: str | None = None
    """Names and SQL types, as in `"id BIGINT, tags ARRAY<STRING>"`; for JSON also the text of a
    JSON Schema. Unset, for JSON, Avro and Protobuf: the fields of all versions of `subject`. Text
    and variants have one column, `value`.
    """
    columns_file: Path | None = None
    """A file that has the text of `columns`, in place of it; read when the settings are."""
    delimiter: Annotated[str, Field(pattern=r"^[^\"\r\n]$")] = ","
    """One character: what is between the fields of a line of CSV. They are quoted by `"`."""
    subject: TopicSubject | None = None
    """Of the registry: it has the columns, unless `columns` does; perhaps with a context, as in
    `":.staging:{topic}-value"`. Unset: `{topic}-value`, of a key `{topic}-key`.
    """
    message: Annotated[str, Field(pattern=MESSAGE)] | None = None
    """The full name of a message of Protobuf, as in `shop.Order`: values are of this one. Unset,
    they are of the first message of their schema; with `columns`, of any.
    """
    part: ClassVar[Literal["value", "key"]] = "value"

    @field_validator("columns")
    @classmethod
    def _are_columns(cls, value: str | None) -> str | None:
        if value is None:
            return None
        try:
            columns = _columns_of(value)
        except SchemaRefused as exc:
            raise ValueError(f"a JSON Schema that {exc}") from exc
        return value.strip() if _is_schema(value) else columns_text(in_values(columns))

    @model_validator(mode="after")
    def _has_columns(self) -> Self:
        if self.columns_file is not None:  # `with_text_of_file` takes it out where it is read
            raise ValueError("columns and columns_file are set: leave one of them out")
        if self.format == "csv" and self.columns is None:
            raise ValueError("names no columns, which CSV needs")
        if self.format == "csv" and (deep := [c.name for c in self.as_read if _has_parts(c.type)]):
            raise ValueError(f"columns: {deep[0]} has parts, and a field of CSV has none")
        if self.format != "csv" and self.delimiter != ",":
            raise ValueError("names a delimiter, which only CSV has")
        if self.format != "json" and _is_schema(self.columns or ""):
            raise ValueError("columns: a JSON Schema, which only JSON has")
        if self.format in ONE_COLUMN and self.columns is not None:
            raise ValueError(f"names columns, and format {self.format} has one, `value`")
        if self.format != "json" and self.columns and any(map(is_variant, self.as_read)):
            raise ValueError("names a column of type VARIANT, which only JSON has")
        if self.subject is not None and not self.by_schema:
            raise ValueError(
                "names a subject, which only Avro, Protobuf and JSON without columns have"
            )
        if self.message is not None and self.format != "protobuf":
            raise ValueError("names a message, which only Protobuf has")
        return self

    @property
    def parsed(self) -> Columns:
        """Return the columns; none, if those of a subject are meant."""
        return stored(self.as_read)

    @property
    def as_read(self) -> Columns:
        """Return the columns as values are read, some of type `JSON`: text in the table."""
        if self.format in ONE_COLUMN:
            return ONE_COLUMN[self.format]
        return () if self.columns is None else _columns_of(self.columns)

    @property
    def of_values(self) -> Columns:
        """Return the columns of all that a value has: of an event around the row, too."""
        return self.as_read

    @property
    def by_schema(self) -> bool:
        """Return whether values name a schema of the registry."""
        return self.format in BY_SCHEMA or (self.format == "json" and self.columns is None)

    @property
    def by_subject(self) -> bool:
        """Return whether the table has the columns of its topic's subject."""
        return self.by_schema and self.columns is None

    @property
    def decoding(self) -> str:
        """Return all on which it depends what a value is decoded to, but for the registry."""
        own = {"csv": self.delimiter, "protobuf": self.message}.get(self.format)
        form = self.format if own is None else f"{self.format} {own}"
        if self.columns is None:
            return f"{form}: {self._subject}"
        named = "" if self.subject is None else f"{self.subject}: "
        return f"{form}: {named}{columns_text(in_values(self.as_read))}"

    @property
    def message_read(self) -> str | None:
        """Return the message of Protobuf that values are: "": the first one; None: any."""
        return "" if self.message is None and self.columns is None else self.message

    @property
    def _subject(self) -> str:
        return f"{{topic}}-{self.part}" if self.subject is None else self.subject

    def subject_of(self, topic: str) -> str:
        """Return the registry's subject of a topic."""
        return self._subject.replace("{topic}", topic)


class KeySettings(DecodingSettings):
    """How the keys of records become a column."""

    part = "key"
    format: Literal["json", "variant", "csv", "avro", "protobuf", "string"]
    """As that of values, but for raw ones: they are in `_kafka.key` in any case."""

    @model_validator(mode="after")
    def _has_no_parts_of_any_type(self) -> Self:
        if self.format == "json" and self.columns and any(map(is_variant, self.parsed)):
            raise ValueError("names a column of type VARIANT: of a key, only the whole can be one")
        return self

    @property
    def column(self) -> Column | None:
        """Return the column; None: its fields are those of a subject."""
        return None if self.by_subject else key_column(self.parsed, self.format)


def key_column(columns: Columns, form: str) -> Column:
    """Return the column of keys that are decoded into these columns by a format."""
    return Column(KAFKA_KEY, columns[0].type if form in ONE_COLUMN else Struct(columns))


class TableSettings(DecodingSettings):
    """A table of each of some topics, or one of all of them: its name and its form.

    A topic has a table for each name that entries give it; topics with the same one share it. A
    topic of no entry has one of raw records.
    """

    topics: tuple[TopicName, ...] = ()
    """The topics."""
    topic_patterns: TopicPatterns = ()
    """Regular expressions: topics, too, whose whole names match one."""
    name: Annotated[str, Field(max_length=TOPIC_LENGTH, pattern=TEMPLATE)] = "{topic}"
    """The table's name: `{topic}` stands for the topic, `{region}` for what a group
    `(?P<region>…)` of the pattern matches. Topics that get one name land in one table.
    """
    key: KeySettings | None = None
    """How keys become the column `_kafka_key`; unset: they are bytes, in `_kafka.key`."""
    envelope: Literal["debezium"] | None = None
    """What is around the row that a value has: `debezium`: its change events, as JSON, also with
    the schema beside the payload, or as Avro. The row is that after the change, of a deletion that
    before; `_op` has what was done, `_source` where that stands in the source. `columns` are those
    of the row.
    """
    mode: Literal["append", "upsert"] = "append"
    """`append`: each record is a row. `upsert`: each value of `primary_key` has one row at most,
    that of its newest change.
    """
    primary_key: Annotated[tuple[ColumnPath, ...], Field(max_length=MOST_KEYS)] = ()
    """Of an upsert table: the columns, or fields, that tell rows apart, as `id`. Those of the
    record's key are `_kafka.key`, or `_kafka_key` and its fields; of several topics with the same
    ids `_kafka.topic` is one.
    """
    sequence_by: Annotated[tuple[ColumnPath, ...], Field(max_length=MOST_KEYS)] = ()
    """Of an upsert table: columns, or fields, as `_source.lsn`: of two changes of a key the one
    with the greater is newer. Unset, and where they are equal: the later one of a partition; of two
    partitions the one with the later timestamp.
    """
    delete_where: Annotated[tuple[ComparisonText, ...], Field(max_length=MOST_COMPARED)] = ()
    """Of an upsert table: comparisons as of `where`. A record for which all hold deletes the row
    of its key, as a record without a value does, and a deletion of an envelope.
    """
    tombstones: Tombstones = "row"
    """What becomes of a record without a value: a row whose columns are NULL (in an upsert table
    it deletes that of its key), nothing but a count, or a bad record.
    """
    widen: bool = False
    """Whether a column becomes wider where its settings or a schema's version want that, as INT
    becomes BIGINT. Some readers do not read a table from then on.
    """
    new_fields: Literal["ignore", "rest", "add"] = "ignore"
    """What becomes of fields of JSON that `columns` does not name: they are left out and counted;
    or kept as JSON in a column `_rest`; or get columns (`add`), beside `_rest`.
    """
    bad_share: Annotated[float, Field(ge=0.0, le=1.0)] = 1.0
    """A table stops where more than this share of its newest records cannot be decoded: of the last
    1,000, or of one commit. 0: at the first; 1: never.
    """
    on_schema_fault: Literal["wait", "bad"] = "wait"
    """What becomes of records whose schema is one of the subject's and cannot be used: they and all
    later ones of the topic wait until the schema, or this entry, is mended; or they are bad.
    """
    partition_by: Literal["_kafka_date"] | None = None
    """A column of the record's day, UTC: each day has files of its own, and `keep_days` deletes
    whole days. Only for tables that this creates, and not together with `cluster_by`.
    """
    cluster_by: Annotated[tuple[ColumnPath, ...], Field(max_length=MOST_CLUSTERED)] = ()
    """Columns, or fields as `by.name` and `_kafka.timestamp`: compaction sorts by them, so that a
    query of some values reads few files. Four at most.
    """
    statistics: tuple[ColumnPath, ...] = ()
    """Further columns, or fields, than those of `cluster_by` and the place in Kafka, by whose
    values queries skip files.
    """
    begin: Literal["group", "earliest"] = "group"
    """Where a new table begins: where the group stands, as the topic's other tables do; or with all
    that Kafka has: what is before lands beside what is written now, as by `table backfill`.
    """
    keep_days: KeepDays | None = None
    """As `lake.keep_days`, for these tables and their bad records; unset: the same."""
    register_as: CatalogName | None = None
    """As `lake.register_as`, for these tables and their bad records; unset: the same; empty: none.
    """
    where: Annotated[tuple[ComparisonText, ...], Field(max_length=MOST_COMPARED)] = ()
    """Comparisons of columns, as `status != 'test'`, `by.region in ('eu', 'us')` and `id is not
    null`. A record for which one does not hold, as SQL has it, is in no table.
    """
    mask: MaskSettings | None = None
    """What is masked before it is staged; unset: nothing."""

    @field_validator("topics", "cluster_by", "statistics", "primary_key", "sequence_by")
    @classmethod
    def _are_distinct(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        check_distinct(value)
        return value

    @model_validator(mode="after")
    def _is_of_some_topic(self) -> Self:
        if not (self.topics or self.topic_patterns):
            raise ValueError("names neither topics nor topic_patterns")
        return self

    @model_validator(mode="after")
    def _names_a_table_of_each_topic(self) -> Self:
        groups = {*_PLACE.findall(self.name)} - {TOPIC}
        if groups and self.topics:
            raise ValueError(f"name: {self.name} has a group of a pattern, and topics have none")
        for pattern in compile_patterns(self.topic_patterns):
            if missing := sorted(groups - pattern.group_names):
                raise ValueError(f"name: {pattern.text} has no group {missing[0]}")
        return self

    @model_validator(mode="after")
    def _has_no_columns_if_raw(self) -> Self:
        named = [n for n in OF_COLUMNS if getattr(self, n) != type(self).model_fields[n].default]
        if self.format == RAW and named:
            raise ValueError(
                f"names {', '.join(named)}, and raw records have no columns and none that are bad"
            )
        return self

    @model_validator(mode="after")
    def _has_schemas_that_may_be_at_fault(self) -> Self:
        if self.on_schema_fault != "wait" and not any(part.by_schema for part in self.parts):
            raise ValueError("names on_schema_fault, and no schema of a registry is read")
        return self

    @model_validator(mode="after")
    def _has_a_column_of_the_rest(self) -> Self:
        if self.new_fields == "ignore":
            return self
        if self.format != "json" or self.columns is None:
            raise ValueError("names new_fields, which only JSON with columns has")
        if any(column.name.casefold() == REST.name for column in self.as_read):
            raise ValueError(f"columns: {REST.name} is the column of new_fields")
        return self

    @model_validator(mode="after")
    def _has_events(self) -> Self:
        if self.envelope is None:
            return self
        if self.format not in {"json", "avro"}:
            raise ValueError("names an envelope, which only JSON and Avro have")
        if self.new_fields != "ignore":
            raise ValueError("names an envelope and new_fields: those of its rows are left out")
        try:
            _ = self.parsed
        except ValueError as exc:
            raise ValueError(f"columns: {exc}") from exc
        return self

    @field_validator("where", "delete_where")
    @classmethod
    def _are_comparisons(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for text in value:
            parse_comparison(text)
        return value

    @model_validator(mode="after")
    def _compares_columns(self) -> Self:
        for name in ("where", "delete_where"):
            for text in getattr(self, name):
                comparison = parse_comparison(text)
                if not self._is_of_subject(folded(comparison.path[0])):
                    try:
                        comparison.values(self.known)
                    except ValueError as exc:
                        raise ValueError(f"{name}: {text!r}: {exc}") from exc
        return self

    @model_validator(mode="after")
    def _has_rows_of_keys(self) -> Self:
        if self.mode == "append":
            if self.primary_key or self.sequence_by or self.delete_where:
                raise ValueError(
                    "names primary_key, sequence_by or delete_where, which mode upsert alone has"
                )
            return self
        if not self.primary_key:
            raise ValueError("mode: upsert needs a primary_key")
        if self.where:
            raise ValueError("mode: upsert with where: a change that is left out leaves an old row")
        if self.partition_by:
            raise ValueError("mode: upsert with partition_by: the day of a row is of its change")
        if self.mask is not None and OP.name in self.mask.rules:
            raise ValueError(f"mask: {OP.name} says what is done to a row, so it is not masked")
        if self.begin == "earliest":
            raise ValueError(
                "mode: upsert with begin: earlier changes could bring deleted rows back"
            )
        if self.envelope is None and any(folded(c.name) == OP.name for c in self.as_read):
            raise ValueError(f"columns: {OP.name} is the column of what was done to a row")
        names = [parse_path(path)[0] for path in (*self.primary_key, *self.sequence_by)]
        own = [name for name in names if folded(name) not in {KAFKA, KAFKA_KEY}]
        if self.tombstones == "row" and own:
            raise ValueError(
                f"tombstones: a record without a value has no {own[0]}, so it would not say which "
                "row it deletes, or when: set `skip` or `bad`, or take primary_key and sequence_by "
                "from the record's key and place alone (`_kafka.key`, `_kafka_key`)"
            )
        self.check_keys(self.known)
        return self

    def check_keys(self, columns: Columns) -> None:
        """Check the primary key and what changes are ordered by, where these columns are known.

        Raises:
            ValueError: There is no such column, its type has no order, or it is masked.
        """
        there = (Column(KAFKA, Struct(KEYS_OF_KAFKA)), *columns)
        ordered = (Column(KAFKA, Struct(MEASURED)), *columns)
        masks = {} if self.mask is None else self.mask.rules
        by_key = None if self.mask is None else self.mask.key
        for name, paths, within in (
            ("primary_key", self.primary_key, there),
            ("sequence_by", self.sequence_by, ordered),
        ):
            for path in paths:
                names = parse_path(path)
                first = folded(names[0])
                if columns == self.known and self._is_of_subject(first):
                    continue  # a column that is not known yet
                kind = type_at(within, names)
                if kind is None:
                    raise ValueError(f"{name}: there is no column {path}")
                if not (is_key(kind) if name == "primary_key" else has_order(kind)):
                    raise ValueError(f"{name}: {path} is {kind}, which is not compared")
                if name == "sequence_by" and kind == Simple("string"):
                    raise ValueError(
                        f"sequence_by: {path} is text, of which 9 is greater than 10: name a "
                        "number or a time; a column DECIMAL(38,0) takes numbers written as text"
                    )
                rule: object = by_key if first == KAFKA and names[-1] == "key" else masks
                for each in map(folded, names):
                    rule = rule.get(each) if isinstance(rule, Mapping) else rule
                if rule is not None:
                    raise ValueError(
                        f"{name}: {path} is masked: with another secret a key would have two rows"
                    )

    @model_validator(mode="after")
    def _masks_columns(self) -> Self:
        if self.mask is None:
            return self
        rules = self.mask.rules
        if self.format == RAW and rules.get("value") == DROP:
            raise ValueError("mask.fields: the value of a raw table can be null, not dropped")
        known = {name: rule for name, rule in rules.items() if not self._is_of_subject(name)}
        try:
            masked_columns(self.known, known)
        except ValueError as exc:
            raise ValueError(f"mask.fields: {exc}") from exc
        if (KAFKA_KEY in rules) != (self.key is not None and self.mask.key is not None):
            raise ValueError(
                "mask: a key that is decoded is in _kafka.key, which mask.key masks, and in "
                "_kafka_key, which mask.fields names: mask both or none"
            )
        return self

    @model_validator(mode="after")
    def _lays_out_columns(self) -> Self:
        if self.partition_by and self.cluster_by:
            raise ValueError("partition_by and cluster_by are set: Delta takes one of both")
        for path in (*self.cluster_by, *self.statistics):
            names = parse_path(path)
            if self._is_of_subject(names[0].casefold()):
                continue  # a column that is not known yet
            kind = type_at((Column(KAFKA, Struct(MEASURED)), *self.masked), names)
            if kind is None:
                raise ValueError(f"cluster_by, statistics: there is no column {path}")
            if not has_order(kind):
                raise ValueError(f"cluster_by, statistics: {path} is {kind}, which has no order")
        return self

    @property
    def parts(self) -> "tuple[DecodingSettings, ...]":
        """Return how each part of a record that is decoded is: its value, its key."""
        return (self,) if self.key is None else (self, self.key)

    @property
    def parsed(self) -> Columns:
        """Return the columns of values; none, if those of a subject are meant."""
        own = stored(self.as_read)
        if self.envelope is not None and own:
            return landed_columns(stored(self.of_values))
        own = own if self.new_fields == "ignore" else (*own, REST)
        return (*own, OP) if self.mode == "upsert" and self.envelope is None and own else own

    @property
    def of_values(self) -> Columns:
        """Return the columns of all that a value has; none, if those of a subject are meant."""
        own = self.as_read
        if self.envelope is None or not own:
            return own
        return event_columns(own, with_schema=self.format == "json")

    def _is_of_subject(self, name: str) -> bool:
        if name == KAFKA_KEY:
            return self.key is not None and self.key.by_subject
        return name not in OF_RECORD and self.format != RAW and not self.parsed

    @property
    def known(self) -> Columns:
        """Return those columns that no subject has, as records are decoded into them."""
        if self.format == RAW:
            return VALUE_OF_RAW
        key = None if self.key is None else self.key.column
        return self.parsed if key is None else (key, *self.parsed)

    @property
    def masked(self) -> Columns:
        """Return `known` as the table has them."""
        if self.mask is None:
            return self.known
        names = {folded(column.name) for column in self.known}
        return masked_columns(
            self.known, {name: rule for name, rule in self.mask.rules.items() if name in names}
        )

    @property
    def comparisons(self) -> tuple[Comparison, ...]:
        """Return what `where` says."""
        return tuple(map(parse_comparison, self.where))

    @property
    def deletions(self) -> tuple[Comparison, ...]:
        """Return what `delete_where` says."""
        return tuple(map(parse_comparison, self.delete_where))

    @property
    def table_columns(self) -> Columns:
        """Return the columns of the table, that of keys first; none, if some are of a subject."""
        return () if any(part.by_subject for part in self.parts) else self.masked

    @property
    def decoding(self) -> str:
        """Return all on which it depends what a record is decoded to, but for the registry."""
        key = "" if self.key is None else f"; key {self.key.decoding}"
        tombstones = "" if self.tombstones == "row" else f"; tombstones {self.tombstones}"
        widen = "; widen" if self.widen else ""
        new_fields = "" if self.new_fields == "ignore" else f"; new_fields {self.new_fields}"
        where = f"; where {' and '.join(self.where)}" if self.where else ""
        envelope = "" if self.envelope is None else f"; envelope {self.envelope}"
        parts = f"{super().decoding}{key}{tombstones}{widen}{new_fields}{where}{envelope}"
        return parts + self.keying

    @property
    def keying(self) -> str:
        """Return how records are changes of rows, which `decoding` ends with; "": they are rows."""
        if self.mode == "append":
            return ""
        sequence = f"; by {', '.join(self.sequence_by)}" if self.sequence_by else ""
        deletes = f"; delete {' and '.join(self.delete_where)}" if self.delete_where else ""
        return f"; upsert {', '.join(self.primary_key)}{sequence}{deletes}"

    @property
    def masking(self) -> str:
        """Return all on which it depends what is masked; "": nothing is."""
        return "" if self.mask is None else self.mask.text

    @cached_property
    def _named(self) -> frozenset[str]:
        return frozenset(self.topics)

    @cached_property
    def _patterns(self) -> tuple[Pattern, ...]:
        return compile_patterns(self.topic_patterns)

    def names(self, topic: str) -> bool:
        """Whether this topic is one of `topics`; cheap, however many there are."""
        return topic in self._named

    def matches(self, topic: str) -> bool:
        """Whether a pattern matches this topic."""
        return any(pattern.matches(topic) for pattern in self._patterns)

    def table_name(self, topic: str) -> str:
        """Return the template's name of a topic's table; it may not be a valid one.

        Args:
            topic: One of `topics`, or one that a pattern matches.
        """
        places = {TOPIC: topic}
        if {*_PLACE.findall(self.name)} - {TOPIC}:
            matches = (p.groups(topic) for p in self._patterns)
            places = {**next(groups for groups in matches if groups is not None), **places}
        return _PLACE.sub(lambda place: places[place[1]], self.name)


def _is_schema(columns: str) -> bool:
    """Return whether a text of columns is a JSON Schema."""
    return columns.lstrip().startswith("{")


@lru_cache(maxsize=1_000)
def _columns_of(text: str) -> Columns:
    return JsonSchema(text, is_whole=True).columns if _is_schema(text) else parse_columns(text)


def is_key(kind: ColumnType) -> bool:
    """Return whether values of a type can tell rows apart."""
    if isinstance(kind, Simple):
        return kind.name not in {"float", "double", VARIANT}
    return isinstance(kind, Decimal)


def _has_parts(kind: ColumnType) -> bool:
    return not isinstance(kind, Simple | Decimal)
