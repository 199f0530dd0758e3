"""`binwright up`: the whole system for the user's own topics, until Ctrl-C."""

import asyncio
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from binwright.cli.options import Lake, Spark, Topics, named_kafka, named_spark, settings_at
from binwright.cli.runner import progress_console, run, split, working_directory
from binwright.kafka.control_records import METADATA_CONFIG, METRICS_CONFIG
from binwright.kafka.control_topics import KafkaControlTopics
from binwright.local.spark_size import SparkSize
from binwright.local.stack import Servers, servers, services
from binwright.protocol.errors import SettingsError
from binwright.runtime.run import background_tasks
from binwright.runtime.settings import Settings
from binwright.runtime.spark_url import redacted_url
from binwright.views.commands import live_page
from binwright.views.follower import watch_group
from binwright.views.group_view import GroupView

WORKERS = 2  # of `up --cluster`


@dataclass(frozen=True, slots=True, kw_only=True)
class Up:
    """The options of one system; what is None comes from the settings.

    Kafka and Spark are embedded where neither the options nor the settings name an address.
    """

    console: Console
    directory: Path  # of the embedded servers' data, and of all logs
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
            SettingsError: A topic is not named or does not exist, batches do not fit the embedded
                Spark, or a cluster is wanted although a Spark is named.
            ExternalError: Kafka or Spark does not answer, or a process does not start.
        """
        wanted = self.settings()
        if wanted.landed_topics is None:
            raise SettingsError("no topics: name them with --topics, or topics = […] in the file")
        kafka, spark = named_kafka(wanted), named_spark(wanted)
        if spark is None:
            self.embedded.check(wanted)
        elif self.embedded.workers:
            raise SettingsError(
                f"--cluster is about the embedded Spark, but {_redacted(wanted)} is named "
                "(--spark or lake.spark)"
            )
        if kafka is not None:  # before Spark: an embedded one takes 15 s to start
            await _check_topics(wanted)
        async with servers(
            self.directory,
            self.console.log,
            bootstrap_servers=kafka,
            spark=spark,
            embedded=self.embedded,
        ) as found:
            settings = self.settings(found)
            async with KafkaControlTopics(settings.kafka) as bus:
                if kafka is None:
                    await self._make_topics(bus, settings)
                await bus.ensure(settings.metadata_topic, 1, METADATA_CONFIG)
                await bus.ensure(settings.monitor.topic, 1, METRICS_CONFIG)
                await self._serve(bus, settings)

    async def _serve(self, bus: KafkaControlTopics, settings: Settings) -> None:
        async with services(settings, self.directory) as stack:
            self._log_addresses(settings)
            watching = watch_group(bus, settings.metadata_topic, settings.monitor.topic, self.view)
            page = live_page.show(
                self.console,
                settings,
                self.view,
                lambda: "binwright up · Ctrl-C ends it",
            )
            async with background_tasks(watching, page, stack.wait_for_failure()):
                await asyncio.Event().wait()

    def settings(self, running: Servers | None = None) -> Settings:
        """Return the settings: options first, then the environment and the file.

        Args:
            running: The servers that run, embedded or not; None: not known yet.

        Raises:
            SettingsError: A value or key is wrong.
        """
        read = settings_at(
            running.bootstrap_servers if running else self.bootstrap_servers,
            topics=self.topics,
            lake=self.lake,
            spark=running.spark if running else self.spark,
        )
        logs = {"process_logs": read.controller.process_logs or self.directory}
        return read.model_copy(update={"controller": read.controller.model_copy(update=logs)})

    async def _make_topics(self, bus: KafkaControlTopics, settings: Settings) -> None:
        """Create the topics on the embedded broker, where `directory` does not hold them yet."""
        for topic in settings.topics:
            if not await bus.partitions(topic):
                await bus.ensure(topic, self.partitions, {})

    def _log_addresses(self, settings: Settings) -> None:
        self.console.log(f"Kafka: {settings.kafka.bootstrap_servers}")
        self.console.log(f"Spark: {_redacted(settings)}")
        self.console.log(f"tables: {settings.lake.path}/<topic>")
        self.console.log(f"logs: {self.directory}")


async def _check_topics(settings: Settings) -> None:
    """Check that Kafka answers and has the topics: nothing is created in a Kafka of the user's."""
    async with KafkaControlTopics(settings.kafka) as bus:
        missing = [topic for topic in settings.topics if not await bus.partitions(topic)]
    if missing:
        raise SettingsError(
            f"no such topic at {settings.kafka.bootstrap_servers}: {', '.join(missing)}; "
            "create it first"
        )


def _redacted(settings: Settings) -> str:
    return ", ".join(map(redacted_url, settings.lake.servers))


def command(  # noqa: PLR0913 - one parameter for each option
    *,
    topics: Topics = "",
    bootstrap_servers: Annotated[
        str | None,
        typer.Option(help="Kafka's address, HOST:PORT; else the settings', else one is embedded."),
    ] = None,
    spark: Spark = None,
    lake: Lake = None,
    partitions: Annotated[
        int, typer.Option(min=1, help="Of topics made on the embedded broker.")
    ] = 4,
    directory: Annotated[
        Path | None, typer.Option(help="Keep the embedded broker's data and all logs here.")
    ] = None,
    cluster: Annotated[
        bool, typer.Option("--cluster", help="Embed Spark as a cluster: a master, two workers.")
    ] = False,
    spark_memory: Annotated[
        str, typer.Option(help="Heap of the embedded Spark, and of each executor.")
    ] = SparkSize().heap,
) -> None:
    """Run the whole system for your own topics until Ctrl-C; servers not named are embedded."""
    with working_directory(directory) as run_directory:
        system = Up(
            console=progress_console(),
            directory=run_directory,
            topics=split(topics),
            bootstrap_servers=bootstrap_servers,
            spark=spark,
            lake=lake,
            partitions=partitions,
            embedded=SparkSize(spark_memory, WORKERS if cluster else 0),
        )
        raise typer.Exit(run(system.run))
