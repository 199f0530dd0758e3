"""`binwright up`: the whole system for the user's own topics, until Ctrl-C."""

import asyncio
import shlex
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import typer

from binwright.cli.options import (
    Group,
    Lake,
    Spark,
    Topics,
    named_kafka,
    named_spark,
    settings_at,
)
from binwright.cli.runner import (
    ProgressConsole,
    own_command,
    progress_console,
    run,
    split,
    working_directory,
)
from binwright.cli.terminal import count
from binwright.kafka.control_records import METADATA_CONFIG, METRICS_CONFIG
from binwright.kafka.control_topics import KafkaControlTopics
from binwright.lake.lake_reader import count_rows, server_of
from binwright.local.attach import Panel
from binwright.local.home import alone_in, check_tables, home_of, note_running
from binwright.local.preflight import check_group, check_lake, check_staging, check_topics
from binwright.local.spark_size import SparkSize
from binwright.local.stack import Servers, servers, services, warm_up
from binwright.look.group_view import GroupView
from binwright.protocol.errors import LakeUnavailable, SettingsError
from binwright.runtime.run import background_tasks
from binwright.runtime.settings.group import Settings
from binwright.runtime.spark_url import redacted_url

WORKERS = 2  # of `up --cluster`


@dataclass(frozen=True, slots=True, kw_only=True)
class Up:
    """The options of one system; what is None comes from the settings.

    Kafka and Spark are embedded where neither the options nor the settings name an address.
    """

    console: ProgressConsole
    directory: Path | None = None  # of the embedded servers' data, and of all logs
    group: str | None = None
    topics: tuple[str, ...] = ()
    bootstrap_servers: str | None = None
    spark: str | None = None
    lake: str | None = None
    partitions: int = 4  # of a topic made on the embedded broker
    embedded: SparkSize = field(default_factory=SparkSize)
    view: GroupView = field(default_factory=GroupView)

    async def run(self) -> None:
        """Run until cancelled.

        Raises:
            SettingsError: A topic is not named or does not exist, another system runs in the
                directory or leads the group, the tables are of another Kafka, batches do not fit
                the embedded Spark, or a cluster is wanted although a Spark is named.
            ExternalError: Kafka, Spark or the lake does not answer, or a process does not start.
        """
        wanted = self._settings()
        if wanted.landed_topics is None:
            raise SettingsError("no topics: name them with --topics, or topics = […] in the file")
        if named_spark(wanted) is None:
            self.embedded.check(wanted)
        elif self.embedded.workers:
            raise SettingsError(
                f"--cluster is about the embedded Spark, but {_redacted(wanted)} is named "
                "(--spark or lake.spark)"
            )
        if named_kafka(wanted) is None:
            directory = (self.directory or home_of(wanted.lake.path)).absolute()
            async with alone_in(directory):
                await check_tables(wanted, directory)
                await self._run_in(directory, wanted)
            return
        async with KafkaControlTopics(wanted.kafka) as bus:  # before Spark, which takes 15 s
            await check_topics(bus, wanted)
            await check_group(bus, wanted)
        with working_directory(self.directory) as directory:
            await self._run_in(directory, wanted)

    async def _run_in(self, directory: Path, wanted: Settings) -> None:
        await check_staging(wanted)
        async with servers(
            directory,
            self.console.log,
            bootstrap_servers=named_kafka(wanted),
            spark=named_spark(wanted),
            embedded=self.embedded,
        ) as running:
            settings = self._settings(running, directory)
            await check_lake(settings)
            async with KafkaControlTopics(settings.kafka) as bus:
                if named_kafka(wanted) is None:
                    note_running(directory, settings)
                    await self._make_topics(bus, settings)
                await bus.ensure(settings.metadata_topic, 1, METADATA_CONFIG)
                await bus.ensure(settings.monitor.topic, 1, METRICS_CONFIG)
                try:
                    await self._serve(bus, settings, directory)
                finally:
                    await self._report_tables(settings)

    async def _serve(self, bus: KafkaControlTopics, settings: Settings, directory: Path) -> None:
        panel = Panel(self.console, settings, directory, self.view, lambda: "binwright up")
        async with services(settings, directory) as stack:
            try:
                async with background_tasks(
                    panel.run(bus), stack.wait_for_failure(), warm_up(settings, directory)
                ):
                    await asyncio.Event().wait()
            finally:
                self.console.log("ending: what was read lands first, which takes a few seconds")

    def _settings(self, running: Servers | None = None, logs: Path | None = None) -> Settings:
        """Return the settings: options first, then the environment and the file.

        Args:
            running: The servers that run, embedded or not; None: not known yet.
            logs: Where consumers log; None: not known yet.

        Raises:
            SettingsError: A value or key is wrong.
        """
        read = settings_at(
            running.bootstrap_servers if running else self.bootstrap_servers,
            group=self.group,
            topics=self.topics,
            lake=self.lake,
            spark=running.spark if running else self.spark,
            token_file=running.token_file if running else None,
        )
        controller = read.controller.model_copy(update={"process_logs": logs})
        return read.model_copy(update={"controller": controller})

    async def _make_topics(self, bus: KafkaControlTopics, settings: Settings) -> None:
        """Create the topics on the embedded broker, where the directory does not hold them yet."""
        for topic in settings.topics:
            if not await bus.partitions(topic):
                await bus.ensure(topic, self.partitions, {})

    async def _report_tables(self, settings: Settings) -> None:
        """Report how many rows the tables hold, and the command that goes on with them."""
        lake = settings.lake
        for topic in sorted(self.view.tables.by_name):
            table = lake.table_path(topic)
            try:
                rows = await count_rows(table, server_of(lake, topic))
            except LakeUnavailable as exc:
                self.console.log(f"the rows are not counted: {exc}")
            else:
                self.console.copyable(f"{count(rows, 'row')} in {table}")
        self.console.copyable(f"again: {shlex.join([own_command(), *sys.argv[1:]])}")


def _redacted(settings: Settings) -> str:
    return ", ".join(map(redacted_url, settings.lake.servers))


def command(
    *,
    topics: Topics = "",
    group: Group = None,
    bootstrap_servers: Annotated[
        str | None,
        typer.Option(help="Kafka's address, HOST:PORT; else the settings', else one is embedded."),
    ] = None,
    spark: Spark = None,
    lake: Lake = None,
    partitions: Annotated[
        int,
        typer.Option(min=1, help="Partitions of topics that are created on the embedded broker."),
    ] = 4,
    directory: Annotated[
        Path | None,
        typer.Option(
            help="Directory of the embedded broker's data and all logs; else _up in the lake."
        ),
    ] = None,
    cluster: Annotated[
        bool, typer.Option("--cluster", help="Embed Spark as a cluster: a master, two workers.")
    ] = False,
    spark_memory: Annotated[
        str, typer.Option(help="Heap of the embedded Spark, and of each executor.")
    ] = SparkSize().heap,
) -> None:
    """Run the whole system for your own topics until Ctrl-C; servers not named are embedded."""
    system = Up(
        console=progress_console(),
        directory=directory,
        group=group,
        topics=split(topics),
        bootstrap_servers=bootstrap_servers,
        spark=spark,
        lake=lake,
        partitions=partitions,
        embedded=SparkSize(spark_memory, WORKERS if cluster else 0),
    )
    raise typer.Exit(run(system.run))
