"""`binwright audit`: are all records in the tables, each once?"""

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from binwright.cli.options import Bootstrap, Json, Spark, Topics
from binwright.cli.stack import servers
from binwright.cli.work import result, split, workplace
from binwright.core.errors import SettingsError
from binwright.lab.audit import AuditResult, PartitionAudit, TableAudit
from binwright.lab.audit import audit as compare
from binwright.shell.logs import configure
from binwright.shell.run import EXIT_FAILED, EXIT_OK
from binwright.shell.settings import Settings, load_settings
from binwright.shell.topics import selected_topics


@dataclass(frozen=True, slots=True)
class Audit:
    """What is asked for; what is None comes from the settings, a Spark server is embedded."""

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
            SettingsError: No topic is named, and there is none that fits.
            WorldError: Kafka or Spark does not answer.
        """
        settings = self._settings()
        if settings.landed is None:
            raise SettingsError("no topics: name them with --topics, or topics = […] in the file")
        topics = await selected_topics(settings.kafka, settings.landed)
        async with servers(
            self.directory,
            self.console.log,
            bootstrap_servers=settings.kafka.bootstrap_servers,
            spark=self.spark,
        ) as found:
            lake = settings.lake.model_copy(update={"spark": found.spark})
            isolation = settings.consumer.isolation
            return await compare(
                topics, settings.kafka, lake, isolation=isolation, strict=self.strict
            )

    def _settings(self) -> Settings:
        given = {"topics": self.topics, "topic_patterns": ()} if self.topics else {}
        read = load_settings(**given)
        kafka, lake = read.kafka, read.lake
        if self.bootstrap_servers is not None:
            kafka = kafka.model_copy(update={"bootstrap_servers": self.bootstrap_servers})
        if self.lake is not None:
            lake = type(lake)(**{**lake.model_dump(), "path": self.lake})
        return read.model_copy(update={"kafka": kafka, "lake": lake})


def table(found: AuditResult) -> RenderableType:
    """Return what was found, a line for each partition, and what is wrong in words."""
    rows = Table("partition", "start", "end", "rows", "lost", "surplus", "verdict")
    for each in found.tables:
        for part in each.partitions:
            lost = part.lost + part.lost_to_retention
            numbers = (part.start, part.end, part.rows, lost, part.surplus)
            rows.add_row(f"{each.topic}-{part.partition}", *map(str, numbers), _verdict(each, part))
    faults = (Text(fault, style="red") for fault in found.faults())
    return Group(rows, *(Text(remark) for remark in found.remarks()), *faults)


def _verdict(table: TableAudit, part: PartitionAudit) -> str:
    if not part.clean:
        return "[red]NOT CLEAN"
    return "[yellow]UNCHECKED" if table.unchecked else "[green]clean"


def command(  # noqa: PLR0913 - one parameter for each option
    *,
    topics: Topics = "",
    bootstrap_servers: Bootstrap = None,
    spark: Spark = None,
    lake: Annotated[str | None, typer.Option(help="Where the tables are.")] = None,
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
    configure("error", "console")
    console = Console(stderr=json_, log_path=False, soft_wrap=True)
    with workplace(None) as place:
        wanted = Audit(console, place, split(topics), bootstrap_servers, spark, lake, strict)
        found = result(wanted.run)
    if json_:
        sys.stdout.write(json.dumps(found.to_json(), indent=2) + "\n")
    else:
        console.print(table(found))
    raise typer.Exit(EXIT_OK if found.clean else EXIT_FAILED)
