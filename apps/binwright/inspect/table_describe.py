"""`binwright table describe`: all that is known of one table."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

from rich.console import Group as Lines
from rich.console import RenderableType
from rich.text import Text

from binwright.cli.options import Bootstrap, Group, Json, Lake, Spark, TableName, settings_at
from binwright.cli.runner import progress_console, run_for_result, working_directory
from binwright.cli.terminal import (
    TerminalColumn,
    count,
    data_size,
    fitting_table,
    page_console,
    print_json,
    print_page,
)
from binwright.inspect.decide.table_facts import Facts, reader_features, shut_out
from binwright.inspect.schema_notes import schema_notes
from binwright.inspect.table_list import age, number
from binwright.inspect.table_lookup import (
    Listed,
    Targets,
    group_status,
    known_targets,
    listed,
    read_tables,
)
from binwright.inspect.table_reading import Details, read_details
from binwright.look.table_status import PartitionStatus, check_known, topics_text
from binwright.look.work_texts import operation_text
from binwright.protocol.errors import LakeUnavailable
from binwright.protocol.names import BAD_SUFFIX
from binwright.runtime.settings.group import Settings
from binwright.tables.columns import REST
from binwright.tables.settings import DecodingSettings, KeySettings


@dataclass(frozen=True, slots=True)
class Entry:
    """What the settings have of a table."""

    schema_source: str
    columns: Mapping[str, str]  # name -> type; none: raw records, or those of the registry
    delimiter: str | None  # of CSV
    message: str | None  # of Protobuf, if the settings name one
    key: str  # how keys become columns; empty: they do not
    new_fields: str  # what becomes of fields that no column has; empty: no values have any
    tombstones: str  # what becomes of a record without a value
    partition_by: str | None
    cluster_by: tuple[str, ...]
    statistics: tuple[str, ...]
    bad_share: float | None  # above which the table stops; None: no record can be bad
    keep_days: float  # of rows; 0: for ever
    envelope: str | None = None  # what is around the row of a value
    primary_key: tuple[str, ...] = ()  # of which each has one row; none: each record has one
    sequence_by: tuple[str, ...] = ()  # by which changes of a key are ordered


@dataclass(frozen=True, slots=True)
class TableDescription:
    """One table."""

    listed: Listed
    settings: Entry
    partitions: tuple[PartitionStatus, ...]
    details: Details | None  # None: there is no table
    notes: tuple[str, ...] = ()  # which fields have no column of their own, and why

    def to_json(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        table = None
        if self.details is not None:
            features = self.details.features
            table = asdict(self.details) | {
                "reader_features": reader_features(features),
                "shut_out": shut_out(features),
            }
        return asdict(self.listed) | {
            "settings": asdict(self.settings),
            "notes": [*self.notes],
            "partitions": [asdict(each) for each in self.partitions],
            "table": table,
        }


def entry_of(settings: Settings, targets: Targets) -> Entry:
    """Return what the settings have of a table."""
    target, topics = targets[0], [target.topic for target in targets]
    keep_days = settings.keep_days(target)
    if (table := target.decoded) is None:
        none = "none: records land as they are"
        return Entry(none, {}, None, None, "", "", "row", None, (), (), None, keep_days)
    source = f"all versions of {_subjects(table, topics)}, {settings.registry.url}"
    own = f"the entry of {topics_text(topics)} in the settings"
    return Entry(
        schema_source=source if table.by_subject else own,
        columns={column.name: str(column.type) for column in table.masked},
        delimiter=table.delimiter if table.format == "csv" else None,
        message=table.message,
        key=_key(table.key, topics),
        new_fields=table.new_fields if table.format == "json" and not table.by_schema else "",
        tombstones=table.tombstones,
        partition_by=table.partition_by,
        cluster_by=table.cluster_by,
        statistics=table.statistics,
        bad_share=table.bad_share,
        keep_days=keep_days,
        envelope=table.envelope,
        primary_key=table.primary_key,
        sequence_by=table.sequence_by,
    )


_NEW_FIELDS = {
    "rest": f"kept in {REST.name}",
    "add": f"get a column, or are kept in {REST.name}",
}


def _key(key: KeySettings | None, topics: Sequence[str]) -> str:
    if key is None:
        return ""
    source = f", all versions of {_subjects(key, topics)}" if key.by_subject else ""
    return f"{key.format}{source}"


def _subjects(of: DecodingSettings, topics: Sequence[str]) -> str:
    return topics_text([*dict.fromkeys(map(of.subject_of, topics))])


def drawn(of: TableDescription, width: int) -> RenderableType:
    """Return a page of `width` characters."""
    facts = "\n".join(f"{name and name + ':':<15} {text}" for name, text in _facts(of) if text)
    parts: list[RenderableType] = [Text(facts)]
    if of.partitions:
        parts += [Text(), _partitions(of.partitions, width)]
    if of.details is not None:
        parts += [Text(), _columns(of.details, of.settings, width), Text(), _commits(of, width)]
        if of.details.bad_records:
            parts += [Text(), _bad_records(of.details, width)]
    return Lines(*parts)


def _facts(of: TableDescription) -> Iterator[tuple[str, str]]:
    table, entry, details = of.listed, of.settings, of.details
    yield "table", f"{table.name} at {table.path}"
    several = len(table.topics) > 1
    yield "topics" if several else "topic", "" if table.topic == table.name else table.topic
    yield "state", f"{table.state}{f': {table.reason}' if table.reason else ''}"
    yield "format", table.format + (f", delimiter {entry.delimiter!r}" if entry.delimiter else "")
    yield "schema from", entry.schema_source
    yield "message", entry.message or ""
    for place, note in enumerate(of.notes):
        yield "" if place else "fields", note
    yield "key", entry.key
    yield "new fields", _NEW_FIELDS.get(entry.new_fields, "")
    keys = ", ".join(entry.primary_key)
    order = f", by {', '.join(entry.sequence_by)}" if entry.sequence_by else ""
    yield "one row of", f"each {keys}: its newest change{order}" if keys else ""
    yield "envelope", entry.envelope or ""
    yield "tombstones", "" if entry.tombstones == "row" else entry.tombstones
    yield "partition by", entry.partition_by or ""
    yield "cluster by", ", ".join(entry.cluster_by)
    yield "statistics", ", ".join(entry.statistics)
    yield "bad records", _policy(table, entry)
    yield "in _rest" if entry.new_fields == "add" else "left out", ", ".join(table.new_fields)
    yield "rows kept", f"{entry.keep_days:g} days" if entry.keep_days else ""
    yield "newest row", age(table.freshness_s)
    yield "last work", "" if table.operation is None else operation_text(table.operation)
    lag = sum(each.lag for each in of.partitions)
    yield "lag", count(lag, "record") if of.partitions else ""
    if details is not None:
        size = f"{count(details.files, 'file')}, {data_size(details.bytes)}"
        yield "rows", f"{number(table.rows)} in {size}, version {table.version}"
        kinds = (f"{number} {kind}" for kind, number in details.bad_kinds.items())
        yield "bad rows", ", ".join(kinds) or ("" if table.bad is None else "0")
        yield "paused", details.paused
        protocol = f"reader {details.reader_version}, writer {details.writer_version}"
        yield "Delta", f"{protocol}: {', '.join(details.features) or 'no features by name'}"
        needed = ", ".join(reader_features(details.features))
        yield "readers need", needed
        yield "shut out", "; ".join(shut_out(details.features))
        yield "clustered by", ", ".join(details.clustered_by)
        yield "statistics of", ", ".join(details.statistics)


def _policy(table: Listed, entry: Entry) -> str:
    if entry.bad_share is None:
        return ""
    place = f"land in {table.path}{BAD_SUFFIX}"
    if entry.bad_share == 1:
        return f"{place}, however many"
    return f"{place}; the table stops above a share of {entry.bad_share:g}"


def _partitions(partitions: Sequence[PartitionStatus], width: int) -> RenderableType:
    several = len({each.topic for each in partitions}) > 1
    columns = [
        TerminalColumn("topic", "left", fold=True, shown=several),
        *map(TerminalColumn, ("partition", "reader", "staged", "landed", "end", "lag")),
    ]
    rows = (
        (
            each.topic,
            str(each.partition),
            "none" if each.reader is None else str(each.reader),
            number(each.staged),
            number(each.committed),
            number(each.end),
            number(each.lag),
        )
        for each in partitions
    )
    return fitting_table(columns, rows, width)


def _columns(details: Details, entry: Entry, width: int) -> RenderableType:
    columns = (
        TerminalColumn("column", "left", fold=True),
        TerminalColumn("in the table", "left", fold=True),
        TerminalColumn("in the settings", "left", fold=True),
    )
    wanted = {name.casefold(): kind for name, kind in entry.columns.items()}
    there = details.columns
    rows = [(name, kind, wanted.pop(name.casefold(), "")) for name, kind in there.items()]
    rows += [(name, "", kind) for name, kind in entry.columns.items() if name.casefold() in wanted]
    return fitting_table(columns, rows, width)


def _commits(of: TableDescription, width: int) -> RenderableType:
    columns = (
        TerminalColumn("version"),
        TerminalColumn("committed (UTC)", "left"),
        TerminalColumn("operation", "left"),
        TerminalColumn("rows"),
        TerminalColumn("files"),
    )
    rows = (
        (
            str(each.version),
            f"{datetime.fromtimestamp(each.at_ms / 1000, UTC):%Y-%m-%d %H:%M:%S}",
            each.operation,
            number(each.rows),
            number(each.files),
        )
        for each in (of.details.commits if of.details else ())
    )
    return fitting_table(columns, rows, width)


def _bad_records(details: Details, width: int) -> RenderableType:
    columns = (
        TerminalColumn("bad: partition"),
        TerminalColumn("offset"),
        TerminalColumn("kind", "left"),
        TerminalColumn("reason", "left", fold=True),
    )
    rows = (
        (str(each.partition), number(each.offset), each.kind, each.reason)
        for each in details.bad_records
    )
    return fitting_table(columns, rows, width)


def command(
    table: TableName,
    *,
    group: Group = None,
    bootstrap_servers: Bootstrap = None,
    spark: Spark = None,
    lake: Lake = None,
    json_: Json = False,
) -> None:
    """Show one table: settings, partitions, columns, readers shut out, commits, bad records."""
    settings = settings_at(bootstrap_servers, group=group, lake=lake, spark=spark)
    console = progress_console(json_=json_)

    async def work() -> TableDescription:
        tables = {each.name: each for each in (await group_status(settings)).tables}
        targets = known_targets(settings, tables.values())
        check_known(settings.group, table, targets)
        read = (await read_tables(settings, [table], read_details, (directory, console)))[table]
        if isinstance(read, LakeUnavailable):
            raise read
        facts: Facts | None
        facts, details = read or (None, None)
        reported = tables.get(table)
        partitions = () if reported is None else reported.partitions
        line = listed(settings, targets[table], reported, facts)
        notes = await schema_notes(settings.registry, targets[table])
        return TableDescription(
            line, entry_of(settings, targets[table]), partitions, details, notes
        )

    with working_directory(None) as directory:
        description = run_for_result(work)
    if json_:
        print_json(description.to_json())
    else:
        page = page_console()
        print_page(page, drawn(description, page.width))
