"""The columns of our tables, and how those of a table that exists differ from them."""

from collections.abc import Iterator
from dataclasses import dataclass

from pyspark.sql.types import ArrayType, DataType, MapType, StringType, StructType

from binwright.consumer.decide.widening import type_there, widens
from binwright.consumer.stage.parquet import COLUMNS
from binwright.protocol.errors import TableRefused
from binwright.tables.columns import (
    KAFKA,
    KAFKA_DATE,
    MEASURED,
    Array,
    Column,
    Columns,
    ColumnType,
    Map,
    Simple,
    Struct,
    parse_columns,
    quoted,
)

RECORD_COLUMNS = parse_columns(", ".join(f"{name} {kind}" for name, kind in COLUMNS.items()))
"""A record as it is in Kafka, of a raw table."""
PLACE = tuple(column for column in RECORD_COLUMNS if column.name != "value")
"""All of a record but its value."""
KAFKA_COLUMN = Column(KAFKA, Struct(PLACE))
DATE_COLUMN = Column(KAFKA_DATE, Simple("date"))
BAD_COLUMNS = (
    KAFKA_COLUMN,
    *parse_columns(
        "topic_id string, kind string, reason string, value binary, landed_at timestamp"
    ),
)
STATISTICS = tuple(column.name for column in MEASURED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """The columns of one kind of table, in order of creation."""

    required: Columns  # a table without one of them is refused
    partitions: Columns = ()  # by which it is created, behind those
    added: Columns = ()  # a table without one of them gets it
    statistics: tuple[str, ...] = tuple(f"{KAFKA}.{name}" for name in STATISTICS)


RAW = Layout(required=RECORD_COLUMNS, statistics=STATISTICS)
BAD = Layout(required=BAD_COLUMNS)


def layout_of(columns: Columns | None, *, by_date: bool = False) -> Layout:
    """Return the layout of a topic's table whose values have these columns; None: raw records."""
    if columns is None:
        return RAW
    partitions = (DATE_COLUMN,) if by_date else ()
    return Layout(required=(KAFKA_COLUMN,), partitions=partitions, added=columns)


@dataclass(frozen=True, slots=True)
class Difference:
    """A column, or a field within one, that a table has not, or has with another type."""

    name: str  # as SQL takes it: `a.b`, `list.element.b`, `map.value.b`
    wanted: ColumnType
    actual: str | None  # None: the table has none of this name

    def __str__(self) -> str:
        return f"{self.name} {self.wanted} (there: {self.actual or 'none'})"

    @property
    def widens(self) -> bool:
        """Whether Delta can give the table's column the type that is wanted."""
        there = type_there(self.actual)
        return there is not None and widens(there, self.wanted)

    @property
    def fits(self) -> bool:
        """Whether the table's column holds all values of the type that is wanted."""
        there = type_there(self.actual)
        return there is not None and widens(self.wanted, there)


def differences(columns: Columns, there: StructType, prefix: str = "") -> Iterator[Difference]:
    """Yield how a table differs from these columns, which may be fewer than it has.

    Names are compared as Spark does, whatever their case.
    """
    fields = {field.name.lower(): field for field in there.fields}
    for column in columns:
        name = prefix + quoted(column.name)
        if (field := fields.get(column.name.lower())) is None:
            yield Difference(name, column.type, None)
        else:
            yield from _type_differences(name, column.type, field.dataType)


def _type_differences(name: str, wanted: ColumnType, there: DataType) -> Iterator[Difference]:
    match wanted, there:
        case Struct(fields), StructType():
            yield from differences(fields, there, f"{name}.")
        case Array(item), ArrayType():
            yield from _type_differences(f"{name}.element", item, there.elementType)
        case Map(value), MapType(keyType=StringType()):
            yield from _type_differences(f"{name}.value", value, there.valueType)
        case _ if str(wanted) != there.simpleString():
            yield Difference(name, wanted, there.simpleString())


def check_layout(path: str, layout: Layout, there: StructType) -> None:
    """Raise `TableRefused` unless the table takes our rows; it may have more, nullable columns."""
    names = {field.name.lower() for field in there.fields}
    is_raw, wants_raw = KAFKA not in names, layout.required == RECORD_COLUMNS
    if wants_raw and not is_raw:
        raise TableRefused(
            f"the table at {path} has a column {KAFKA}, so it is one of columns, and no entry of "
            "`tables` names its topic. Add one, move the table away, or name another lake "
            "(--lake, or lake.path)"
        )
    if is_raw and not wants_raw:
        raise TableRefused(
            f"the table at {path} has no column {KAFKA}, so it is one of raw records, and an entry "
            "of `tables` names its topic. Take it out there, move the table away, or name another "
            "lake (--lake, or lake.path)"
        )
    filled = {column.name.lower() for column in layout.required}
    faults = [*map(str, differences(layout.required, there))]
    faults += [
        f"{field.name} may not be NOT NULL: we may have nothing to put there"
        for field in there.fields
        if field.name.lower() not in filled and not field.nullable
    ]
    if faults:
        raise TableRefused(
            f"the table at {path} has other columns than ours: {'; '.join(faults)}. Move it away, "
            "or name another lake (--lake, or lake.path)"
        )


def check_still_there(path: str, columns: Columns, there: StructType) -> None:
    """Raise `TableRefused` where a table lacks columns that it had: somebody altered it."""
    gone = [each.name for each in differences(columns, there) if each.actual is None]
    if not gone:
        return
    ours = {column.name.lower() for column in columns}
    others = [quoted(f.name) for f in there.fields if f.name.lower() not in ours]
    instead = f"; it has {', '.join(others)}, which is not ours" if others else ""
    raise TableRefused(
        f"the table at {path} no longer has {', '.join(gone)}: renamed, or dropped{instead}. A "
        "column of the settings or of a schema is added again; name the new one there instead"
    )


def missing_columns(
    path: str, columns: Columns, there: StructType, *, widen: bool = False
) -> tuple[Difference, ...]:
    """Return what a table lacks of these columns, and what is to be widened.

    Raises:
        TableRefused: A type differs, and may not be widened.
    """
    missing = tuple(each for each in differences(columns, there) if not (widen and each.fits))
    wrong = [e for e in missing if e.actual is not None and not (widen and e.widens)]
    if wrong:
        hint = "set `widen`, or " if not widen and all(each.widens for each in wrong) else ""
        raise TableRefused(
            f"the table at {path} has columns of other types: {'; '.join(map(str, wrong))}. "
            f"Values are not converted: {hint}name the table's types in `tables`, or other "
            "columns, or move the table away"
        )
    return missing
