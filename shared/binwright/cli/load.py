"""`binwright load`: records for the user's own topics, at rates that walk at random."""

from dataclasses import dataclass
from typing import Annotated

import typer
from rich.console import Console

from binwright.cli.options import Bootstrap, Seed, Topics, settings_at
from binwright.cli.runner import progress_console, run, split
from binwright.core.errors import SettingsError
from binwright.kafka.bus import KafkaBus
from binwright.lab.load import LoadResult, run_load
from binwright.lab.load_pacing import Load
from binwright.lab.streams import Walk, generate
from binwright.runtime.settings import Settings

UNLIMITED_S = 1e9
ROWS = 240


@dataclass(frozen=True, slots=True)
class Loader:
    """Writes a load to topics; topics that do not exist are created."""

    console: Console
    settings: Settings
    walk: Walk
    load: Load

    async def run(self) -> LoadResult:
        """Write until the time is over, or cancelled; raise `ExternalError` or `UserError`."""
        async with KafkaBus(self.settings.kafka) as bus:
            for topic in self.walk.topics:
                await bus.ensure(topic, self.walk.partitions, {})
        where = self.settings.kafka.bootstrap_servers
        self.console.log(f"writing to {', '.join(self.walk.topics)} at {where}")
        result = await run_load(list(generate(self.walk)), self.settings.kafka, self.load)
        records = sum(sent.records for sent in result.partitions.values())
        self.console.log(f"{records:,} records in {result.elapsed_s:.0f} s")
        return result


def command(  # noqa: PLR0913 - one parameter for each option
    *,
    topics: Topics = "",
    partitions: Annotated[int, typer.Option(min=1, help="Of each topic that is created.")] = 4,
    bytes_per_s: Annotated[
        float, typer.Option(min=1.0, help="Highest rate of one partition.")
    ] = 300_000.0,
    record_bytes: Annotated[int, typer.Option(min=64, help="Of one record.")] = 1_000,
    row_s: Annotated[float, typer.Option(min=0.1, help="How often rates change.")] = 15.0,
    delta: Annotated[int, typer.Option(min=0, help="Largest step of a rate, per cent.")] = 15,
    seed: Seed = 0,
    minutes: Annotated[
        float | None, typer.Option(min=0.01, help="How long; else until Ctrl-C.")
    ] = None,
    bootstrap_servers: Bootstrap = None,
) -> None:
    """Write records to topics at rates that walk at random, to see how the group follows."""
    settings = settings_at(bootstrap_servers)
    named = split(topics) or settings.topics
    if not named:
        raise SettingsError("no topics: name some with --topics")
    walk = Walk(topics=named, partitions=partitions, rows=ROWS, delta=delta, seed=seed)
    load = Load(
        row_s=row_s,
        bytes_per_per_cent=bytes_per_s / 100,
        record_bytes=record_bytes,
        duration_s=UNLIMITED_S if minutes is None else minutes * 60,
    )
    loader = Loader(progress_console(), settings, walk, load)

    async def work() -> None:
        await loader.run()

    raise typer.Exit(run(work))
