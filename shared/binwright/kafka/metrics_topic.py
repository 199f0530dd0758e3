"""The monitors' measurements, read and decoded once for all controllers of a process."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Collection, Iterator, Sequence

from binwright.kafka.control_records import METRICS_PARTITION, Decoder, read_or_log
from binwright.protocol.errors import ExternalError
from binwright.protocol.log_events import LogEvent
from binwright.protocol.metrics import Measurement, decode_measurement
from binwright.protocol.ports.kafka import ControlTopics, Record
from binwright.protocol.selection import Selection
from binwright.protocol.wire import message_key
from binwright.runtime.backoff import Backoff
from binwright.runtime.logs import log
from binwright.runtime.run import background_tasks, must_not_end

MEASUREMENTS_DELAYED = LogEvent.warning(
    "measurements.delayed", "The metrics topic cannot be read at the moment."
)
MEASUREMENTS_MISSING = LogEvent.warning(
    "measurements.missing",
    "The metrics topic cannot be opened; without measurements the assignment stays.",
)

REMEMBERED = 100_000  # topics; with more of them some are matched again

RETRY_S, LONGEST_RETRY_S = 1.0, 10.0

MeasurementQueue = asyncio.Queue[Measurement]


async def new_records(bus: ControlTopics, topic: str) -> AsyncGenerator[Sequence[Record], None]:
    """Yield what is published to a metrics topic from now on, now and then nothing; for ever.

    When the topic cannot be read, that is logged and tried again.
    """
    pause = Backoff(LONGEST_RETRY_S, first_s=RETRY_S)
    while True:
        try:
            end = await bus.end(topic, METRICS_PARTITION)
            reader = await bus.reader(topic, METRICS_PARTITION, end)
            pause.reset()
            try:
                while True:
                    yield await read_or_log(reader, MEASUREMENTS_DELAYED, topic=topic) or ()
            finally:
                await reader.close()
        except ExternalError as exc:
            log(MEASUREMENTS_MISSING, topic=topic, reason=str(exc))
            await asyncio.sleep(pause.next())


class Measurements:
    """The metrics topic from now on; `run` reads it while there are subscribers."""

    def __init__(self, bus: ControlTopics, topic: str) -> None:
        self._bus, self._topic = bus, topic
        self._subscribers: dict[MeasurementQueue, Selection | None] = {}
        self._routes: dict[bytes, list[MeasurementQueue]] = {}  # topic -> the queues it goes to
        self._subscribed = asyncio.Event()

    @contextlib.contextmanager
    def subscribe(self, topics: Selection | None) -> Iterator[MeasurementQueue]:
        """Give a queue of the measurements of these topics, of all if None, during the body."""
        queue = MeasurementQueue()
        self._subscribers[queue] = topics
        for name, queues in self._routes.items():
            if _includes(topics, name):
                queues.append(queue)
        self._subscribed.set()
        try:
            yield queue
        finally:
            del self._subscribers[queue]
            for queues in self._routes.values():
                if queue in queues:
                    queues.remove(queue)
            if not self._subscribers:
                self._subscribed.clear()

    async def run(self) -> None:
        """Read, for ever."""
        while True:
            await self._subscribed.wait()
            decoder = Decoder(decode_measurement)
            async with contextlib.aclosing(new_records(self._bus, self._topic)) as batches:
                async for records in batches:
                    await self._distribute(decoder, records)
                    if not self._subscribed.is_set():
                        break

    async def _distribute(self, decoder: Decoder[Measurement], records: Sequence[Record]) -> None:
        for name in {message_key(record.key) for record in records} - self._routes.keys():
            self._route(name)  # of many topics and groups it takes a while
            await asyncio.sleep(0)
        # By the record's key: records of topics without a subscriber are not decoded.
        wanted = (record for record in records if self._route(message_key(record.key)))
        for _, measurement in decoder.decode(wanted):
            for queue in self._route(measurement.topic.encode()):
                queue.put_nowait(measurement)

    def _route(self, name: bytes | None) -> Collection[MeasurementQueue]:
        """Return the queues of a topic's subscribers; patterns are matched once for each topic.

        A record without a key may be of any topic: it is decoded for all subscribers.
        """
        if name is None:
            return self._subscribers
        if (queues := self._routes.get(name)) is None:
            if len(self._routes) >= REMEMBERED:
                self._routes.clear()
            queues = [
                queue for queue, topics in self._subscribers.items() if _includes(topics, name)
            ]
            self._routes[name] = queues
        return queues


def _includes(topics: Selection | None, name: bytes) -> bool:
    return topics is None or topics.includes(name.decode(errors="replace"))


@contextlib.asynccontextmanager
async def run_measurements(bus: ControlTopics, topic: str) -> AsyncIterator[Measurements]:
    """Give the measurements; the topic is read meanwhile."""
    measurements = Measurements(bus, topic)
    async with background_tasks(must_not_end(measurements.run())):
        yield measurements
