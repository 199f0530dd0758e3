"""A monitor's measurements, and a consumer that speaks the real messages and reads nothing."""

from collections.abc import Collection, Sequence

from binwright.kafka.control_records import CONTROLLER_PARTITION, messages
from binwright.kafka.publishing import publish_message
from binwright.protocol.commands import (
    Leave,
    StartReading,
    StartWriting,
    StateQuery,
    StopReading,
    StopWriting,
    decode_command,
)
from binwright.protocol.metadata import Hello, Report, Started, Stopped, TableReport
from binwright.protocol.metrics import Measurement, PartitionRate
from binwright.protocol.model import BytesPerSecond, Slot, TopicPartition
from binwright.protocol.ports.kafka import ControlTopics, Reader
from binwright.protocol.selection import COMMANDS_SUFFIX, METADATA_SUFFIX
from binwright.runtime.clock import wall_ms


def measurement(topic: str, number: int, rates: Sequence[float]) -> Measurement:
    """Return a monitor's measurement of a topic: bytes/s by partition, 100 records each."""
    rows = (
        PartitionRate(n, BytesPerSecond(rate), 30.0, number * 100, 0, 100.0, 10.0, 1_000_000)
        for n, rate in enumerate(rates)
    )
    return Measurement(
        topic=topic,
        at_ms=wall_ms(),
        monitor="bench",
        number=number,
        interval_s=1.0,
        count=len(rates),
        partitions=tuple(rows),
    )


class FakeConsumer:
    """One process of a slot."""

    def __init__(self, bus: ControlTopics, group: str, slot: Slot) -> None:
        self._bus, self._slot = bus, slot
        self._topic, self._commands = group + METADATA_SUFFIX, group + COMMANDS_SUFFIX
        self._reader: Reader | None = None
        self._epoch, self._term = -1, 0
        self.reading: dict[TopicPartition, int] = {}
        self._writing: set[str] = set()
        self.reports = 0
        self.queried_ms = 0  # when a controller last asked, by the wall clock

    async def begin(self) -> None:
        """Publish Hello, and read commands from before it on."""
        await self._listen()
        hello = Hello(slot=self._slot, process=f"played-{self._slot}", version="0")
        self._epoch = await publish_message(self._bus, self._topic, CONTROLLER_PARTITION, hello)

    async def resume(
        self, epoch: int, reading: dict[TopicPartition, int], writing: Collection[str]
    ) -> None:
        """Continue as the process whose Hello is at `epoch`."""
        await self._listen()
        self._epoch, self.reading, self._writing = epoch, reading, set(writing)

    async def _listen(self) -> None:
        """Read commands from now on."""
        end = await self._bus.end(self._commands, self._slot)
        self._reader = await self._bus.reader(self._commands, self._slot, end)

    async def report(self) -> None:
        """Publish a report."""
        self.reading = {p: offset + 100 for p, offset in self.reading.items()}
        table = TableReport(state="landing", committed=self.reading, age_s=1.0)
        message = Report(
            slot=self._slot,
            epoch=self._epoch,
            term=self._term,
            ready=True,
            reading=self.reading,
            writing=dict.fromkeys(self._writing, table),
        )
        self.reports += 1
        await publish_message(self._bus, self._topic, CONTROLLER_PARTITION, message)

    async def handle_commands(self) -> None:
        """Acknowledge commands until it is told to leave."""
        if self._reader is None:
            raise RuntimeError("it has not begun")
        async for record, command in messages(self._reader, decode_command):
            self._term = max(self._term, command.term)
            match command:
                case StateQuery():
                    self.queried_ms = record.timestamp_ms
                    await self.report()
                case Leave(epoch=epoch) if epoch == self._epoch:
                    raise RuntimeError(f"slot {self._slot} of {self._topic} is to leave")
                case StartReading(epoch=epoch, revision=revision) if epoch == self._epoch:
                    began = {p: offset or 0 for p, offset in command.offsets.items()}
                    self.reading |= began
                    await self._started(revision, began, ())
                case StartWriting(epoch=epoch, revision=revision) if epoch == self._epoch:
                    self._writing.update(command.tables)
                    await self._started(revision, {}, command.tables)
                case StopReading(epoch=epoch, revision=revision) if epoch == self._epoch:
                    left = {p: self.reading.pop(p, None) for p in command.partitions}
                    await self._stopped(revision, left, ())
                case StopWriting(epoch=epoch, revision=revision) if epoch == self._epoch:
                    self._writing.difference_update(command.tables)
                    await self._stopped(revision, {}, command.tables)
                case _:
                    pass  # to a process before this one

    async def _started(
        self, revision: int, offsets: dict[TopicPartition, int], tables: tuple[str, ...]
    ) -> None:
        message = Started(
            slot=self._slot, epoch=self._epoch, revision=revision, offsets=offsets, tables=tables
        )
        await publish_message(self._bus, self._topic, CONTROLLER_PARTITION, message)

    async def _stopped(
        self, revision: int, left: dict[TopicPartition, int | None], tables: tuple[str, ...]
    ) -> None:
        message = Stopped(
            slot=self._slot, epoch=self._epoch, revision=revision, next=left, tables=tables
        )
        await publish_message(self._bus, self._topic, CONTROLLER_PARTITION, message)
