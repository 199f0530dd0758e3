"""`binwright replay`: the measurements of a recording or a stream, published again."""

import asyncio
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Annotated
from uuid import uuid4

import typer

from binwright.cli.options import Bootstrap, OptionalSpark, settings_at
from binwright.cli.runner import progress_console, run, working_directory
from binwright.kafka.control_records import METRICS_CONFIG, METRICS_PARTITION
from binwright.kafka.control_topics import KafkaControlTopics
from binwright.kafka.publishing import publish_message
from binwright.protocol.errors import StreamError
from binwright.protocol.metrics import Measurement
from binwright.protocol.model import BytesPerSecond
from binwright.protocol.monitors import Monitors, accept_measurement
from binwright.protocol.ports.kafka import ControlTopics
from binwright.runtime.clock import wall_ms
from binwright.runtime.settings.group import Settings
from binwright.streams.location import (
    DEFAULT_ROW_S,
    RowSeconds,
    StreamCapacity,
    StreamLocation,
    with_progress,
)


async def replay(
    bus: ControlTopics,
    topic: str,
    measurements: Iterable[Measurement],
    speed: float,
    progress: Callable[[Measurement], None],
) -> int:
    """Publish a recording's measurements to a metrics topic; return how many.

    Of two recorded monitors one is followed, as by a controller. Measurements are published under
    the name of a new monitor, with the present time.

    Args:
        bus: Of the Kafka to publish to.
        topic: Created if it does not exist.
        measurements: In the order in which they were published first.
        speed: Seconds of the recording in one second; infinite: no waiting at all.
        progress: Called with each measurement once it is published.

    Raises:
        BrokerUnavailable: Kafka does not answer.
    """
    await bus.ensure(topic, 1, METRICS_CONFIG)
    loop = asyncio.get_running_loop()
    name, monitors, count = f"replay-{uuid4()}", Monitors(), 0
    begin, first_s = loop.time(), None
    for recorded in measurements:
        at_s = recorded.at_ms / 1000
        first_s = at_s if first_s is None else first_s
        monitors, counts, _ = accept_measurement(monitors, at_s, recorded)
        if not counts:
            continue
        await _sleep_until(loop, begin + (at_s - first_s) / speed)
        measurement = replace(
            recorded,
            at_ms=wall_ms(),
            monitor=name,
            number=count,
            interval_s=recorded.interval_s / speed,
        )
        await publish_message(bus, topic, METRICS_PARTITION, measurement)
        progress(measurement)
        count += 1
    return count


async def _sleep_until(loop: asyncio.AbstractEventLoop, due: float) -> None:
    if due > loop.time():
        await asyncio.sleep(due - loop.time())


@dataclass(frozen=True, slots=True)
class Replayer:
    """Publishes a recording or a stream to the metrics topic of the settings.

    Attributes:
        location: Of the recording or stream.
        settings: Of Kafka, the metrics topic, and a consumer's capacity.
        speed: Seconds of the recording in one second; infinite: without waiting.
        row_s: How long a row of a stream lasts, seconds.
        capacity: A stream's 100 per cent, bytes/s; None: the settings' capacity.
    """

    location: StreamLocation
    settings: Settings
    speed: float
    row_s: float = DEFAULT_ROW_S
    capacity: float | None = None

    async def run(self) -> None:
        """Replay; raise `StreamError`, `LakeUnavailable` or `BrokerUnavailable`."""
        file, console, name = await self.location.fetch(), self.location.console, self.location.name
        capacity = BytesPerSecond(self.capacity or self.settings.controller.capacity)
        if not file.is_recording():
            console.log(f"100 per cent are {capacity:,.0f} bytes/s, a row lasts {self.row_s:g} s")
        total, measurements = 0, file.measurements(self.row_s, capacity)
        # Read to its end before anything is published: what is malformed has no effect.
        async for _ in with_progress(measurements, console, f"reading {name}", "measurements"):
            total += 1
        if not total:
            raise StreamError(f"{name}: the recording holds no measurement")
        pace = "as fast as it goes" if math.isinf(self.speed) else f"{self.speed:g} times as fast"
        console.log(f"{total} measurements from {name}, {pace}")
        with console.status("replaying") as status:

            def show(sent: Measurement) -> None:
                status.update(f"replaying: {sent.number + 1} of {total}, {sent.topic}")

            measurements = file.measurements(self.row_s, capacity)
            async with KafkaControlTopics(self.settings.kafka) as bus:
                topic = self.settings.monitor.topic
                count = await replay(bus, topic, measurements, self.speed, show)
        console.log(f"published {count} measurements to {topic}")


def command(
    source: Annotated[
        str,
        typer.Argument(
            help="A stream or a recording: a file, - (standard input), or delta://PATH."
        ),
    ],
    *,
    bootstrap_servers: Bootstrap = None,
    spark: OptionalSpark = None,
    speed: Annotated[
        float, typer.Option(min=0.001, help="Seconds of the recording that pass in one.")
    ] = 1.0,
    flat_out: Annotated[
        bool, typer.Option("--flat-out", help="Publish without waiting between measurements.")
    ] = False,
    row_s: RowSeconds = DEFAULT_ROW_S,
    capacity: StreamCapacity = None,
) -> None:
    """Publish a recording or a stream as measurements, for the controllers that read them."""
    with working_directory(None) as directory:
        location = StreamLocation(progress_console(), directory, source, spark)
        pace = math.inf if flat_out else speed
        settings = settings_at(bootstrap_servers)
        raise typer.Exit(run(Replayer(location, settings, pace, row_s, capacity).run))
