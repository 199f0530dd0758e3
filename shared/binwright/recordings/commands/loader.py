"""A load on a cluster: its topics, the records, and what was written."""

import asyncio
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from rich.console import Console

from binwright.kafka.control_topics import KafkaControlTopics
from binwright.protocol.errors import SettingsError
from binwright.protocol.ports.kafka import ControlTopics
from binwright.recordings.generated import Measurement, Stream
from binwright.recordings.load import LoadResult, run_load
from binwright.recordings.load_pacing import Load
from binwright.runtime.settings import Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadTopics:
    """The topics of a load.

    Attributes:
        partitions: How many each must have.
        named: The user has named these: they may hold records already.
        grow: Whether topics that exist get the partitions that they lack.
    """

    partitions: Mapping[str, int]
    named: Collection[str]
    grow: bool

    async def prepare(self, bus: ControlTopics) -> None:
        """Create the topics that are missing, before a record is written.

        Raises:
            SettingsError: A topic lacks partitions, or holds records and is not named.
            BrokerUnavailable: Kafka does not answer or refuses.
        """
        missing = []
        for topic, wanted in self.partitions.items():
            there = await bus.partitions(topic)
            if there and not self.grow:
                await self._check(bus, topic, there)
            if there < wanted:
                missing.append(topic)
        for topic in missing:
            await bus.ensure(topic, self.partitions[topic], {})

    async def _check(self, bus: ControlTopics, topic: str, there: int) -> None:
        if there < self.partitions[topic]:
            raise SettingsError(
                f"topic {topic} has {there} partitions, the stream has {self.partitions[topic]}: "
                "add them, or write to topics of other names (--prefix)"
            )
        if topic not in self.named and any([await bus.end(topic, n) for n in range(there)]):
            raise SettingsError(
                f"topic {topic} holds records, and a load would add to them: name it to allow that "
                f"(--topics {topic}), or write to topics of other names (--prefix)"
            )


@dataclass(frozen=True, slots=True)
class Loader:
    """Writes a load to topics.

    Attributes:
        console: For progress.
        settings: Of Kafka.
        topics: To be written to.
        stream: Rates, in per cent.
        load: How they become records.
    """

    console: Console
    settings: Settings
    topics: LoadTopics
    stream: Stream
    load: Load

    async def run(self) -> LoadResult:
        """Write until the load is over; when cancelled, end early and return what was written.

        Raises:
            ExternalError: Kafka is away, or did not confirm every record.
            UserError: A topic or a number does not fit.
        """
        async with KafkaControlTopics(self.settings.kafka) as bus:
            await self.topics.prepare(bus)
        where = self.settings.kafka.bootstrap_servers
        self.console.log(f"writing to {', '.join(self.topics.partitions)} at {where}")
        stop = asyncio.Event()
        with self.console.status("writing") as status:

            def show(row: int, measurement: Measurement) -> None:
                rate = sum(measurement.values()) * self.load.bytes_per_per_cent / 1e6
                status.update(f"row {row + 1}: {rate:,.2f} MB/s, {len(measurement)} partitions")

            writing = asyncio.create_task(
                run_load(self.stream, self.settings.kafka, self.load, on_row=show, stop=stop)
            )
            try:
                await asyncio.wait([writing])
            except asyncio.CancelledError:
                stop.set()  # what is written until Ctrl-C is confirmed, and counted
                await asyncio.wait([writing])
        return writing.result()
