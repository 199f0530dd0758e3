"""`binwright record`: the metrics topic, kept in a file or a Delta table."""

import asyncio
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Annotated

import typer

from binwright.cli.options import Bootstrap, OptionalSpark, settings_at
from binwright.cli.runner import progress_console, run, working_directory
from binwright.kafka.control_records import METRICS_PARTITION, Decoder
from binwright.kafka.control_topics import KafkaControlTopics
from binwright.protocol.metrics import decode_measurement
from binwright.protocol.model import BytesPerSecond
from binwright.protocol.ports.kafka import Reader
from binwright.runtime.settings.group import Settings
from binwright.streams.location import StreamLocation
from binwright.streams.recording import RecordedMeasurement, RecordingWriter

READ_S = 1.0


async def record(
    reader: Reader,
    writer: RecordingWriter,
    every_s: float,
    stop: asyncio.Event,
) -> int:
    """Record measurements from now on, in portions of `every_s` seconds; return how many.

    Args:
        reader: Of the metrics topic.
        writer: Gets the portions; the last one when `stop` is set.
        every_s: How long a portion is gathered, seconds.
        stop: Set from outside; noticed within `READ_S`.

    Raises:
        BrokerUnavailable: Kafka does not answer.
        StreamError, LakeUnavailable: The writer fails.
    """
    now = asyncio.get_running_loop().time
    count, pending, due = 0, list[RecordedMeasurement](), now() + every_s
    decoder = Decoder(decode_measurement)
    while not stop.is_set():
        records = await reader.read(min(READ_S, every_s))
        decoded = decoder.decode(records)
        pending += [RecordedMeasurement(r.offset, measurement) for r, measurement in decoded]
        if now() >= due or stop.is_set():
            await writer.append(pending)
            count, pending, due = count + len(pending), [], now() + every_s
    return count


@dataclass(frozen=True, slots=True)
class Recorder:
    """Records the metrics topic of the settings, until cancelled or for `seconds`."""

    location: StreamLocation
    settings: Settings
    from_beginning: bool
    seconds: float | None

    async def run(self) -> None:
        """Record; raise `StreamError`, `LakeUnavailable`, `BrokerUnavailable`, `TopicMissing`."""
        topic = self.settings.monitor.topic
        capacity = BytesPerSecond(self.settings.controller.capacity)
        async with AsyncExitStack() as stack:
            bus = await stack.enter_async_context(
                KafkaControlTopics(self.settings.kafka, read_only=True)
            )
            first = 0 if self.from_beginning else await bus.end(topic, METRICS_PARTITION)
            opened = await stack.enter_async_context(self.location.writer(capacity))
            writer, portion_s = opened
            reader = await bus.reader(topic, METRICS_PARTITION, first)
            stack.push_async_callback(reader.close)
            self.location.console.log(f"recording {topic} to {self.location.name}")
            stop = asyncio.Event()
            task = asyncio.create_task(record(reader, writer, portion_s, stop))
            try:
                await asyncio.wait([task], timeout=self.seconds)
            finally:
                stop.set()
                await asyncio.wait([task])  # the last portion is written, also after Ctrl-C
                self.location.console.log(f"recorded {task.result()} measurements")


def command(
    *,
    to: Annotated[str, typer.Option(help="A file (JSON lines), or delta://PATH.")],
    bootstrap_servers: Bootstrap = None,
    spark: OptionalSpark = None,
    from_beginning: Annotated[
        bool,
        typer.Option(
            "--from-beginning", help="Begin with the oldest measurement that the topic keeps."
        ),
    ] = False,
    seconds: Annotated[
        float | None, typer.Option(min=0.1, help="Seconds to record; until Ctrl-C without it.")
    ] = None,
) -> None:
    """Record measurements, for `replay` and for every command that reads a stream."""
    with working_directory(None) as directory:
        location = StreamLocation(progress_console(), directory, to, spark)
        recorder = Recorder(location, settings_at(bootstrap_servers), from_beginning, seconds)
        raise typer.Exit(run(recorder.run))
