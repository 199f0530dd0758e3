"""What both sides read: topics with a backlog, or with a load that goes on."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from bench.landing.forms import BYTES, Form
from binwright.protocol.errors import ExternalError
from binwright.protocol.model import TopicPartition
from binwright.runtime.clock import wall_ms
from binwright.runtime.settings.kafka import KafkaSettings
from binwright.streams.load import kafka_options, run_load
from binwright.streams.load_pacing import Pacing
from binwright.streams.streams import PerCent

LONGEST_S = 3600.0
LOOK_S = 0.1


@dataclass(frozen=True, slots=True)
class BenchBroker:
    """A broker."""

    kafka: KafkaSettings

    def create(self, topics: Sequence[str], partitions: int) -> None:
        """Create topics; raise `ExternalError` if Kafka does not."""
        admin = AdminClient(kafka_options(self.kafka))
        made = admin.create_topics([NewTopic(t, partitions, 1) for t in topics])
        for future in made.values():
            future.result(30.0)

    def fill(self, topic: str, partitions: int, records: int, form: Form) -> float:
        """Write so many records, spread evenly; return their megabytes when all are confirmed."""
        options = {"queue.buffering.max.kbytes": 262_144, "linger.ms": 50, "acks": "all"}
        producer = Producer({**kafka_options(self.kafka), **options})
        make, now_ms, written = form.maker(), wall_ms(), 0
        for number in range(records):
            key, value = make(now_ms)
            written += len(key) + len(value)
            while True:
                try:
                    producer.produce(topic, value, key, number % partitions)
                    break
                except BufferError:
                    producer.poll(0.1)
        if left := producer.flush(120.0):
            raise ExternalError(f"{left} records were not confirmed")
        return written / 1e6

    @contextlib.asynccontextmanager
    async def load(
        self, topics: Sequence[str], partitions: int, bytes_per_s: float, form: Form = BYTES
    ) -> AsyncIterator[None]:
        """Write beside the block, `bytes_per_s` in all; see that every record was confirmed."""
        stop = asyncio.Event()
        each = [TopicPartition(t, n) for t in topics for n in range(partitions)]
        load = Pacing(
            row_s=LONGEST_S,
            bytes_per_per_cent=bytes_per_s / len(each) / 100,
            record_bytes=form.record_bytes,
        )
        stream = [dict.fromkeys(each, PerCent(100.0))]
        make = form.maker()
        playing = asyncio.create_task(
            run_load(stream, self.kafka, load, stop=stop, make=lambda _, now_ms: make(now_ms))
        )
        try:
            yield
        finally:
            stop.set()
            await playing


async def until(condition: Callable[[], bool], deadline_s: float, what: str) -> None:
    """Wait for what other processes bring about; raise `ExternalError` when it does not come."""
    try:
        async with asyncio.timeout(deadline_s):
            while not condition():  # noqa: ASYNC110 - other processes bring it about
                await asyncio.sleep(LOOK_S)
    except TimeoutError as exc:
        raise ExternalError(f"after {deadline_s:g} s it is not so that {what}") from exc
