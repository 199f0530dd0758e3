"""`binwright audit`: does every record of the topics have one row in the tables, and its values?"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from prometheus_client import CollectorRegistry, write_to_textfile
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from binwright.cli.embedded_spark import running_lake
from binwright.cli.options import Bootstrap, Json, Lake, Spark, settings_at
from binwright.cli.runner import progress_console, run_for_result, split, working_directory
from binwright.cli.terminal import Console, print_json, print_page
from binwright.inspect.audit import AuditResult, OtherTable, PartitionAudit, TableAudit
from binwright.inspect.audit import audit as compare_offsets
from binwright.inspect.decide.differences import Comparison
from binwright.inspect.decide.record_columns import parse_record_columns
from binwright.inspect.keyed_tables import audit_keyed_table
from binwright.inspect.left_out import LeftOutRecords
from binwright.inspect.metrics import audit_samples
from binwright.inspect.table_lookup import targets_named
from binwright.inspect.topic_extents import open_topic_extents
from binwright.inspect.values import Reader, compare_values
from binwright.kafka.topics import selected_topics
from binwright.lake.lake_reader import reader_of
from binwright.protocol.errors import SettingsError, UserError
from binwright.runtime.clock import wall_ms
from binwright.runtime.exposition import Samples
from binwright.runtime.run import EXIT_FAILED, EXIT_OK
from binwright.runtime.settings.consumer import LakeSettings, absolute
from binwright.runtime.settings.group import Settings
from binwright.tables.targets import Target

LISTED = 20  # differences
SAMPLE = 1_000  # records of a table

Question = Literal["offsets", "values", "both"]
Values = Mapping[str, Mapping[str, Comparison]]
"""Table -> topic -> how its values compare."""


@dataclass(frozen=True, slots=True)
class Audited:
    """What was found; None: it was not asked."""

    offsets: AuditResult | None
    values: Values | None

    @property
    def clean(self) -> bool:
        """Whether every record has one row, and no value differs."""
        comparisons = (each for topics in (self.values or {}).values() for each in topics.values())
        return (self.offsets is None or self.offsets.clean) and not any(
            each.differences for each in comparisons
        )

    def to_json(self) -> dict[str, Any]:
        """Return everything as plain values, with the verdicts."""
        result = {} if self.offsets is None else self.offsets.to_json()
        if self.values is not None:
            result["values"] = {
                table: {topic: asdict(each) for topic, each in topics.items()}
                for table, topics in self.values.items()
            }
        return result | {"clean": self.clean}

    def pages(self) -> list[RenderableType]:
        """Return tables, remarks and faults in words."""
        pages = [] if self.offsets is None else [table(self.offsets)]
        for name, topics in (self.values or {}).items():
            for topic, comparison in topics.items():
                pages.append(
                    differences(name if len(topics) == 1 else f"{name}: {topic}", comparison)
                )
        return pages


@dataclass(frozen=True, slots=True)
class Audit:
    """The options of one audit; what is None comes from the settings.

    Spark is embedded where neither the options nor the settings name a server.
    """

    console: Console
    directory: Path
    topics: tuple[str, ...]
    bootstrap_servers: str | None
    spark: str | None
    lake: str | None
    strict: bool = False
    table: str | None = None  # only this one
    question: Question = "offsets"
    records: int = SAMPLE  # of a table, whose values are compared
    reader: Reader = "spark"
    columns: str | None = None  # of `table`, which is the path of a table that others wrote
    metrics_file: Path | None = None

    async def run(self) -> Audited:
        """Compare tables and topics.

        Raises:
            UserError: There is no such table, it is of another kind than the settings make it, or
                has no such columns.
            SettingsError: No topic is named, no topic fits the patterns, or the reader is not
                installed.
            ExternalError: Kafka or Spark does not answer, or a topic does not exist.
        """
        if self.metrics_file is not None and self.question == "values":
            raise UserError("--metrics-file: metrics are of offsets, and only values are compared")
        audited = await self._compare()
        if self.metrics_file is not None and audited.offsets is not None:
            _write_metrics(self.metrics_file, audited.offsets)
        return audited

    async def _compare(self) -> Audited:
        settings = settings_at(
            self.bootstrap_servers, topics=self.topics, lake=self.lake, spark=self.spark
        )
        other = self._other()
        targets = [] if other is not None else await self._targets(settings)
        if self.question == "values" and self.reader == "deltalake":  # without Spark
            return Audited(None, await self._values(settings, settings.lake, targets))
        topics = list(dict.fromkeys(target.topic for target in targets)) or list(self.topics)
        # Before Spark: an embedded one takes 15 s to start.
        async with open_topic_extents(settings.kafka, settings.consumer.isolation) as extents:
            for topic in topics:
                await extents.bounds(topic)
        async with running_lake(self.directory, self.console.log, settings) as lake:
            if self.question == "values":
                return Audited(None, await self._values(settings, lake, targets))
            appended = [target for target in targets if not target.has_keys]
            offsets = await compare_offsets(
                topics,
                settings.kafka,
                lake,
                isolation=settings.consumer.isolation,
                strict=self.strict,
                tables_of=lambda topic: [t.name for t in appended if t.topic == topic],
                left_out_of=lambda *table: LeftOutRecords(settings, *table),
                other=other,
            )
            keyed = [target for target in targets if target.has_keys]
            offsets = AuditResult(tables=(*offsets.tables, *await _keyed(settings, lake, keyed)))
            if self.question == "offsets":
                return Audited(offsets, None)
            there = {each.name for each in offsets.tables if each.exists}
            landed = [target for target in appended if target.name in there]
            return Audited(offsets, await self._values(settings, lake, landed))

    def _other(self) -> OtherTable | None:
        """Return the table that others wrote, if the options name one."""
        if self.columns is None:
            if "/" in (self.table or ""):
                raise UserError(
                    f"--table: {self.table} is no name of a table; of a table that others wrote, "
                    "name the path and the --columns"
                )
            return None
        columns = parse_record_columns(self.columns)
        if self.table is None or not self.topics:
            raise UserError("--columns: name the table's path with --table, and its --topic")
        if columns.topic is None and len(self.topics) > 1:
            raise UserError("--columns: names no topic, and the table has several")
        if self.question != "offsets":
            raise UserError("--compare: of a table that others wrote, only offsets are compared")
        return OtherTable(absolute(self.table), columns)

    async def _targets(self, settings: Settings) -> Sequence[Target]:
        """Return each topic with each of its tables."""
        if self.table is not None:
            return await targets_named(settings, self.table)
        if settings.landed_topics is None:
            raise SettingsError("no topics: name them with --topics, or topics = […] in the file")
        topics = await selected_topics(settings.kafka, settings.landed_topics)
        return [target for topic in topics for target in settings.targets(topic)]

    async def _values(
        self, settings: Settings, lake: LakeSettings, targets: Sequence[Target]
    ) -> Values:
        by_name = attrgetter("name")
        return {
            name: await compare_values(settings, lake, list(own), self.records, self.reader)
            for name, own in groupby(sorted(targets, key=by_name), by_name)
        }


async def _keyed(
    settings: Settings, lake: LakeSettings, targets: Sequence[Target]
) -> Sequence[TableAudit]:
    """Compare tables of keys with their topics."""
    by_name, audits = attrgetter("name"), list[TableAudit]()
    for name, own in groupby(sorted(targets, key=by_name), by_name):
        async with (
            open_topic_extents(settings.kafka, settings.consumer.isolation) as extents,
            reader_of(lake, name) as reader,
        ):
            path = lake.table_path(name)
            audits += await audit_keyed_table(settings, [*own], extents, reader, path)
    return audits


def table(result: AuditResult) -> RenderableType:
    """Return a line for each partition, then remarks and faults in words."""
    rows = Table("partition", "start", "end", "rows", "lost", "surplus", "verdict")
    for each in result.tables:
        for part in each.partitions:
            lost = part.lost + part.lost_to_retention
            numbers = (part.start, part.end, part.rows, lost, part.surplus)
            rows.add_row(each.partition(part), *map(str, numbers), _verdict(each, part))
    faults = (Text(fault, style="red") for fault in result.faults())
    return Group(rows, *(Text(remark) for remark in result.remarks()), *faults)


def _write_metrics(path: Path, result: AuditResult) -> None:
    """Write the numbers of an audit as metrics, in place of a file of before.

    Raises:
        UserError: It cannot be written.
    """
    registry = CollectorRegistry()
    registry.register(Samples(lambda: audit_samples(result, wall_ms() / 1000)))
    try:
        write_to_textfile(str(path), registry)
    except OSError as exc:
        raise UserError(f"--metrics-file: {exc}") from exc


def _verdict(table: TableAudit, part: PartitionAudit) -> str:
    if not part.clean:
        return "[red]NOT CLEAN"
    return "[yellow]UNCHECKED" if table.unchecked else "[green]clean"


def differences(name: str, comparison: Comparison) -> RenderableType:
    """Return a line for each difference of values, and the counts in words."""
    lines = [f"{name}: {comparison.compared} records compared, {comparison.bad} of them bad ones"]
    if comparison.waiting:
        lines.append(f"{name}: {comparison.waiting} records have not landed")
    if comparison.erased:
        lines.append(f"{name}: {comparison.erased} records were erased, as a person has ordered")
    if comparison.mended:
        lines.append(f"{name}: {comparison.mended} landed as bad records, and would be rows now")
    if not comparison.differences:
        return Group(*map(Text, lines))
    rows = Table("partition", "offset", "column", "in Kafka", "in the table")
    for each in comparison.differences[:LISTED]:
        place = (f"{name}-{each.partition}", str(each.offset))
        rows.add_row(*place, each.column, each.kafka, each.table)
    lines.append(f"{name}: {len(comparison.differences)} values differ")
    return Group(rows, *map(Text, lines))


def command(
    *,
    topics: Annotated[
        str,
        typer.Option(
            "--topics", "--topic", help="Topics, separated by commas; else the settings'."
        ),
    ] = "",
    table: Annotated[
        str | None,
        typer.Option(
            help="Only this table, by its name; else all of the topics'. With --columns: its path."
        ),
    ] = None,
    columns: Annotated[
        str | None,
        typer.Option(
            metavar="partition=COLUMN,offset=COLUMN",
            help="Of a table that others wrote: where each row has its record's partition and "
            "offset, perhaps in a struct (meta.offset). With topic=COLUMN, if it has several.",
        ),
    ] = None,
    compare: Annotated[
        Question,
        typer.Option(
            help="Offsets: has each record one row? Values: of a sample, has its row its values?"
        ),
    ] = "offsets",
    records: Annotated[
        int, typer.Option(min=1, help="Records of a table whose values are compared, about.")
    ] = SAMPLE,
    reader: Annotated[
        Reader,
        typer.Option(help="What reads values; deltalake needs no Spark, if values are all."),
    ] = "spark",
    bootstrap_servers: Bootstrap = None,
    spark: Spark = None,
    lake: Lake = None,
    strict: Annotated[
        bool,
        typer.Option(
            "--strict",
            help="Take every offset that has no row and that the topic no longer keeps for lost.",
        ),
    ] = False,
    metrics_file: Annotated[
        Path | None,
        typer.Option(
            help="Also write what is missing, doubled and strange as metrics, for the textfile "
            "collector of Prometheus' node exporter."
        ),
    ] = None,
    json_: Json = False,
) -> None:
    """Compare the tables with the topics: every record exactly once, with its values?

    Exit code 1 if not.
    """
    console = progress_console(json_=json_)
    with working_directory(None) as directory:
        options = Audit(
            *(console, directory, split(topics), bootstrap_servers, spark, lake),
            strict=strict,
            table=table,
            question=compare,
            records=records,
            reader=reader,
            columns=columns,
            metrics_file=metrics_file,
        )
        audited = run_for_result(options.run)
    if json_:
        print_json(audited.to_json())
    else:
        for page in audited.pages():
            print_page(console, page)
    raise typer.Exit(EXIT_OK if audited.clean else EXIT_FAILED)
