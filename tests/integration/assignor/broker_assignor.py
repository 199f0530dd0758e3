"""A broker with the assignor for KIP-848 groups, members of librdkafka, and rates."""

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, Producer
from tests.integration.assignor.java_members import build_assignor

from binwright.kafka.control_records import METRICS_CONFIG, METRICS_PARTITION
from binwright.kafka.control_topics import KafkaControlTopics
from binwright.kafka.publishing import publish_message
from binwright.protocol.metrics import Measurement, PartitionRate
from binwright.protocol.model import BytesPerSecond
from binwright.runtime.clock import wall_ms
from binwright.runtime.settings.kafka import KafkaSettings

METRICS_TOPIC = "binwright.metrics"
END_S = 20.0


def broker_settings(port: int, **other: str) -> dict[str, str]:
    """Return what a broker on this port needs for the assignor; `_` stands for dots."""
    return {
        "group.consumer.assignors": "uniform,range,binwright.assignor.LoadAssignor",
        "group.consumer.min.heartbeat.interval.ms": "200",
        "group.consumer.heartbeat.interval.ms": "300",
        "group.consumer.min.session.timeout.ms": "1000",
        "group.consumer.session.timeout.ms": "6000",
        "binwright.client.bootstrap.servers": f"127.0.0.1:{port}",
        "binwright.metrics.topic": METRICS_TOPIC,
        **{name.replace("_", "."): value for name, value in other.items()},
    }


async def publish_rates(
    kafka: KafkaSettings, rates: Mapping[str, Sequence[float]], *, age_ms: int = 0
) -> None:
    """Publish bytes/s of the partitions of topics, as a monitor that measured them `age_ms` ago."""
    async with KafkaControlTopics(kafka) as bus:
        await bus.ensure(METRICS_TOPIC, 1, METRICS_CONFIG)
        for topic, values in rates.items():
            rows = (
                PartitionRate(number, BytesPerSecond(rate), 30.0, 0, 0, None)
                for number, rate in enumerate(values)
            )
            measurement = Measurement(
                topic=topic,
                at_ms=wall_ms() - age_ms,
                monitor="test",
                number=1,
                interval_s=1.0,
                count=len(values),
                partitions=tuple(rows),
            )
            await publish_message(bus, METRICS_TOPIC, METRICS_PARTITION, measurement)


def publish_zeros(servers: str, megabytes: int) -> None:
    """Publish records of a MB each among the rates, which are few bytes as compressed."""
    producer = Producer(
        {
            "bootstrap.servers": servers,
            "compression.type": "gzip",
            "linger.ms": 1000,
            "batch.size": 64 << 20,
            "message.max.bytes": 64 << 20,
        }
    )
    for number in range(megabytes):
        producer.produce(METRICS_TOPIC, bytes(1_000_000))
        if number % 50 == 49:
            producer.flush(END_S)
    assert producer.flush(END_S) == 0


class LibrdkafkaMember:
    """An unmodified consumer of confluent-kafka, on a thread of its own.

    Attributes:
        owned: Numbers of the partitions that it reads now.
        revoked: Partitions that it ever had to give up, in order.
        error: That ended it.
    """

    def __init__(self, servers: str, group: str, topics: Sequence[str], **settings: str) -> None:
        """Join; `_` in a name stands for a dot."""
        self.owned: set[str] = set()
        self.revoked: list[str] = []
        self.error: Exception | None = None
        self._topics = list(topics)
        self._consumer = Consumer(
            {
                "bootstrap.servers": servers,
                "group.id": group,
                "group.protocol": "consumer",
                "group.remote.assignor": "binwright",
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                **{name.replace("_", "."): value for name, value in settings.items()},
            }
        )
        self._is_ending = threading.Event()
        self._thread = threading.Thread(target=self._run, name="member")
        self._thread.start()

    def _run(self) -> None:
        try:
            self._consumer.subscribe(
                self._topics, on_assign=self._assign, on_revoke=self._revoke, on_lost=self._revoke
            )
            while not self._is_ending.is_set():
                self._consumer.poll(0.1)
        except Exception as exc:
            self.error = exc
            raise
        finally:
            self._consumer.close()

    def _assign(self, _: Any, partitions: Sequence[Any]) -> None:
        self.owned |= {f"{one.topic}-{one.partition}" for one in partitions}

    def _revoke(self, _: Any, partitions: Sequence[Any]) -> None:
        names = [f"{one.topic}-{one.partition}" for one in partitions]
        self.revoked += names
        self.owned -= set(names)

    def stop(self) -> None:
        """Leave the group."""
        self._is_ending.set()
        self._thread.join(END_S)
        assert not self._thread.is_alive()


@contextmanager
def librdkafka_members(
    servers: str, group: str, topics: Sequence[str], count: int, **settings: str
) -> Iterator[list[LibrdkafkaMember]]:
    """Run this many members."""
    members = [LibrdkafkaMember(servers, group, topics, **settings) for _ in range(count)]
    try:
        yield members
    finally:
        for member in members:
            member.stop()


async def assignor_jar(directory: Path) -> Path:
    """Compile the assignor into a directory; return its jar."""
    jar, _, _ = await build_assignor(directory)
    return jar


def loads(members: Sequence[LibrdkafkaMember], rates: Mapping[str, Sequence[float]]) -> list[float]:
    """Return the load of each member, bytes/s."""
    by_name = {f"{t}-{n}": rate for t, values in rates.items() for n, rate in enumerate(values)}
    return [sum(by_name[name] for name in member.owned) for member in members]
