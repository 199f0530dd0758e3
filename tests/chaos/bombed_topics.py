"""Values that would take gigabytes once they are decoded, all along among plain records."""

import asyncio
import threading
from collections import Counter
from collections.abc import AsyncIterator, Collection, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import cache
from itertools import count, cycle
from pathlib import Path

from confluent_kafka import KafkaError, Message, Producer
from tests.chaos.landed_values import Place, bad_records
from tests.consumer.decode import avro
from tests.consumer.decode.value_bombs import zigzag
from tests.integration.registry.server import run_registry

from binwright.lake.lake_reader import reader_of
from binwright.protocol.errors import BrokerUnavailable
from binwright.protocol.model import TopicPartition
from binwright.runtime.settings.group import Settings
from binwright.runtime.settings.kafka import KafkaSettings
from binwright.streams.load import SampleRecords, kafka_options

TOPICS = JSON, VARIANT, AVRO = "clicks", "variants", "numbers"
"""The topics that bombs are written to, each by the format of its values."""
COLUMNS = "id BIGINT, customer STRING, note STRING, x ARRAY<STRUCT<y: INT>>"
RECORD_BYTES = 4_000
EVERY_S = 3.0  # from one bomb to the next
OBJECTS = 10_000_000  # of 3 bytes each, and 45 times that once they are decoded
FITTING, AT_ONCE = 300_000, 8  # as many objects fit in a value; all values at a time would not
DELIVERY_S, CONFIRM_S, POLL_S = 120.0, 20.0, 0.5
MOST_BYTES = 64_000_000  # of a record before it is compressed
MOST_LISTED = 20
BOOLEAN = avro.record(("b", "boolean"), name="Item")
NULLS = avro.record(*((f"n{n}", "null") for n in range(2_000)), ("b", "boolean"), name="Item")


@dataclass(frozen=True, slots=True)
class Burst:
    """Equal records that are written at once, to one topic."""

    topic: str
    value: bytes = field(repr=False)
    records: int = 1
    bomb: bool = True  # else each fits, and is a row


def of_items(item: object) -> dict[str, object]:
    """Return the schema of a text and a list."""
    return avro.record(("note", "string"), ("a", {"type": "array", "items": item}))


def avro_value(schema: int, note: bytes, items: int) -> bytes:
    """Return a value of so many items, of one byte each."""
    text = zigzag(len(note)) + note
    return b"\0" + schema.to_bytes(4, "big") + text + zigzag(items) + bytes(items) + b"\0"


@cache
def bursts(boolean: int, nulls: int) -> Sequence[Burst]:
    """Return what is written in turn, where the schemas of the lists have these ids."""
    objects = b"[" + b"{}," * OBJECTS + b"{}]"
    fitting = b"[" + b"{}," * FITTING + b"{}]"
    return (
        Burst(JSON, b'{"x":' + objects + b"}"),
        Burst(AVRO, avro_value(nulls, b"", 20_000)),
        Burst(JSON, b'{"id":1,"no column":' + objects + b"}"),
        Burst(VARIANT, b"[" + b"{}," * (OBJECTS // 2) + b"{}]"),
        Burst(AVRO, avro_value(boolean, b"", 3 * OBJECTS)),
        Burst(JSON, b'{"id":2,"no column":' + fitting + b"}", AT_ONCE, bomb=False),
    )


@dataclass(slots=True)
class BombedTopics:
    """The topics, what the registry knows of them, and where each bomb is."""

    url: str
    boolean: int  # the id of a schema
    nulls: int  # of the other one
    bombs: dict[str, set[Place]] = field(default_factory=dict)
    _samples: SampleRecords = field(default_factory=lambda: SampleRecords(RECORD_BYTES))
    _failed: str = ""

    @property
    def written(self) -> int:
        """How many bombs there are."""
        return sum(map(len, self.bombs.values()))

    @property
    def record_bytes(self) -> int:
        """How large plain records are."""
        return RECORD_BYTES

    @property
    def tables(self) -> list[dict[str, object]]:
        """The settings' entries of the tables."""
        return [
            {"topics": [JSON], "format": "json", "columns": COLUMNS},
            {"topics": [VARIANT], "format": "variant"},
            {"topics": [AVRO], "format": "avro"},
        ]

    def record(self, partition: TopicPartition, now_ms: int) -> tuple[bytes, bytes]:
        """Return key and value of the next plain record; in the thread of the load."""
        key, value = self._samples.make(now_ms)
        return key, avro_value(self.boolean, value, 1) if partition.topic == AVRO else value

    async def write(
        self, kafka: KafkaSettings, partitions: Collection[TopicPartition], done: asyncio.Event
    ) -> None:
        """Write bombs, one after another, until it is `done`; each kind at least once.

        Raises:
            BrokerUnavailable: One was not confirmed in time.
        """
        ended, watch = threading.Event(), asyncio.create_task(done.wait())
        watch.add_done_callback(lambda _: ended.set())
        try:
            await asyncio.to_thread(self._write, kafka, partitions, ended)
        finally:
            watch.cancel()

    def _write(
        self, kafka: KafkaSettings, partitions: Collection[TopicPartition], ended: threading.Event
    ) -> None:
        producer = Producer(
            {
                **kafka_options(kafka),
                "client.id": "chaos-bombs",
                "acks": "all",
                "enable.idempotence": True,
                "compression.type": "gzip",
                "message.max.bytes": MOST_BYTES,
                "message.timeout.ms": round(DELIVERY_S * 1000),
                "log_level": 2,  # errors arrive by callback
            }
        )
        turns = {
            topic: cycle(sorted(p for p in partitions if p.topic == topic)) for topic in TOPICS
        }
        every = bursts(self.boolean, self.nulls)
        for number in count():
            if ended.is_set() and number >= len(every):
                return
            burst = every[number % len(every)]
            partition = next(turns[burst.topic])
            for _ in range(burst.records):
                producer.produce(
                    partition.topic,
                    burst.value,
                    b"bomb",
                    partition.partition,
                    on_delivery=self._on_bomb if burst.bomb else self._on_delivery,
                )
            left_s = CONFIRM_S
            while producer.flush(POLL_S):  # ends: a record fails after `DELIVERY_S`
                left_s -= POLL_S if ended.is_set() else 0.0
                if left_s <= 0:
                    producer.purge()
            if self._failed:
                raise BrokerUnavailable(f"a bomb was not confirmed: {self._failed}")
            ended.wait(EVERY_S)

    def _on_bomb(self, error: KafkaError | None, message: Message) -> None:
        self._on_delivery(error, message)
        if error is None:
            place = (message.partition(), message.offset())
            self.bombs.setdefault(message.topic(), set()).add(place)

    def _on_delivery(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self._failed = f"{message.topic()}-{message.partition()}: {error.str()}"

    async def differences(self, settings: Settings) -> tuple[str, ...]:
        """Return what is wrong in the tables of bad records.

        Raises:
            LakeUnavailable: Spark does not answer.
        """
        found = list[str]()
        for topic in TOPICS:
            path = settings.lake.table_path(topic)
            async with reader_of(settings.lake, topic) as reader:
                bad = await reader.run("read the bad records", lambda s: bad_records(s, path))  # noqa: B023 - awaited here
            found += [f"{topic} {fault}" for fault in bomb_faults(self.bombs.get(topic, ()), bad)]
        return tuple(found[:MOST_LISTED])


def bomb_faults(bombs: Collection[Place], bad: Sequence[tuple[Place, str]]) -> Iterator[str]:
    """Yield what is not so: each bomb is a bad record once, as too large, and no other record is.

    Args:
        bombs: Where they are in Kafka.
        bad: The places and kinds of the rows in the table of bad records.
    """
    rows: Mapping[Place, int] = Counter(place for place, _ in bad)
    yield from (
        f"{place}: a bomb has {rows.get(place, 0)} rows among the bad records"
        for place in sorted(bombs)
        if rows.get(place, 0) != 1
    )
    for place, kind in sorted(bad):
        if place not in bombs:
            yield f"{place}: bad as {kind}, and is no bomb"
        elif kind != "too_large":
            yield f"{place}: a bomb is bad as {kind}"


@asynccontextmanager
async def run_bombed_topics(directory: Path) -> AsyncIterator[BombedTopics]:
    """Run a registry with the schemas of both lists, the plain records' first."""
    async with run_registry(directory) as registry:
        boolean, nulls = (
            registry.register(f"{AVRO}-value", of_items(each)) for each in (BOOLEAN, NULLS)
        )
        yield BombedTopics(registry.url, boolean, nulls)
