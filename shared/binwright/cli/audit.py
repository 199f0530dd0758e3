"""`binwright audit`: are all records in the tables, each once?"""

from dataclasses import dataclass
from pathlib import Path

from binwright.lab.audit import AuditResult
from binwright.lab.audit import audit as compare
from rich.console import Console
from rich.table import Table

from binwright.cli.stack import servers
from binwright.core.errors import SettingsError
from binwright.shell.settings import Settings, load_settings


@dataclass(frozen=True, slots=True)
class Audit:
    """What is asked for; what is None comes from the settings, a Spark server is embedded."""

    console: Console
    directory: Path
    topics: tuple[str, ...]
    bootstrap_servers: str | None
    spark: str | None
    lake: str | None

    async def run(self) -> AuditResult:
        """Compare tables and topics.

        Raises:
            SettingsError: No topic is named.
            WorldError: Kafka or Spark does not answer.
        """
        settings = self._settings()
        if not settings.topics:
            raise SettingsError("no topics: name them with --topics, or topics = […] in the file")
        async with servers(
            self.directory,
            self.console.log,
            bootstrap_servers=settings.kafka.bootstrap_servers,
            spark=self.spark,
        ) as found:
            lake = settings.lake.model_copy(update={"spark": found.spark})
            return await compare(settings.model_copy(update={"lake": lake}))

    def _settings(self) -> Settings:
        read = load_settings(**({"topics": self.topics} if self.topics else {}))
        kafka, lake = read.kafka, read.lake
        if self.bootstrap_servers is not None:
            kafka = kafka.model_copy(update={"bootstrap_servers": self.bootstrap_servers})
        if self.lake is not None:
            lake = type(lake)(path=self.lake, spark=lake.spark)
        return read.model_copy(update={"kafka": kafka, "lake": lake})
