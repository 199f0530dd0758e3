"""`binwright replay`: the measurements of a recording, published again."""

import math
from dataclasses import dataclass
from typing import Annotated

import typer

from binwright.cli.measurements.recording_location import RecordingLocation
from binwright.cli.options import Bootstrap, OptionalSpark, settings_at
from binwright.cli.runner import progress_console, run, working_directory
from binwright.core.errors import StreamError
from binwright.core.protocol.measurements import Measurement
from binwright.kafka.bus import KafkaBus
from binwright.ops.recording.replay import replay
from binwright.runtime.settings import Settings


@dataclass(frozen=True, slots=True)
class Replayer:
    """Publishes a recording to the metrics topic of the settings.

    Attributes:
        location: Of the recording.
        settings: Of Kafka and the metrics topic.
        speed: Seconds of the recording in one second; infinite: without waiting.
    """

    location: RecordingLocation
    settings: Settings
    speed: float

    async def run(self) -> None:
        """Replay; raise `StreamError`, `LakeUnavailable` or `BrokerUnavailable`."""
        found = await self.location.read()
        if not found.measurements:
            raise StreamError(f"{self.location.name}: the recording holds no measurement")
        console, total = self.location.console, len(found.measurements)
        pace = "as fast as it goes" if math.isinf(self.speed) else f"{self.speed:g} times as fast"
        console.log(f"{total} measurements from {self.location.name}, {pace}")
        with console.status("replaying") as status:

            def show(sent: Measurement) -> None:
                status.update(f"replaying: {sent.number + 1} of {total}, {sent.topic}")

            async with KafkaBus(self.settings.kafka) as bus:
                topic = self.settings.monitor.topic
                count = await replay(bus, topic, found.measurements, self.speed, show)
        console.log(f"published {count} measurements to {topic}")


def command(
    source: Annotated[str, typer.Argument(help="A file that `record` wrote, or delta://PATH.")],
    *,
    bootstrap_servers: Bootstrap = None,
    spark: OptionalSpark = None,
    speed: Annotated[
        float, typer.Option(min=0.001, help="Seconds of the recording that pass in one.")
    ] = 1.0,
    flat_out: Annotated[
        bool, typer.Option("--flat-out", help="As fast as it goes, without waiting.")
    ] = False,
) -> None:
    """Publish a recording to the metrics topic again, for the controllers that read it."""
    with working_directory(None) as directory:
        location = RecordingLocation(progress_console(), directory, source, spark)
        pace = math.inf if flat_out else speed
        raise typer.Exit(run(Replayer(location, settings_at(bootstrap_servers), pace).run))
