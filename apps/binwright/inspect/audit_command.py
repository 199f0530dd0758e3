"""`binwright audit`: does every record of the topics have one row in the tables?"""

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from binwright.cli.embedded_spark import running_lake
from binwright.cli.options import Bootstrap, Json, Lake, Spark, Topics, settings_at
from binwright.cli.runner import progress_console, run_for_result, split, working_directory
from binwright.cli.terminal import Console, print_page
from binwright.inspect.audit import AuditResult, PartitionAudit, TableAudit
from binwright.inspect.audit import audit as compare
from binwright.inspect.topic_extents import open_topic_extents
from binwright.kafka.topics import selected_topics
from binwright.protocol.errors import SettingsError
from binwright.runtime.run import EXIT_FAILED, EXIT_OK


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

    async def run(self) -> AuditResult:
        """Compare tables and topics.

        Raises:
            SettingsError: No topic is named, or no topic fits the patterns.
            ExternalError: Kafka or Spark does not answer, or a topic does not exist.
        """
        settings = settings_at(
            self.bootstrap_servers, topics=self.topics, lake=self.lake, spark=self.spark
        )
        if settings.landed_topics is None:
            raise SettingsError("no topics: name them with --topics, or topics = […] in the file")
        topics = await selected_topics(settings.kafka, settings.landed_topics)
        isolation = settings.consumer.isolation
        # Before Spark: an embedded one takes 15 s to start.
        async with open_topic_extents(settings.kafka, isolation) as extents:
            for topic in topics:
                await extents.bounds(topic)
        async with running_lake(self.directory, self.console.log, settings) as lake:
            return await compare(
                topics,
                settings.kafka,
                lake,
                isolation=isolation,
                strict=self.strict,
                tables_of=lambda topic: [target.name for target in settings.targets(topic)],
            )


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


def _verdict(table: TableAudit, part: PartitionAudit) -> str:
    if not part.clean:
        return "[red]NOT CLEAN"
    return "[yellow]UNCHECKED" if table.unchecked else "[green]clean"


def command(
    *,
    topics: Topics = "",
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
    json_: Json = False,
) -> None:
    """Compare the tables with the topics: every offset exactly once? Exit code 1 if not."""
    console = progress_console(json_=json_)
    with working_directory(None) as directory:
        options = Audit(console, directory, split(topics), bootstrap_servers, spark, lake, strict)
        result = run_for_result(options.run)
    if json_:
        sys.stdout.write(json.dumps(result.to_json(), indent=2) + "\n")
    else:
        print_page(console, table(result))
    raise typer.Exit(EXIT_OK if result.clean else EXIT_FAILED)
