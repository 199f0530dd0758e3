"""What the monitors say, read and decoded once for all reigns of a process."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Collection, Iterator

import structlog

from binwright.core import wire
from binwright.core.errors import WorldError
from binwright.core.messages import Measurement
from binwright.core.parts import whole_key
from binwright.core.ports import Bus, Reader
from binwright.core.selection import REMEMBERED, Selection
from binwright.shell.letters import METRICS_PARTITION, Decoder, read_on
from binwright.shell.pauses import Pause
from binwright.shell.run import endless, meanwhile

log = structlog.get_logger()

RETRY_S, LONGEST_RETRY_S = 1.0, 10.0

Heard = asyncio.Queue[Measurement]


class Measurements:
    """The metrics topic from now on; `run` reads it while anybody listens."""

    def __init__(self, bus: Bus, topic: str) -> None:
        self._bus, self._topic = bus, topic
        self._listeners: dict[Heard, Selection | None] = {}
        self._routes: dict[bytes, list[Heard]] = {}  # of each topic that was read: who takes it
        self._wanted = asyncio.Event()

    @contextlib.contextmanager
    def heard(self, topics: Selection | None) -> Iterator[Heard]:
        """Give a queue of what is said of these topics, of all if None, during the body."""
        queue = Heard()
        self._listeners[queue] = topics
        for name, queues in self._routes.items():
            if _takes(topics, name):
                queues.append(queue)
        self._wanted.set()
        try:
            yield queue
        finally:
            del self._listeners[queue]
            for queues in self._routes.values():
                if queue in queues:
                    queues.remove(queue)
            if not self._listeners:
                self._wanted.clear()

    async def run(self) -> None:
        """Read, for ever, and whatever becomes of the topic."""
        pause = Pause(LONGEST_RETRY_S, first_s=RETRY_S)
        while True:
            await self._wanted.wait()
            try:
                end = await self._bus.end(self._topic, METRICS_PARTITION)
                reader = await self._bus.reader(self._topic, METRICS_PARTITION, end)
                pause = Pause(LONGEST_RETRY_S, first_s=RETRY_S)
                try:
                    await self._pass_on(reader)
                finally:
                    await reader.close()
            except WorldError as exc:
                log.warning("measurements.missing", topic=self._topic, reason=str(exc))
                await asyncio.sleep(pause.next())

    async def _pass_on(self, reader: Reader) -> None:
        decoder = Decoder(wire.decode_measurement)
        while self._wanted.is_set():
            records = await read_on(reader, "measurements.delayed", topic=self._topic)
            # Of topics that nobody here rules the bytes are not even decoded.
            ours = (r for r in records or () if self._route(whole_key(r.key)))
            for _, measurement in decoder.readable(ours):
                for queue in self._route(measurement.topic.encode()):
                    queue.put_nowait(measurement)

    def _route(self, name: bytes | None) -> Collection[Heard]:
        """Return who takes a topic: every pattern is tried once, not for every record.

        Of a record without a key it is not known: then that is everybody.
        """
        if name is None:
            return self._listeners
        if (found := self._routes.get(name)) is None:
            if len(self._routes) >= REMEMBERED:
                self._routes.clear()
            found = [queue for queue, topics in self._listeners.items() if _takes(topics, name)]
            self._routes[name] = found
        return found


def _takes(topics: Selection | None, name: bytes) -> bool:
    return topics is None or topics.takes(name.decode(errors="replace"))


@contextlib.asynccontextmanager
async def measuring(bus: Bus, topic: str) -> AsyncIterator[Measurements]:
    """Give what is measured, read meanwhile."""
    measurements = Measurements(bus, topic)
    async with meanwhile(endless(measurements.run())):
        yield measurements
