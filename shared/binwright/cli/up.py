"""`binwright up`: the whole system for a person's own topics, until Ctrl-C."""

import asyncio
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console

from binwright.cli import screen
from binwright.cli.heap import EmbeddedSpark
from binwright.cli.stack import servers, services
from binwright.core.errors import SettingsError
from binwright.lab.picture import Picture
from binwright.lab.spectator import spectate
from binwright.shell.bus import KafkaBus
from binwright.shell.connect import shown
from binwright.shell.letters import METADATA_CONFIG, METRICS_CONFIG
from binwright.shell.run import meanwhile
from binwright.shell.settings import Settings, load_settings


@dataclass(frozen=True, slots=True, kw_only=True)
class Up:
    """The system, as asked for; what is None comes from the settings, or is embedded."""

    console: Console
    directory: Path  # the embedded servers' data, and all logs
    topics: tuple[str, ...] = ()
    bootstrap_servers: str | None = None
    spark: str | None = None
    lake: str | None = None
    partitions: int = 4  # of a topic made on the embedded broker
    embedded: EmbeddedSpark = field(default_factory=EmbeddedSpark)
    picture: Picture = field(default_factory=Picture)

    async def run(self) -> None:
        """Run until cancelled.

        Raises:
            SettingsError: A topic is not named or does not exist, or batches do not fit.
            WorldError: A part could not be had.
        """
        wanted = self._settings({})
        if wanted.landed is None:
            raise SettingsError("no topics: name them with --topics, or topics = […] in the file")
        if self.spark is None:
            self.embedded.check(wanted)
        async with servers(
            self.directory,
            self.console.log,
            bootstrap_servers=self.bootstrap_servers,
            spark=self.spark,
            embedded=self.embedded,
        ) as found:
            addresses = {"kafka": found.bootstrap_servers, "spark": found.spark}
            settings = self._settings(addresses)
            async with KafkaBus(settings.kafka) as bus:
                await self._make_topics(bus, settings)
                async with services(settings, self.directory) as stack:
                    self._tell(settings)
                    watching = spectate(
                        bus, settings.metadata_topic, settings.monitor.topic, self.picture
                    )
                    page = screen.show(
                        self.console,
                        self.picture,
                        settings.controller.limit_bytes_per_s,
                        lambda: "binwright up · Ctrl-C ends it",
                    )
                    async with meanwhile(watching, page, stack.trouble()):
                        await asyncio.Event().wait()

    def _settings(self, addresses: dict[str, str]) -> Settings:
        """Read the settings; what was asked for wins, then the file and the environment."""
        given: dict[str, Any] = {}
        if self.topics:
            given |= {"topics": self.topics, "topic_patterns": ()}
        read = load_settings(**given)
        kafka = {"bootstrap_servers": addresses.get("kafka")}
        lake = {"path": self.lake, "spark": addresses.get("spark")}
        logs = {"process_logs": read.controller.process_logs or self.directory}
        return read.model_copy(
            update={
                "kafka": read.kafka.model_copy(update=_given(kafka)),
                "lake": type(read.lake)(**{**read.lake.model_dump(), **_given(lake)}),
                "controller": read.controller.model_copy(update=logs),
            }
        )

    async def _make_topics(self, bus: KafkaBus, settings: Settings) -> None:
        missing = [topic for topic in settings.topics if not await bus.partitions(topic)]
        if missing and self.bootstrap_servers is not None:
            raise SettingsError(
                f"no such topic at {self.bootstrap_servers}: {', '.join(missing)}; create it first"
            )
        for topic in missing:  # a broker of ours is empty at first
            await bus.ensure(topic, self.partitions, {})
        await bus.ensure(settings.metadata_topic, 1, METADATA_CONFIG)
        await bus.ensure(settings.monitor.topic, 1, METRICS_CONFIG)

    def _tell(self, settings: Settings) -> None:
        self.console.log(f"Kafka: {settings.kafka.bootstrap_servers}")
        self.console.log(f"Spark: {', '.join(map(shown, settings.lake.servers))}")
        self.console.log(f"tables: {settings.lake.path}/<topic>")
        self.console.log(f"logs: {self.directory}")


def _given(values: dict[str, str | None]) -> dict[str, str]:
    return {name: value for name, value in values.items() if value is not None}
