"""What the monitors say, read and decoded once for all reigns of a process."""

import asyncio
import contextlib
from collections import defaultdict
from collections.abc import AsyncIterator, Collection, Iterator

import structlog

from binwright.core import wire
from binwright.core.errors import BrokerUnavailable, WorldError
from binwright.core.messages import Measurement
from binwright.core.parts import whole_key
from binwright.core.ports import Bus, Reader
from binwright.shell.letters import METRICS_PARTITION, Decoder
from binwright.shell.pauses import Pause
from binwright.shell.run import endless, meanwhile

log = structlog.get_logger()

READ_S, RETRY_S, LONGEST_RETRY_S = 5.0, 1.0, 10.0

Heard = asyncio.Queue[Measurement]


class Measurements:
    """The metrics topic from now on; `run` reads it while anybody listens."""

    def __init__(self, bus: Bus, topic: str) -> None:
        self._bus, self._topic = bus, topic
        self._listeners: defaultdict[bytes | None, list[Heard]] = defaultdict(list)
        self._wanted = asyncio.Event()

    @contextlib.contextmanager
    def heard(self, topics: Collection[str] | None) -> Iterator[Heard]:
        """Give a queue of what is said of these topics, of all if None, during the body."""
        queue = Heard()
        names = [None] if topics is None else [topic.encode() for topic in topics]
        for name in names:
            self._listeners[name].append(queue)
        self._wanted.set()
        try:
            yield queue
        finally:
            for name in names:
                self._listeners[name].remove(queue)
                if not self._listeners[name]:
                    del self._listeners[name]
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
            try:
                records = await reader.read(READ_S)
            except BrokerUnavailable as exc:
                log.warning("measurements.delayed", topic=self._topic, reason=str(exc))
                await asyncio.sleep(RETRY_S)
                continue
            # Of topics that nobody here rules the bytes are not even decoded.
            ours = (r for r in records if None in self._listeners or self._ours(r.key))
            for _, measurement in decoder.readable(ours):
                for name in (measurement.topic.encode(), None):
                    for queue in self._listeners.get(name, ()):
                        queue.put_nowait(measurement)

    def _ours(self, key: bytes | None) -> bool:
        return key is None or whole_key(key) in self._listeners


@contextlib.asynccontextmanager
async def measuring(bus: Bus, topic: str) -> AsyncIterator[Measurements]:
    """Give what is measured, read meanwhile."""
    measurements = Measurements(bus, topic)
    async with meanwhile(endless(measurements.run())):
        yield measurements
